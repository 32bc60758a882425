#![forbid(unsafe_code)]
//! The revisions with `initialize`: 2024-11-05 to 2025-11-25. JSON-RPC errors go with HTTP status 200:
//! clients of this era take a 4xx for a broken transport.

use super::call::User;
use super::envelope::{Answer, Members, Message};
use super::errors::{INVALID_REQUEST, RpcError};
use super::sessions::Client;
use super::tool_call::ToolCall;
use super::{Exchange, INSTRUCTIONS, LEGACY, Reply, client_name, elicit, server_info, stream};
use crate::http::reply;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

/// The header that names a session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Answers one message of this era.
pub async fn answer(exchange: Exchange, message: Message) -> Response {
    if message.method == "initialize" {
        // A session id that comes with it is an old one: a fresh session begins.
        return initialize(&exchange, &message);
    }
    let session = match Session::of(&exchange) {
        Ok(session) => session,
        Err(Unknown) => return unknown_session(),
    };
    let Some(id) = message.id.clone() else {
        if message.method == "notifications/cancelled"
            && let (Some(session), Some(request)) = (&session, message.params.get("requestId"))
        {
            exchange.state.sessions.cancel(&session.id, &exchange.principal.key(), request);
        }
        return reply::accepted();
    };
    let result = match message.method.as_str() {
        "ping" => Ok(reply::encode(&Reply::new(&id, json!({})))),
        "tools/list" => exchange.list_tools(&id, &message.params, Members::new()),
        "tools/call" => match ToolCall::read(message.params) {
            Ok(call) => {
                let sessions = &exchange.state.sessions;
                let running = session
                    .as_ref()
                    .and_then(|session| sessions.begin(&session.id, &exchange.principal.key(), &id));
                let client = session.map(|session| session.client).unwrap_or_default();
                let user = if client.elicits { User::Told } else { User::Unreachable };
                let invocation = exchange.invocation(client.name, user, &id);
                return stream::answer(invocation, call, id, |result| result, running).await;
            }
            Err(error) => Err(error),
        },
        method => Err(RpcError::method(method)),
    };
    match result {
        Ok(body) => reply::encoded(200, body),
        Err(error) => reply::error(200, Some(&id), &error),
    }
}

/// Takes a client's answer to a question that its call has raised. All that an answer can do is withdraw a call
/// of the same caller that still waits for a person at the host.
pub fn take_answer(exchange: &Exchange, answer: &Answer) -> Response {
    match Session::of(exchange) {
        Err(Unknown) => unknown_session(),
        Ok(None) => {
            let error =
                RpcError::new(INVALID_REQUEST, "an answer without a session, where alone this server asks");
            reply::error(400, Some(&answer.id), &error)
        }
        Ok(Some(_)) => {
            if let Some(run) = elicit::withdrawn(answer) {
                exchange.state.ledger.withdraw(run, &exchange.principal.key());
            }
            reply::accepted()
        }
    }
}

/// Ends the session that a DELETE names.
pub fn delete(exchange: &Exchange) -> Response {
    match Session::of(exchange) {
        Ok(None) => reply::method_not_allowed(),
        Ok(Some(session)) => {
            exchange.state.sessions.close(&session.id, &exchange.principal.key());
            reply::empty(StatusCode::NO_CONTENT)
        }
        Err(Unknown) => unknown_session(),
    }
}

fn unknown_session() -> Response {
    let error = RpcError::new(INVALID_REQUEST, "this session is over: initialize again");
    reply::error(404, None, &error)
}

/// The session of a request.
struct Session {
    id: String,
    client: Client,
}

/// A request names a session that is not, or is not its caller's.
struct Unknown;

impl Session {
    /// None where the request names none: it is served all the same.
    fn of(exchange: &Exchange) -> Result<Option<Self>, Unknown> {
        let Some(id) = named_session(&exchange.headers) else {
            return Ok(None);
        };
        let client = exchange.state.sessions.client(id, &exchange.principal.key()).ok_or(Unknown)?;
        Ok(Some(Self { id: id.to_owned(), client }))
    }
}

/// Several ids name no session, and so none that exists.
fn named_session(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(&SESSION).iter();
    let first = values.next()?;
    Some(if values.next().is_some() { "" } else { first.to_str().unwrap_or_default() })
}

fn initialize(exchange: &Exchange, message: &Message) -> Response {
    let Some(id) = &message.id else {
        return reply::accepted();
    };
    let Some(requested) = message.params.get("protocolVersion").and_then(Value::as_str) else {
        let error = RpcError::params("protocolVersion: required, a text");
        return reply::error(200, Some(id), &error);
    };
    let newest = LEGACY.last().copied().unwrap_or_default();
    let result = json!({
        "protocolVersion": if LEGACY.contains(&requested) { requested } else { newest },
        "capabilities": {"tools": {}},
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    });
    let mut response = reply::json(200, &Reply::new(id, result));
    let client = Client {
        name: client_name(message.params.get("clientInfo")),
        elicits: elicit::is_declared(message.params.get("capabilities")),
    };
    let session = exchange.state.sessions.open(&exchange.principal.key(), client);
    if let Some(session) = session.and_then(|session| HeaderValue::from_str(&session).ok()) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}
