#![forbid(unsafe_code)]
//! `gloveport stdio --host`: one server for the client, out of the daemons of many hosts.
//!
//! It adds a parameter `host` to every tool and passes each call on to that host's own `gloveport stdio`, over
//! ssh. What may run is decided there: nothing here widens it.

mod host;
mod link;
mod protocol;
mod ssh;
mod target;
mod tools;

pub use ssh::Ssh;
pub use target::Target;

use super::framing::Output;
use super::message::INTERNAL;
use super::{Service, locked};
use gloveportd::mcp::LEGACY;
use gloveportd::mcp::envelope::{Members, Message};
use gloveportd::mcp::errors::{INVALID_REQUEST, RpcError};
use host::{Host, Trouble};
use link::{Answer, Event};
use protocol::{
    Era, INSTRUCTIONS, Outcome, discover, failure, list, raw, raw_error, raw_members, server_info,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tools::{HOST, HOSTS, Listed};

/// Requests at once, over all hosts. It bounds our threads.
const IN_FLIGHT: usize = 256;
/// How long a list of tools waits for hosts that do not answer. They are offered all the same.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often connections are looked at for being idle.
const LOOK: Duration = Duration::from_millis(500);
/// How long the other ends may take to finish after their input was closed.
const FAREWELL: Duration = Duration::from_secs(3);
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const META_HOST: &str = "gloveport/host";

/// How calls are bounded.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time of one call, connecting included.
    pub deadline: Duration,
    /// A connection that nothing was asked over for so long is closed.
    pub idle: Duration,
}

/// The hosts, as one server.
pub struct Fleet {
    hosts: Vec<Arc<Host>>,
    limits: Limits,
    /// How long connecting to a host may take.
    connect: Duration,
    output: Arc<Output>,
    /// Name and version of the client, as its `initialize` gave them.
    client: Mutex<Option<Value>>,
    /// Where the cancellation of each request goes, by the request's id.
    requests: Mutex<HashMap<String, Sender<Event>>>,
    one_less: Condvar,
}

impl Service for Fleet {
    fn output(&self) -> &Output {
        &self.output
    }

    fn take(self: &Arc<Self>, bytes: Vec<u8>) -> io::Result<()> {
        let message = match Message::read(&bytes) {
            Ok(message) => message,
            Err(bad) => {
                return self.output.send(bad.error.message(bad.id.as_ref()).to_string().as_bytes());
            }
        };
        let Some(id) = message.id.clone() else {
            if message.method == "notifications/cancelled"
                && let Some(request) = message.params.get("requestId")
            {
                self.cancel(request);
            }
            return Ok(());
        };
        let refuse = |error: RpcError| self.output.send(error.message(Some(&id)).to_string().as_bytes());
        let era = match Era::of(&message) {
            Ok(era) => era,
            Err(error) => return refuse(error),
        };
        let result = match (message.method.as_str(), era) {
            ("initialize", Era::Legacy) => self.initialize(&message.params),
            ("ping", Era::Legacy) => Ok(json!({})),
            ("server/discover", Era::Modern) => Ok(discover()),
            ("tools/list", _) if message.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) => {
                Err(RpcError::params("cursor: the list has one page"))
            }
            ("tools/list" | "tools/call", _) => return self.begin(message, id, era),
            (method, _) => Err(RpcError::method(method)),
        };
        match result {
            Ok(result) => self.output.send(&era.reply(&id, Ok(raw_members(&result)))),
            Err(error) => refuse(error),
        }
    }

    fn finish(&self, grace: Duration) {
        let requests = locked(&self.requests);
        let waited = self.one_less.wait_timeout_while(requests, grace, |requests| !requests.is_empty());
        for (_, events) in waited.unwrap_or_else(PoisonError::into_inner).0.drain() {
            let _ = events.send(Event::Cancelled);
        }
        let links: Vec<_> = self.hosts.iter().filter_map(|host| host.close()).collect();
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline && links.iter().any(|link| !link.is_lost()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for link in links {
            link.lose("the client has gone".to_owned());
        }
    }
}

