//! Several hosts behind a gateway that is not ours: fastmcp's proxy, as docs/fleet.md sets it up.

use gloveport_contract::catalog::Risk;
use gloveport_tests::helper::{self, Helper};
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Daemon, Scene, clients, processes};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Light load: each host's action runs eight at once.
const AT_ONCE: usize = 6;
const ROUNDS: usize = 5;

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

/// The gateway, and a client of it.
struct Gateway {
    gateway: Child,
    client: Child,
    ask: RefCell<ChildStdin>,
    answers: RefCell<BufReader<ChildStdout>>,
}

impl Gateway {
    fn of(hosts: &[(&str, &Host)]) -> Self {
        // The port is free when it is chosen; nobody else on this machine takes it in the moment between.
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let mut gateway = clients::python("fastmcp", "fastmcp_gateway.py");
        gateway.arg(port.to_string());
        gateway.args(hosts.iter().map(|(name, host)| format!("{name}={}={}", host.url(), host.token)));
        let mut gateway = gateway.stdin(Stdio::null()).spawn().expect("starting the gateway");
        processes::wait_until("the gateway listens", Duration::from_secs(60), || {
            assert!(gateway.try_wait().expect("waiting").is_none(), "the gateway ended");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let mut client = clients::python("fastmcp", "fastmcp_gateway_client.py");
        client.arg(format!("http://127.0.0.1:{port}/mcp")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = client.spawn().expect("starting a client");
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

fn said(result: &Value) -> &str {
    result["structured"]["steps"][0]["stdout"].as_str().unwrap_or_else(|| panic!("no output in {result:#}"))
}

#[test]
fn hosts_behind_a_gateway_keep_their_names_their_tokens_and_their_failures_apart() {
    let (web, db) = (Host::new(1), Host::new(2));
    for (host, token) in [(&web, &db.token), (&db, &web.token)] {
        let response = Endpoint::of(&host.url(), Some(token));
        let response = response.send(&response.request("tools/list", json!({})));
        assert_eq!(response.status, 401, "one host's token opened another");
    }

    let gateway = Gateway::of(&[("web", &web), ("db", &db)]);
    assert_eq!(gateway.tools(), json!(["db_say", "web_say"]));
    let answers = gateway.call(&["web_say", "db_say"]);
    assert_eq!(said(&answers[0]), "hello\nfrom-1\n");
    assert_eq!(said(&answers[1]), "hello\nfrom-2\n");

    // One goes away: the other is served, also in the same breath.
    web.go();
    let answers = gateway.call(&["web_say", "db_say"]);
    assert!(answers[0]["error"].is_string(), "{answers:#?}");
    assert_eq!(said(&answers[1]), "hello\nfrom-2\n");
    assert_eq!(gateway.tools(), json!(["db_say"]));
    web.come();
    processes::wait_until("the host is served again", Duration::from_secs(30), || {
        gateway.tools() == json!(["db_say", "web_say"])
    });
    assert_eq!(said(&gateway.call(&["web_say"])[0]), "hello\nfrom-1\n");

    // Light load: every call is answered by its own host.
    for _ in 0..ROUNDS {
        let tools: Vec<&str> = (0..AT_ONCE * 2).map(|number| ["web_say", "db_say"][number % 2]).collect();
        for (tool, answer) in tools.iter().zip(gateway.call(&tools)) {
            let from = if *tool == "web_say" { "hello\nfrom-1\n" } else { "hello\nfrom-2\n" };
            assert_eq!(said(&answer), from);
        }
    }
    let calls = web.helper.audit().iter().filter(|record| record["kind"] == "ended").count();
    assert_eq!(calls, 2 + ROUNDS * AT_ONCE, "each call is a run of its own in the host's chain");
}
