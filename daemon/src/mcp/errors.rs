#![forbid(unsafe_code)]
//! JSON-RPC errors: the codes in use, and the HTTP status that each is sent with.

use serde_json::{Value, json};

/// The body is no JSON.
pub const PARSE: i64 = -32700;
/// The JSON is no request.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method's parameters do not fit; also an unknown tool.
pub const INVALID_PARAMS: i64 = -32602;
/// A header and the body disagree (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The protocol version is not served (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What is wrong and what would be right.
    pub message: String,
    /// What a program can use of it.
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// [`INVALID_PARAMS`].
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// [`METHOD_NOT_FOUND`].
    pub fn method(method: &str) -> Self {
        let shown: String = method.chars().take(64).collect();
        Self::new(METHOD_NOT_FOUND, format!("the method `{shown}` does not exist here"))
    }

    /// [`UNSUPPORTED_VERSION`], with what is served instead.
    pub fn version(requested: &str, supported: &[&str]) -> Self {
        let requested: String = requested.chars().take(64).collect();
        Self {
            code: UNSUPPORTED_VERSION,
            message: format!("protocol version {requested:?} is not served; {} is", supported.join(", ")),
            data: Some(json!({"supported": supported, "requested": requested})),
        }
    }

    /// The HTTP status of an error that is found before the method is dispatched.
    pub fn ladder_status(&self) -> u16 {
        if self.code == METHOD_NOT_FOUND { 404 } else { 400 }
    }

    /// The message. Without an id the member is left out: MCP's schema has no `null` there.
    pub fn message(&self, id: Option<&Value>) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(data), Some(error)) = (&self.data, error.as_object_mut()) {
            error.insert("data".to_owned(), data.clone());
        }
        match id {
            Some(id) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
            None => json!({"jsonrpc": "2.0", "error": error}),
        }
    }
}
