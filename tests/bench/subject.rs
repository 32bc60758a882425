//! What is measured: a pair with a catalogue, and a call of it over a connection that is kept.

use gloveport_tests::kept::Kept;
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The program whose start is measured: it does nothing.
pub const PROGRAM: &str = "/usr/bin/true";

/// A pair with the action `true`, and calls for as many at once as anything here makes.
pub fn pair() -> Pair {
    let scene = Scene::new();
    let action = scene.exec("true", &[PROGRAM]).with(json!({"concurrency": 32}));
    scene.pair(&[action])
}

/// A message that calls a tool.
pub fn call(tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// A client that calls one tool again and again.
pub struct Client {
    connection: Kept,
    message: String,
}

impl Client {
    /// Connects.
    pub fn new(endpoint: &Endpoint, tool: &str, arguments: Value) -> Self {
        Self { connection: Kept::open(endpoint), message: call(tool, arguments) }
    }

    /// Connects and begins a session, as a server that keeps them wants it.
    ///
    /// # Panics
    /// Where it gives none.
    pub fn in_session(endpoint: &Endpoint, tool: &str, arguments: Value) -> Self {
        let mut client = Self::new(endpoint, tool, arguments);
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "gloveport-bench", "version": "1"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = client.connection.ask(&initialize.to_string());
        let session = answer.session.clone().unwrap_or_else(|| panic!("no session: {answer:?}"));
        client.connection.add_header("Mcp-Session-Id", &session);
        client.connection.ask(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// Calls; the result's text.
    ///
    /// # Panics
    /// With the answer, where the call failed: a refusal is quick, and must not pass for a run.
    pub fn call(&mut self) -> String {
        let answer = self.connection.ask(&self.message);
        assert!(answer.status.ends_with("200 OK") && answer.body.contains("\"isError\":false"), "{answer:?}");
        answer.body
    }
}

/// Runs a command to its end, as posix_spawn(3) and waitpid(2) do: the standard library starts with them
/// what needs nothing else.
///
/// # Panics
/// Where it fails.
pub fn run(program: &str, words: &[&str]) {
    let status = Command::new(program).args(words).status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "{program} {words:?}: {status:?}");
}

/// Whether a command works here, without a word.
pub fn works(program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
