#![forbid(unsafe_code)]
//! Passes messages on to the daemon, each over a connection of its own, and its answers back.

use super::framing::Output;
use super::message::{INTERNAL, INVALID, Message, Refusal};
use super::{Service, locked};
use crate::failure::Failure;
use crate::http::{self, Answer, sse};
use crate::mcp::{Daemon, header_value};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests at once. The daemon has a bound of its own; this one bounds our threads.
const IN_FLIGHT: usize = 64;
/// How long the daemon may take where it has nothing to run: for the beginning and the end of a session.
const QUICK: Duration = Duration::from_secs(10);
/// The status of an answer to what is no message of the protocol.
const BAD_REQUEST: u16 = 400;
/// The request whose answer never ends by itself.
const SUBSCRIPTION: &str = "subscriptions/listen";

/// A bridge between one client and the daemon.
pub struct Bridge {
    daemon: Daemon,
    output: Output,
    session: Mutex<Session>,
    requests: Mutex<HashMap<String, Request>>,
    one_less: Condvar,
}

/// What the protocols up to 2025-11-25 agree on at the beginning. The client knows nothing of the session.
#[derive(Default)]
struct Session {
    /// The client's `initialize`, for another session when the daemon has lost this one.
    opening: Option<Vec<u8>>,
    id: Option<String>,
    protocol: Option<String>,
}

/// A request that is under way.
#[derive(Default)]
struct Request {
    /// Its connection, once there is one.
    stream: Option<http::Stream>,
    is_cancelled: bool,
    /// Whether its answer goes on until somebody ends it.
    is_endless: bool,
}

/// An error that bears no id.
#[derive(Deserialize)]
struct Unnamed {
    id: Option<Value>,
    error: Value,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
}

/// Requests run at once, each in a thread; what the client says about its session keeps its order.
impl Service for Bridge {
    fn output(&self) -> &Output {
        &self.output
    }

    fn take(self: &Arc<Self>, bytes: Vec<u8>) -> io::Result<()> {
        let message = match Message::parse(&bytes) {
            Ok(message) => message,
            Err((code, text)) => return self.refuse(&Value::Null, code, text),
        };
        if let Some(id) = &message.cancelled {
            self.cancel(id);
            return Ok(());
        }
        let (Some(id), Some(method)) = (message.id.clone(), message.method.as_deref()) else {
            // A notification, or an answer to a question of the daemon's: nobody waits for what comes of it.
            let _ = self.exchange(&message, &bytes, None);
            return Ok(());
        };
        if method == "initialize" && message.protocol.is_none() {
            return self.open_session(&message, &id, bytes);
        }
        let key = id.to_string();
        if let Err((code, text)) = self.admit(&key, method == SUBSCRIPTION) {
            return self.refuse(&id, code, text);
        }
        let (bridge, waiting) = (Arc::clone(self), id.clone());
        let run = move || bridge.run(&message, &bytes, &waiting);
        if std::thread::Builder::new().spawn(run).is_err() {
            locked(&self.requests).remove(&key);
            return self.refuse(&id, INTERNAL, "this host has no room for another thread");
        }
        Ok(())
    }

