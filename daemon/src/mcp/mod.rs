#![forbid(unsafe_code)]
//! The Model Context Protocol, in both of its eras on one endpoint: 2026-07-28, where each request stands
//! alone, and the revisions with `initialize` back to 2024-11-05.

pub mod arguments;
mod batch;
mod call;
mod elicit;
pub mod envelope;
pub mod errors;
mod fetch;
mod fit;
#[cfg(test)]
pub mod fixtures;
pub mod json;
pub mod ledger;
mod legacy;
mod listen;
mod modern;
mod own;
pub mod result;
mod routing;
pub mod schema;
pub mod sessions;
mod stream;
mod text;
mod tool_call;
pub mod tools;

use crate::http::auth::Principal;
use crate::http::{AppState, Peer, reply};
use axum::http::HeaderMap;
use axum::response::Response;
use call::{Invocation, User};
use envelope::{Members, Message};
use errors::RpcError;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub use legacy::{SESSION, delete as end_session, take_answer};

/// The revision without `initialize`.
pub const MODERN: &str = "2026-07-28";
/// The revisions with `initialize`, oldest first.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// `_meta` key of the protocol version of a modern request.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of what the client can do.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of the client's name and version.
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// One HTTP request that may speak the protocol.
pub struct Exchange {
    /// The server.
    pub state: AppState,
    /// Who calls.
    pub principal: Principal,
    /// From where.
    pub peer: Peer,
    /// The request's headers.
    pub headers: HeaderMap,
}

/// Answers one message.
pub async fn answer(exchange: Exchange, message: Message) -> Response {
    match routing::era(&exchange.headers, &message) {
        Ok(routing::Era::Modern) => modern::answer(exchange, message).await,
        Ok(routing::Era::Legacy) => legacy::answer(exchange, message).await,
        Err(error) => reply::error(error.ladder_status(), message.id.as_ref(), &error),
    }
}

impl Exchange {
    /// A call in the name of this request's caller.
    fn invocation(&self, client: String, user: User, request: &Value) -> Invocation {
        let shown = request.as_str().map_or_else(|| request.to_string(), str::to_owned);
        Invocation {
            state: self.state.clone(),
            principal: self.principal.clone(),
            peer: self.peer.clone(),
            client,
            user,
            asked: Arc::default(),
            request: shown.chars().filter(|c| !c.is_control()).take(64).collect(),
        }
    }

    /// One page of tools as a whole reply. `more` joins the result's members.
    fn list_tools(&self, id: &Value, params: &Members, mut more: Members) -> Result<Vec<u8>, RpcError> {
        let snapshot = self.state.policy.snapshot();
        let reason = match &snapshot.catalog {
            Err(reason) => Some(reason.clone()),
            Ok(_) => {
                snapshot.rejected.as_ref().map(|why| format!("an older catalogue stays in force: {why}"))
            }
        };
        if let Some(reason) = reason
            && let Some(meta) = more.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
        {
            meta.insert("gloveport/catalog".to_owned(), json!(reason));
        }
        let listing = self.state.listing.of(&snapshot);
        let page = listing.page(&self.principal, params.get("cursor"), more)?;
        Ok(reply::encode(&Reply::new(id, page)))
    }
}

/// A successful reply.
#[derive(Serialize)]
struct Reply<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: R,
}

impl<'a, R> Reply<'a, R> {
    fn new(id: &'a Value, result: R) -> Self {
        Self { jsonrpc: "2.0", id, result }
    }
}

/// Our name and version.
fn server_info() -> Value {
    json!({"name": "gloveport", "title": "gloveport", "version": env!("CARGO_PKG_VERSION")})
}

/// What a model should know of this server as a whole.
const INSTRUCTIONS: &str = "Each tool runs one signed action on this host, confined by the kernel, and nothing \
    else can be run. A refusal names the rule that refused and how to call the tool right; repeating the same \
    call will not help. Output may be cut or redacted, and says so.";

/// A client's name and version as it gives them, short and printable.
fn client_name(info: Option<&Value>) -> String {
    let part = |name: &str| info.and_then(|info| info.get(name)).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{} {}", part("name"), part("version"));
    name.trim().chars().filter(|c| !c.is_control()).take(128).collect()
}
