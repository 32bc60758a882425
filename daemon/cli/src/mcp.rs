#![forbid(unsafe_code)]
//! The client's side of MCP, stateless (2026-07-28): one POST for one request.

use crate::failure::{Failure, REFUSED, UNREACHABLE};
use crate::http::{self, Answer, Endpoint, sse};
use crate::{accounts, out};
use clap::Args;
use gloveportd::paths::Paths;
use serde_json::{Map, Value, json};
use std::io;
use std::time::Duration;

/// The protocol that this client speaks.
pub const PROTOCOL: &str = "2026-07-28";
/// Pages of tools that are read at most: a daemon that never ends its list must not hold the caller.
const PAGES: usize = 1000;

/// Which daemon to ask.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// The daemon's URL; without one, this host's daemon is asked over its local socket
    #[arg(long, env = "GLOVEPORT_URL", value_name = "URL")]
    pub url: Option<String>,
    /// A token for it; the variable is better, for other users can see a command's arguments
    #[arg(long, env = "GLOVEPORT_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// A daemon, and how to speak to it.
pub struct Daemon {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The token to present.
    pub token: Option<String>,
}

impl DaemonArgs {
    /// The daemon that the arguments or the environment name, else this host's, as a local user.
    ///
    /// # Errors
    /// The URL is none.
    pub fn daemon(&self, paths: &Paths) -> Result<Daemon, Failure> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let endpoint = match given(&self.url) {
            Some(url) => Endpoint::parse(&url).map_err(Failure::usage)?,
            None => Endpoint::local(&paths.mcp_socket),
        };
        Ok(Daemon { endpoint, token: given(&self.token) })
    }
}

impl Daemon {
    /// Opens a connection.
    ///
    /// # Errors
    /// Nothing answers there: exit code 69.
    pub fn connect(&self) -> Result<http::Stream, Failure> {
        self.endpoint.connect().map_err(|error| self.unreachable(&error))
    }

    /// Why there is no answer, and what to do: exit code 69.
    pub fn unreachable(&self, error: &io::Error) -> Failure {
        unreachable(&self.endpoint, error)
    }

    /// Why an answer is a refusal, and what to do: exit code 125.
    pub fn refusal(&self, status: u16, body: &[u8]) -> Failure {
        let reply: Value = serde_json::from_slice(body).unwrap_or_default();
        let message = reply.pointer("/error/message").and_then(Value::as_str).map(out::printable);
        refusal(status, message, self)
    }

    /// One request and its result. Messages about its progress go to `on_progress`.
    ///
    /// # Errors
    /// The daemon cannot be reached (exit code 69), or refuses the request (exit code 125).
    pub fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        timeout: Option<Duration>,
        mut on_progress: impl FnMut(&str),
    ) -> Result<Value, Failure> {
        let name = params.get("name").and_then(Value::as_str).map(header_value);
        let message = envelope(method, params);
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut headers = vec![("MCP-Protocol-Version", PROTOCOL), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));

        let stream = self.connect()?;
        let broken = |error: io::Error| self.unreachable(&error);
        stream.set_read_timeout(timeout).map_err(broken)?;
        let mut answer = http::send(stream, &self.endpoint, "POST", &headers, message.to_string().as_bytes())
            .map_err(broken)?;
        let reply = read_reply(&mut answer, &mut on_progress).map_err(broken)?;
        result_of(answer.status, reply, self)
    }

    /// All tools, page by page.
    ///
    /// # Errors
    /// As [`Daemon::request`].
    pub fn tools(&self) -> Result<Vec<Value>, Failure> {
        let mut tools = Vec::new();
        let mut cursor: Option<Value> = None;
        for _ in 0..PAGES {
            let params = cursor.take().map(|cursor| ("cursor".to_owned(), cursor)).into_iter().collect();
            let mut page = self.request("tools/list", params, Some(Duration::from_secs(30)), |_| {})?;
            if let Some(Value::Array(found)) = page.get_mut("tools").map(Value::take) {
                tools.extend(found);
            }
            match page.get_mut("nextCursor").map(Value::take) {
                Some(next) if next.is_string() => cursor = Some(next),
                _ => return Ok(tools),
            }
        }
        Err(Failure::new(format!("the daemon's list of tools has more than {PAGES} pages")).code(REFUSED))
    }
}