    fn finish(&self, grace: Duration) {
        let deadline = Instant::now() + grace;
        let mut requests = locked(&self.requests);
        while requests.values().any(|request| !request.is_endless) {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
            requests = self.one_less.wait_timeout(requests, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        for request in requests.values_mut() {
            request.is_cancelled = true;
            if let Some(stream) = &request.stream {
                stream.close();
            }
        }
        drop(requests);
        if locked(&self.session).id.is_some() {
            // The daemon would forget it by itself, later.
            let _ = self.send("DELETE", &[], None, b"");
        }
    }
}

impl Bridge {
    /// A bridge to that daemon.
    pub fn new(daemon: Daemon) -> Self {
        Self {
            daemon,
            output: Output::default(),
            session: Mutex::default(),
            requests: Mutex::default(),
            one_less: Condvar::new(),
        }
    }

    /// Notes that a request is under way.
    fn admit(&self, key: &str, is_endless: bool) -> Result<(), Refusal> {
        let mut requests = locked(&self.requests);
        if requests.len() >= IN_FLIGHT {
            return Err((INTERNAL, "too many requests at once: wait for an answer"));
        }
        if requests.contains_key(key) {
            return Err((INVALID, "a request with this id is under way"));
        }
        requests.insert(key.to_owned(), Request { is_endless, ..Request::default() });
        Ok(())
    }

    /// A request from its beginning to its end.
    fn run(&self, message: &Message, bytes: &[u8], id: &Value) {
        let key = id.to_string();
        let result = self.exchange(message, bytes, Some((id, &key)));
        let is_cancelled = locked(&self.requests).remove(&key).is_some_and(|request| request.is_cancelled);
        let sent = match result {
            Err(failure) if !is_cancelled => self.refuse(id, INTERNAL, &failure.to_string()),
            _ => Ok(()),
        };
        self.one_less.notify_all();
        if sent.is_err() {
            // Nobody reads the answers: what still runs, runs for nobody.
            std::process::exit(0);
        }
    }

    fn refuse(&self, id: &Value, code: i64, text: &str) -> io::Result<()> {
        self.output.refuse(id, code, text)
    }

    /// Ends a request by closing its connection: the daemon ends the run and no answer comes any more.
    fn cancel(&self, id: &Value) {
        if let Some(request) = locked(&self.requests).get_mut(&id.to_string()) {
            request.is_cancelled = true;
            if let Some(stream) = &request.stream {
                stream.close();
            }
        }
    }

    fn open_session(&self, message: &Message, id: &Value, bytes: Vec<u8>) -> io::Result<()> {
        *locked(&self.session) = Session { opening: Some(bytes.clone()), ..Session::default() };
        match self.initialize(message, &bytes) {
            Ok(reply) => self.output.send(&reply),
            Err(failure) => self.refuse(id, INTERNAL, &failure.to_string()),
        }
    }

    /// Opens a session at the daemon and returns its answer.
    fn initialize(&self, message: &Message, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut answer =
            self.send("POST", &[], None, bytes).map_err(|error| self.daemon.unreachable(&error))?;
        let session = answer.header("mcp-session-id").map(str::to_owned);
        let mut reply = Vec::new();
        self.replies(&mut answer, message.id.as_ref(), &mut |bytes| {
            reply = bytes.to_vec();
            Ok(())
        })?;
        let parsed: Value = serde_json::from_slice(&reply).unwrap_or_default();
        let protocol = parsed.pointer("/result/protocolVersion").and_then(Value::as_str).map(str::to_owned);
        let mut held = locked(&self.session);
        (held.id, held.protocol) = (session, protocol);
        Ok(reply)
    }

    /// Sends a message and passes its answers on; `request` is its id and the key that it is under way by.
    fn exchange(
        &self,
        message: &Message,
        bytes: &[u8],
        request: Option<(&Value, &str)>,
    ) -> Result<(), Failure> {
        let mut answer = self.ask(message, bytes, request)?;
        if answer.status == 404 && self.session_was_lost(message, &mut answer)? {
            answer = self.ask(message, bytes, request)?;
        }
        match request {
            Some((id, _)) => self.replies(&mut answer, Some(id), &mut |bytes| self.output.send(bytes)),
            None => Ok(()),
        }
    }

    fn ask(
        &self,
        message: &Message,
        bytes: &[u8],
        request: Option<(&Value, &str)>,
    ) -> Result<Answer, Failure> {
        let method = message.method.as_deref().unwrap_or_default();
        let name = message.name.as_deref().map(header_value);
        let mut headers = Vec::new();
        if let Some(protocol) = &message.protocol {
            headers.extend([("MCP-Protocol-Version", protocol.as_str()), ("Mcp-Method", method)]);
            headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        }
        self.send("POST", &headers, request.map(|(_, key)| key), bytes)
            .map_err(|error| self.daemon.unreachable(&error))
    }

    /// Sends one HTTP request, in the session where the headers name no protocol.
    fn send(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        key: Option<&str>,
        body: &[u8],
    ) -> io::Result<Answer> {
        let (session, protocol) = {
            let held = locked(&self.session);
            (held.id.clone(), held.protocol.clone())
        };
        let bearer = self.daemon.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut all = headers.to_vec();
        all.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        if headers.is_empty() {
            all.extend(session.as_deref().map(|session| ("Mcp-Session-Id", session)));
            all.extend(protocol.as_deref().map(|protocol| ("MCP-Protocol-Version", protocol)));
        }
        let stream = self.daemon.endpoint.connect()?;
        match key {
            Some(key) => self.register(key, &stream)?,
            None => stream.set_read_timeout(Some(QUICK))?,
        }
        http::send(stream, &self.daemon.endpoint, method, &all, body)
    }

    /// Notes the connection of a request, so that it can be cancelled from now on.
    fn register(&self, key: &str, stream: &http::Stream) -> io::Result<()> {
        if let Some(request) = locked(&self.requests).get_mut(key) {
            if request.is_cancelled {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"));
            }
            request.stream = Some(stream.try_clone()?);
        }
        Ok(())
    }

    /// Whether a 404 means that the daemon has forgotten the session (it was started anew), and another one
    /// is open now.
    fn session_was_lost(&self, message: &Message, answer: &mut Answer) -> Result<bool, Failure> {
        let opening = {
            let held = locked(&self.session);
            held.id.as_ref().and(held.opening.clone()).filter(|_| message.protocol.is_none())
        };
        let Some(opening) = opening else { return Ok(false) };
        // The rest of the refused answer is nobody's business.
        let _ = answer.read_whole();
        *locked(&self.session) = Session { opening: Some(opening.clone()), ..Session::default() };
        let Ok(first) = Message::parse(&opening) else { return Ok(false) };
        self.initialize(&first, &opening)?;
        Ok(true)
    }

    /// Passes every message of an answer on. The last one must be the answer to `id`.
    fn replies(
        &self,
        answer: &mut Answer,
        id: Option<&Value>,
        pass: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let broken = |error: io::Error| self.daemon.unreachable(&error);
        let is_last = |bytes: &[u8]| {
            serde_json::from_slice::<Reply>(bytes)
                .is_ok_and(|reply| reply.method.is_none() && reply.id.as_ref() == id)
        };
        if !answer.is_event_stream() {
            let body = answer.read_whole().map_err(broken)?;
            if is_last(&body) {
                return pass(&body).map_err(broken);
            }
            // What the daemon could not read to the end it answers without an id; here it is known.
            if let (BAD_REQUEST, Some(id), Ok(Unnamed { id: None, error })) =
                (answer.status, id, serde_json::from_slice(&body))
            {
                let named = json!({"jsonrpc": "2.0", "id": id, "error": error});
                return pass(named.to_string().as_bytes()).map_err(broken);
            }
            return Err(self.daemon.refusal(answer.status, &body));
        }
        while let Some(event) = sse::next_event(answer.body()).map_err(broken)? {
            pass(event.as_bytes()).map_err(broken)?;
            if is_last(event.as_bytes()) {
                return Ok(());
            }
        }
        Err(Failure::new("the daemon ended its answer before the result"))
    }
}
