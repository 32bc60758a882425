//! Requests that no client library would send, and what comes back, in the form in which a table states it.

use gloveport_tests::http::{Request, Response};
use gloveport_tests::mcp::Endpoint;
use serde_json::{Value, json};

/// The content type of a document.
pub const JSON: &str = "application/json";
/// The content type of a stream.
pub const STREAM: &str = "text/event-stream";
/// No content type, and no body.
pub const EMPTY: &str = "";

/// Status, content type and error code of an answer; a code of 0 is none.
pub type Outcome = (u16, &'static str, i64);

/// A result.
pub const RESULT: Outcome = (200, JSON, 0);
/// What a notification gets.
pub const ACCEPTED: Outcome = (202, EMPTY, 0);
/// Not JSON.
pub const PARSE: Outcome = (400, JSON, -32700);
/// JSON, and no request.
pub const INVALID: Outcome = (400, JSON, -32600);

/// A request as a client of the `initialize` revisions sends it, without a session.
pub fn legacy(endpoint: &Endpoint, id: Value, method: &str, params: Value) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    body(endpoint, message.to_string())
}

/// A notification of those revisions.
pub fn notification(endpoint: &Endpoint, method: &str, params: Value) -> Request {
    body(endpoint, json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
}

/// Any bytes, with the headers that every request needs.
pub fn body(endpoint: &Endpoint, bytes: impl Into<Vec<u8>>) -> Request {
    let request = Request::post(&endpoint.path, bytes)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream");
    match &endpoint.token {
        Some(token) => request.header("Authorization", &format!("Bearer {token}")),
        None => request,
    }
}

/// The same request with another value of a header.
pub fn with(request: Request, name: &str, value: &str) -> Request {
    request.without(name).header(name, value)
}

/// Status, content type and error code of an answer.
///
/// # Panics
/// Where it contradicts itself: a body without a content type.
pub fn outcome(response: &Response) -> (u16, String, i64) {
    let kind = response.header("content-type").unwrap_or_default();
    assert!(!kind.is_empty() || response.body.is_empty(), "a body without a content type: {response:?}");
    let code = response.messages().last().and_then(|answer| answer["error"]["code"].as_i64());
    (response.status, kind.to_owned(), code.unwrap_or(0))
}

/// Sends each request of a table and compares.
///
/// # Panics
/// With all rows that differ.
pub fn check<'a>(endpoint: &Endpoint, rows: impl IntoIterator<Item = (&'a str, Request, Outcome)>) {
    let mut wrong = Vec::new();
    for (what, request, (status, kind, code)) in rows {
        let response = endpoint.send(&request);
        let got = outcome(&response);
        if got != (status, kind.to_owned(), code) {
            wrong.push(format!("{what}: {got:?}, not {:?}; {}", (status, kind, code), response.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