impl Fleet {
    /// A server out of these hosts, none of which is asked before the client asks.
    ///
    /// # Errors
    /// No thread for closing idle connections.
    pub fn new(targets: Vec<Target>, ssh: &Ssh, limits: Limits) -> io::Result<Self> {
        let output = Arc::new(Output::default());
        let host = |target| Arc::new(Host::new(target, ssh.clone(), Arc::clone(&output)));
        let hosts: Vec<_> = targets.into_iter().map(host).collect();
        let watched = hosts.clone();
        std::thread::Builder::new().spawn(move || {
            loop {
                std::thread::sleep(LOOK.min(limits.idle));
                watched.iter().for_each(|host| host.close_idle(limits.idle));
            }
        })?;
        Ok(Self {
            hosts,
            limits,
            connect: ssh.connect,
            output,
            client: Mutex::default(),
            requests: Mutex::default(),
            one_less: Condvar::new(),
        })
    }

    fn initialize(&self, params: &Members) -> Result<Value, RpcError> {
        let requested = params.get("protocolVersion").and_then(Value::as_str);
        let requested = requested.ok_or_else(|| RpcError::params("protocolVersion: required, a text"))?;
        *locked(&self.client) = params.get("clientInfo").cloned();
        let newest = LEGACY.last().copied().unwrap_or_default();
        Ok(json!({
            "protocolVersion": if LEGACY.contains(&requested) { requested } else { newest },
            "capabilities": {"tools": {}},
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        }))
    }

    /// Answers a request in a thread of its own.
    fn begin(self: &Arc<Self>, message: Message, id: Value, era: Era) -> io::Result<()> {
        let (sender, events) = mpsc::channel();
        let refused = {
            let mut requests = locked(&self.requests);
            if requests.contains_key(&id.to_string()) {
                Some("a request with this id is under way")
            } else if requests.len() >= IN_FLIGHT {
                Some("too many requests at once: wait for an answer")
            } else {
                requests.insert(id.to_string(), sender.clone());
                None
            }
        };
        if let Some(text) = refused {
            let error = RpcError::new(INVALID_REQUEST, text);
            return self.output.send(error.message(Some(&id)).to_string().as_bytes());
        }
        let (fleet, key, waiting) = (Arc::clone(self), id.to_string(), id.clone());
        let work = move || {
            let outcome = fleet.run(message, era, (sender, events));
            // It counts as under way until its answer is out: `finish` waits for that.
            let key = id.to_string();
            let is_wanted = locked(&fleet.requests).contains_key(&key);
            let sent = if is_wanted { fleet.output.send(&era.reply(&id, outcome)) } else { Ok(()) };
            locked(&fleet.requests).remove(&key);
            fleet.one_less.notify_all();
            if sent.is_err() {
                // Nobody reads the answers: what still runs, runs for nobody.
                std::process::exit(0);
            }
        };
        if std::thread::Builder::new().spawn(work).is_err() {
            locked(&self.requests).remove(&key);
            return self.output.refuse(&waiting, INTERNAL, "this host has no room for another thread");
        }
        Ok(())
    }

    fn cancel(&self, id: &Value) {
        if let Some(events) = locked(&self.requests).remove(&id.to_string()) {
            let _ = events.send(Event::Cancelled);
        }
    }

    fn run(&self, message: Message, era: Era, events: (Sender<Event>, Receiver<Event>)) -> Outcome {
        let call = match message.method.as_str() {
            "tools/list" => {
                self.refresh();
                return Ok(raw_members(&list(self.tools())));
            }
            _ => self.read_call(message.params, era),
        };
        match call {
            Ok(Call::Hosts) => {
                self.refresh();
                Ok(raw_members(&self.report()))
            }
            Ok(Call::On { host, params }) => self.call(&host, params, events),
            Ok(Call::Misused(text)) => Ok(raw_members(&failure(&text))),
            Err(error) => Err(raw_error(&error)),
        }
    }

    /// Asks all hosts for their tools at once, and waits for them: within [`PATIENCE`], and for those that
    /// were never asked before until they have either connected or failed. Many clients list once and for all.
    fn refresh(&self) {
        let (done, all) = mpsc::channel::<()>();
        for host in &self.hosts {
            let (host, done, deadline) =
                (Arc::clone(host), done.clone(), Instant::now() + self.limits.deadline);
            // Without a thread the host stays as it was known.
            let _ = std::thread::Builder::new().spawn(move || {
                host.refresh(deadline);
                drop(done);
            });
        }
        drop(done);
        let at_last = Instant::now() + self.connect + PATIENCE;
        let mut wait = PATIENCE;
        // Nothing is ever sent: the channel closes when the last host is done.
        while all.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
            && Instant::now() < at_last
            && self.hosts.iter().any(|host| host.known().is_nothing())
        {
            wait = LOOK;
        }
    }

