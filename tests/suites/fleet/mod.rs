//! Several hosts behind a gateway that is not ours, as docs/fleet.md sets them up.

mod contextforge;
mod fastmcp;

use gloveport_contract::catalog::Risk;
use gloveport_tests::helper::{self, Helper};
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Daemon, Scene, clients, processes};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Light load: each host's action runs eight at once.
const AT_ONCE: usize = 6;

/// A host: its pair, with a token of its own, at an address that stays while the daemon comes and goes.
struct Host {
    daemon: RefCell<Option<Daemon>>,
    helper: Helper,
    token: String,
    road: Road,
}

/// Passes connections on to wherever the daemon listens now, as the network before a real host does.
struct Road {
    address: String,
    end: Arc<Mutex<Option<String>>>,
}

impl Road {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address").to_string();
        let end = Arc::new(Mutex::new(None::<String>));
        let leads_to = Arc::clone(&end);
        std::thread::spawn(move || {
            for incoming in listener.incoming().flatten() {
                let end = leads_to.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Where it leads nowhere, the connection is closed at once.
                if let Some(outgoing) = end.and_then(|end| TcpStream::connect(end).ok()) {
                    pass(&incoming, &outgoing);
                    pass(&outgoing, &incoming);
                }
            }
        });
        Self { address, end }
    }

    fn lead_to(&self, end: Option<&str>) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = end.map(str::to_owned);
    }
}

fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("a descriptor"), to.try_clone().expect("a descriptor"));
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

impl Host {
    fn new(number: u8) -> Self {
        let token = format!("gp_{}", char::from(b'B' + number).to_string().repeat(43));
        let scene = Scene::new();
        let say =
            scene.exec("say", &[&scene.probe(), "print", "{word}", &format!("from-{number}")]).with(json!({
                "arguments": "flat", "params": {"word": {"type": "string"}},
            }));
        let mut prepared = scene.prepare(&[say]);
        prepared.tokens.tokens = vec![helper::token("gateway", &token, &["say"], Risk::Read)];
        let host = Self { daemon: RefCell::default(), helper: prepared.start(), token, road: Road::new() };
        host.come();
        host
    }

    fn come(&self) {
        let daemon = self.helper.daemon();
        self.road.lead_to(Some(&daemon.endpoint.address));
        *self.daemon.borrow_mut() = Some(daemon);
    }

    fn go(&self) {
        self.road.lead_to(None);
        *self.daemon.borrow_mut() = None;
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.road.address)
    }
}

/// A gateway, and a client of it.
struct Gateway {
    gateway: Child,
    client: Child,
    ask: RefCell<ChildStdin>,
    answers: RefCell<BufReader<ChildStdout>>,
}

/// A port that is free now; nobody else on this machine takes it in the moment between.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// Starts a gateway, and waits until it listens.
fn start(mut gateway: Command, port: u16) -> Child {
    let mut gateway = gateway.stdin(Stdio::null()).spawn().expect("starting the gateway");
    processes::wait_until("the gateway listens", Duration::from_secs(90), || {
        assert!(gateway.try_wait().expect("waiting").is_none(), "the gateway ended");
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    gateway
}

impl Gateway {
    /// A gateway that listens there, and a client with these words after the URL.
    fn of(gateway: Child, port: u16, words: &[&str]) -> Self {
        let mut client = clients::python("fastmcp", "fastmcp_gateway_client.py");
        client.arg(format!("http://127.0.0.1:{port}/mcp")).args(words);
        let mut client =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starting a client");
        let ask = RefCell::new(client.stdin.take().expect("a pipe"));
        let answers = RefCell::new(BufReader::new(client.stdout.take().expect("a pipe")));
        Self { gateway, client, ask, answers }
    }

    fn ask(&self, request: &Value) -> Value {
        writeln!(self.ask.borrow_mut(), "{request}").expect("asking the client");
        let mut line = String::new();
        self.answers.borrow_mut().read_line(&mut line).expect("the client's answer");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the client said: {line}"))
    }

    fn tools(&self) -> Value {
        self.ask(&json!({"list": true}))
    }

    fn call(&self, tools: &[&str]) -> Vec<Value> {
        let calls: Vec<Value> = tools.iter().map(|tool| json!([tool, {"word": "hello"}])).collect();
        self.ask(&json!({"calls": calls}))["results"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        processes::stop(&mut self.client);
        processes::stop(&mut self.gateway);
    }
}

/// What a call printed; nothing where it failed.
fn said(result: &Value) -> &str {
    result["structured"]["steps"][0]["stdout"].as_str().unwrap_or_default()
}

const FROM_WEB: &str = "hello\nfrom-1\n";
const FROM_DB: &str = "hello\nfrom-2\n";

/// Neither host's token opens the other.
fn tokens_are_apart(web: &Host, db: &Host) {
    for (host, token) in [(web, &db.token), (db, &web.token)] {
        let response = Endpoint::of(&host.url(), Some(token));
        let response = response.send(&response.request("tools/list", json!({})));
        assert_eq!(response.status, 401, "one host's token opened another");
    }
}

/// The same with any gateway: `web` and `db` are what the two tools are called there.
fn failures_are_apart(gateway: &Gateway, [web_say, db_say]: [&str; 2], web: &Host) {
    assert_eq!(gateway.tools(), json!([db_say, web_say]));
    let answers = gateway.call(&[web_say, db_say]);
    assert_eq!((said(&answers[0]), said(&answers[1])), (FROM_WEB, FROM_DB), "{answers:#?}");

    // One goes away: the other is served, also in the same breath.
    web.go();
    let answers = gateway.call(&[web_say, db_say]);
    assert!(answers[0]["error"].is_string(), "{answers:#?}");
    assert_eq!(said(&answers[1]), FROM_DB, "{answers:#?}");
    web.come();
    processes::wait_until("the host is served again", Duration::from_secs(60), || {
        said(&gateway.call(&[web_say])[0]) == FROM_WEB
    });
}

/// Calls of both hosts at once: each is answered by its own, and is a run of its own in that one's chain.
fn load_is_borne(gateway: &Gateway, names: [&str; 2], web: &Host, rounds: usize) {
    let runs = || web.helper.audit().iter().filter(|record| record["kind"] == "ended").count();
    let before = runs();
    for _ in 0..rounds {
        let tools: Vec<&str> = (0..AT_ONCE * 2).map(|number| names[number % 2]).collect();
        for (number, answer) in gateway.call(&tools).iter().enumerate() {
            assert_eq!(said(answer), [FROM_WEB, FROM_DB][number % 2], "{answer:#}");
        }
    }
    assert_eq!(runs() - before, rounds * AT_ONCE);
}
