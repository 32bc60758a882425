//! MCP in the stateless form (2026-07-28): one POST for one request.

use crate::http::{self, Request, Response};
use serde_json::{Value, json};
use std::net::TcpStream;

/// The revision that [`Endpoint`] speaks.
pub const VERSION: &str = "2026-07-28";

/// A daemon's HTTP endpoint, and the token to present there.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `127.0.0.1:PORT`
    pub address: String,
    /// `/mcp`
    pub path: String,
    /// The secret.
    pub token: Option<String>,
}

impl Endpoint {
    /// The endpoint of a URL.
    pub fn of(url: &str, token: Option<&str>) -> Self {
        let rest = url.strip_prefix("http://").expect("an http URL");
        let (address, path) = rest.split_once('/').expect("a URL with a path");
        Self { address: address.into(), path: format!("/{path}"), token: token.map(str::to_owned) }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// The same endpoint with another token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// A request as a client sends it, with every header that the protocol wants.
    pub fn request(&self, method: &str, params: Value) -> Request {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "gloveport-tests", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = Request::post(&self.path, message.to_string())
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", VERSION)
            .header("Mcp-Method", method);
        if let Some(name) = params["name"].as_str() {
            request = request.header("Mcp-Name", name);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", &format!("Bearer {token}"));
        }
        request
    }

    /// Sends a request; the whole answer.
    ///
    /// # Panics
    /// Where the daemon does not answer in HTTP.
    pub fn send(&self, request: &Request) -> Response {
        request.send(&self.address).expect("an answer of the daemon")
    }

    /// Sends a request; its JSON-RPC answer, a result or an error.
    ///
    /// # Panics
    /// Where there is none.
    pub fn ask(&self, method: &str, params: Value) -> Value {
        answer(&self.send(&self.request(method, params)))
    }

    /// Calls a tool.
    ///
    /// # Panics
    /// Where the answer is an error of the protocol.
    pub fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        result(self.ask("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    /// Begins a call. Dropping the stream disconnects; [`finish`] reads the result.
    ///
    /// # Panics
    /// Where the daemon does not listen.
    pub fn begin(&self, tool: &str, arguments: Value) -> TcpStream {
        let request = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        request.open(&self.address).expect("a connection to the daemon")
    }

    /// The names of all tools, the daemon's own among them.
    pub fn tools(&self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
    }
}

/// The result of a call that was begun.
///
/// # Panics
/// Where none comes.
pub fn finish(mut stream: TcpStream) -> ToolResult {
    result(answer(&http::read(&mut stream).expect("an answer of the daemon")))
}

fn answer(response: &Response) -> Value {
    // Progress comes before the answer, which is the last message.
    response.messages().pop().unwrap_or_else(|| panic!("no JSON-RPC answer in {response:?}"))
}

fn result(answer: Value) -> ToolResult {
    match answer.get("result") {
        Some(result) => ToolResult(result.clone()),
        None => panic!("not a result: {answer:#}"),
    }
}

/// The result of a tool's call.
#[derive(Debug, Clone)]
pub struct ToolResult(pub Value);

impl ToolResult {
    /// Whether it says that the call failed.
    pub fn is_error(&self) -> bool {
        self.0["isError"].as_bool().unwrap_or(false)
    }

    /// Its text content.
    pub fn text(&self) -> String {
        let blocks = self.0["content"].as_array().cloned().unwrap_or_default();
        blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Its structured content.
    pub fn structured(&self) -> &Value {
        &self.0["structuredContent"]
    }

    /// A step of a catalogue action's result.
    pub fn step(&self, index: usize) -> &Value {
        &self.structured()["steps"][index]
    }

    /// What the first step printed, without the line ends around it.
    ///
    /// # Panics
    /// With the whole result, where there is no such thing.
    pub fn stdout(&self) -> String {
        match self.step(0)["stdout"].as_str() {
            Some(text) => text.trim().to_owned(),
            None => panic!("no output in {:#}", self.0),
        }
    }
}
