#![forbid(unsafe_code)]
//! Responses: JSON, nothing, or a stream of server-sent events.

use crate::mcp::errors::RpcError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::Frame;
use serde::Serialize;
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

fn with_type(status: u16, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A JSON document that was encoded already.
pub fn encoded(status: u16, body: impl Into<Body>) -> Response {
    with_type(status, "application/json", body.into())
}

/// A JSON document.
pub fn json(status: u16, body: &impl Serialize) -> Response {
    encoded(status, encode(body))
}

/// A JSON-RPC error.
pub fn error(status: u16, id: Option<&Value>, error: &RpcError) -> Response {
    json(status, &error.message(id))
}

/// 202 without a body: what a notification gets.
pub fn accepted() -> Response {
    empty(StatusCode::ACCEPTED)
}

/// A status without a body.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// 405: this endpoint takes POST. (DELETE ends a session of the older protocol; it is not advertised, and
/// without a session it is refused like the rest.)
pub fn method_not_allowed() -> Response {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Adds the challenge of a 401. There is no OAuth server to point to.
pub fn challenge(mut response: Response) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Encodes a document. Only a map with keys that are no texts could fail, and none is built here.
pub fn encode(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// What stands before and after a message in a server-sent event. JSON holds no line break, so one `data` line
/// is enough.
const EVENT: (&[u8], &[u8]) = (b"event: message\ndata: ", b"\n\n");

/// One message as a server-sent event.
pub fn event(message: &[u8]) -> Bytes {
    [EVENT.0, message, EVENT.1].concat().into()
}

/// One message as a server-sent event, in parts: a large one is not copied.
pub fn event_of(message: Bytes) -> [Bytes; 3] {
    [Bytes::from_static(EVENT.0), message, Bytes::from_static(EVENT.1)]
}

/// A comment that keeps proxies from closing a silent stream.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// A stream of what comes through the channel. It ends when the sender is dropped; the sender sees by
/// `closed()` that the client went away.
pub fn stream(events: mpsc::Receiver<Bytes>) -> Response {
    let mut response = with_type(200, "text/event-stream", Body::new(Events(events)));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

struct Events(mpsc::Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
