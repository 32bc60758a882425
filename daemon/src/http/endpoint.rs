#![forbid(unsafe_code)]
//! One request at `/mcp`: method, caller, form, body; then the protocol.

use super::auth::{Denied, Principal};
use super::body::BodyError;
use super::{AppState, Peer, negotiate, reply};
use crate::mcp::envelope::Incoming;
use crate::mcp::errors::{INVALID_REQUEST, RpcError};
use crate::mcp::{self, Exchange};
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use gloveport_contract::packet::{Caller, Note};

/// `/mcp`.
pub async fn plain(State(state): State<AppState>, request: Request) -> Response {
    serve(state, request, None).await
}

/// `/mcp/t/SECRET`, for clients whose settings hold a URL and nothing else. The path is in no log.
pub async fn capability(
    State(state): State<AppState>,
    Path(secret): Path<String>,
    request: Request,
) -> Response {
    serve(state, request, Some(secret)).await
}

/// An error before there is a message to answer.
pub fn refuse(status: u16, message: &str) -> Response {
    reply::error(status, None, &RpcError::new(INVALID_REQUEST, message))
}

async fn serve(state: AppState, request: Request, in_path: Option<String>) -> Response {
    let is_delete = request.method() == Method::DELETE;
    // Before the token: a client without one that opens a stream by GET must not be sent to log in.
    if request.method() != Method::POST && !(is_delete && request.headers().contains_key(mcp::SESSION)) {
        return reply::method_not_allowed();
    }
    let (parts, body) = request.into_parts();
    let Some(peer) = parts.extensions.get::<Peer>().cloned() else {
        return reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let snapshot = state.policy.snapshot();
    let principal = match Principal::recognise(&snapshot, &peer, &parts.headers, in_path.as_deref()) {
        Ok(principal) => principal,
        Err(denied) => return deny(&state, &peer, denied),
    };
    let exchange = Exchange { state: state.clone(), principal, peer, headers: parts.headers };
    if is_delete {
        return mcp::end_session(&exchange);
    }
    if !negotiate::sends_json(&exchange.headers) {
        return refuse(415, "Content-Type must be application/json");
    }
    if !negotiate::accepts_both(&exchange.headers) {
        return refuse(406, "Accept must list both application/json and text/event-stream");
    }
    let message = match state.bodies.read(body).await {
        Ok(body) => Incoming::read(&body.bytes),
        Err(BodyError::TooLarge) => {
            return refuse(413, &format!("the body is longer than {} bytes", state.config.body_limit));
        }
        Err(BodyError::TooSlow) => return refuse(408, "the body did not come in in time"),
        Err(BodyError::Broken) => return refuse(400, "the body broke off"),
    };
    match message {
        Ok(Incoming::Message(message)) => mcp::answer(exchange, message).await,
        Ok(Incoming::Answer(answer)) => mcp::take_answer(&exchange, &answer),
        Err(bad) => reply::error(bad.error.ladder_status(), bad.id.as_ref(), &bad.error),
    }
}

fn deny(state: &AppState, peer: &Peer, denied: Denied) -> Response {
    // A missing token is how some clients ask whether one is needed; a wrong one is worth a record.
    if denied != Denied::Missing {
        let via = if matches!(peer, Peer::Tcp(_)) { "http" } else { "local" };
        state.runner.note(Note {
            caller: Caller { via: via.to_owned(), ..peer.caller() },
            action: String::new(),
            rule: "token".to_owned(),
            detail: denied.message().to_owned(),
        });
    }
    reply::challenge(refuse(denied.status(), denied.message()))
}