/// A request with what the protocol wants in each.
fn envelope(method: &str, mut params: Map<String, Value>) -> Value {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("io.modelcontextprotocol/protocolVersion".into(), PROTOCOL.into());
        meta.insert("io.modelcontextprotocol/clientCapabilities".into(), json!({}));
        meta.insert(
            "io.modelcontextprotocol/clientInfo".into(),
            json!({"name": "gloveport", "version": env!("CARGO_PKG_VERSION")}),
        );
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The reply, out of a document or a stream; `None` where the body is no JSON.
fn read_reply(answer: &mut Answer, on_progress: &mut impl FnMut(&str)) -> io::Result<Option<Value>> {
    if !answer.is_event_stream() {
        return Ok(serde_json::from_slice(&answer.read_whole()?).ok());
    }
    while let Some(data) = sse::next_event(answer.body())? {
        let Ok(message) = serde_json::from_str::<Value>(&data) else { continue };
        if message.get("method").is_none() {
            return Ok(Some(message));
        }
        if let Some(text) = message.pointer("/params/message").and_then(Value::as_str) {
            on_progress(text);
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon ended its answer before the result"))
}

fn result_of(status: u16, reply: Option<Value>, daemon: &Daemon) -> Result<Value, Failure> {
    let mut reply = reply.unwrap_or(Value::Null);
    if let Some(result) = reply.get_mut("result") {
        return Ok(result.take());
    }
    let message = reply.pointer("/error/message").and_then(Value::as_str).map(out::printable);
    Err(refusal(status, message, daemon))
}

fn refusal(status: u16, message: Option<String>, daemon: &Daemon) -> Failure {
    let refused = |what: String| Failure::new(what).code(REFUSED);
    match (status, message) {
        (403, _) if daemon.endpoint.is_local() && daemon.token.is_none() => refused(format!(
            "the daemon does not serve the local user {}",
            accounts::name_of(rustix::process::getuid().as_raw())
        ))
        .remedy("as root: gloveport token allow-user USER; or set GLOVEPORT_URL and GLOVEPORT_TOKEN"),
        (401, _) if daemon.endpoint.path().starts_with("/mcp/t/") => {
            refused("the daemon does not accept the token in the URL".to_owned())
                .remedy("it may be revoked, expired or not made with `--via path`: `gloveport token list`")
        }
        (401, _) if daemon.token.is_none() => refused("the daemon wants a token".to_owned())
            .remedy("set GLOVEPORT_TOKEN to what `gloveport token add --name NAME` printed"),
        (401, _) => refused("the daemon does not accept this token".to_owned())
            .remedy("it may be revoked, expired or not made for the header: `gloveport token list`"),
        (_, Some(message)) => refused(message),
        (status, None) => refused(format!("{} answers with HTTP status {status}", daemon.endpoint))
            .remedy("is that gloveport's URL, with the path /mcp?"),
    }
}

fn unreachable(endpoint: &Endpoint, error: &io::Error) -> Failure {
    let (reason, remedy) = match error.kind() {
        io::ErrorKind::NotFound if endpoint.is_local() => (
            "there is no such socket".to_owned(),
            "start the daemon (`gloveport up`, or `systemctl start gloveport.socket`), or set GLOVEPORT_URL; \
             with a state directory add --state DIR",
        ),
        io::ErrorKind::ConnectionRefused => (
            "nothing listens there".to_owned(),
            "is the daemon running? `gloveport status`, `gloveport doctor`",
        ),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            ("no answer in time".to_owned(), "`gloveport doctor` shows what is wrong")
        }
        _ => (error.to_string(), "`gloveport doctor` shows what is wrong"),
    };
    Failure::new(format!("cannot reach the daemon at {endpoint}: {reason}")).remedy(remedy).code(UNREACHABLE)
}

/// A value that fits into a header: as it is, or in the protocol's base64 form.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    if plain && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", crate::base64::encode(text.as_bytes(), crate::base64::STANDARD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_names_its_protocol_and_keeps_its_own_meta() {
        let params = json!({"name": "x", "_meta": {"progressToken": 1}});
        let Value::Object(params) = params else { panic!() };
        let message = envelope("tools/call", params);
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], PROTOCOL);
        assert_eq!(message["params"]["_meta"]["progressToken"], 1);
        assert_eq!(message["params"]["name"], "x");
    }

    #[test]
    fn names_that_a_header_cannot_hold_are_encoded() {
        assert_eq!(header_value("service_log"), "service_log");
        assert_eq!(header_value("größe"), "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(header_value(" x"), "=?base64?IHg=?=");
        assert_eq!(header_value("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
    }

    #[test]
    fn a_refusal_says_why_and_has_its_exit_code() {
        let daemon = Daemon { endpoint: Endpoint::parse("http://localhost:1/mcp").unwrap(), token: None };
        let reply = json!({"error": {"code": -32602, "message": "Unknown tool: x"}});
        let failure = result_of(200, Some(reply), &daemon).unwrap_err();
        assert_eq!((failure.exit_code(), failure.what()), (REFUSED, "Unknown tool: x"));
        assert_eq!(result_of(401, None, &daemon).unwrap_err().exit_code(), REFUSED);
        assert_eq!(result_of(200, Some(json!({"result": {"a": 1}})), &daemon).unwrap(), json!({"a": 1}));
    }
}