    fn tools(&self) -> Vec<Value> {
        let known: Vec<_> = self.hosts.iter().map(|host| (host, host.known().tools)).collect();
        let listed: Vec<Listed<'_>> =
            known.iter().map(|(host, tools)| (host.name(), tools.as_deref())).collect();
        tools::merge(&listed)
    }

    /// The answer of the tool `hosts`.
    fn report(&self) -> Value {
        let states: Vec<Value> = self.hosts.iter().map(|host| state(host)).collect();
        let structured = json!({"hosts": states});
        json!({
            "content": [{"type": "text", "text": structured.to_string()}],
            "structuredContent": structured,
            "isError": false,
        })
    }

    fn read_call(&self, mut params: Members, era: Era) -> Result<Call, RpcError> {
        let Some(name) = params.get("name").and_then(Value::as_str).map(str::to_owned) else {
            return Err(RpcError::params("name: required, a text"));
        };
        if name == HOSTS {
            return Ok(Call::Hosts);
        }
        let mut arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Members::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(RpcError::params("arguments must be an object")),
        };
        let named = match (arguments.remove(HOST), self.hosts.as_slice()) {
            (None, [only]) => Some(only),
            (Some(Value::String(wanted)), hosts) => hosts.iter().find(|host| host.name() == wanted),
            _ => None,
        };
        let Some(host) = named.cloned() else {
            let names: Vec<&str> = self.hosts.iter().map(|host| host.name()).collect();
            return Ok(Call::Misused(format!("host: required, one of {}", names.join(", "))));
        };
        let mut meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Members::new(),
        };
        if era == Era::Legacy
            && let Some(client) = locked(&self.client).clone()
        {
            meta.insert(META_CLIENT.to_owned(), client);
        }
        Ok(Call::On { host, params: json!({"name": name, "arguments": arguments, "_meta": meta}) })
    }

    fn call(
        &self,
        host: &Host,
        params: Value,
        (sender, events): (Sender<Event>, Receiver<Event>),
    ) -> Outcome {
        let deadline = Instant::now() + self.limits.deadline;
        let answer = host.ask("tools/call", params, deadline, (sender, &events));
        let mut members = match answer {
            Ok(Answer { error: Some(error), .. }) => return Err(error),
            Ok(Answer { result, .. }) => result
                .and_then(|result| serde_json::from_str(result.get()).ok())
                .unwrap_or_else(|| raw_members(&failure("the host's answer is none of gloveport"))),
            Err(trouble) => raw_members(&failure(&self.explain(host.name(), &trouble))),
        };
        let meta = members.remove("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok());
        let mut meta: Members = meta.unwrap_or_default();
        meta.insert(META_HOST.to_owned(), host.name().into());
        members.insert("_meta".to_owned(), raw(&meta.into()));
        Ok(members)
    }

    fn explain(&self, host: &str, trouble: &Trouble) -> String {
        let seconds = self.limits.deadline.as_secs();
        match trouble {
            Trouble::Unreachable(reason) => {
                format!("{host} cannot be reached, and nothing ran there: {reason}")
            }
            Trouble::Lost(reason) => format!(
                "the connection to {host} was lost before the answer came: {reason}. What ran may have been \
                 done; it is ended when that host notices. Other hosts are not concerned."
            ),
            Trouble::Busy => format!("{host} is busy: too many calls wait for it; try again"),
            Trouble::Late { confirmed: true } => {
                format!(
                    "no answer of {host} within {seconds} s; the run was ended there (--deadline allows more)"
                )
            }
            Trouble::Late { confirmed: false } => format!(
                "no answer of {host} within {seconds} s; whether the run was ended there is not known: it may \
                 still be running (--deadline allows more)"
            ),
            Trouble::Cancelled => "cancelled".to_owned(),
        }
    }
}

/// What a call asks for.
enum Call {
    Hosts,
    On { host: Arc<Host>, params: Value },
    Misused(String),
}

fn state(host: &Host) -> Value {
    let known = host.known();
    let word = match (&known.trouble, host.is_connected()) {
        (Some(_), _) => "down",
        (None, true) => "up",
        (None, false) => "connecting",
    };
    let mut state = json!({"name": host.name(), "state": word});
    if let Some(state) = state.as_object_mut() {
        state.extend(known.tools.map(|tools| ("tools".to_owned(), tools.len().into())));
        state.extend(known.trouble.map(|trouble| ("error".to_owned(), trouble.into())));
    }
    state
}
