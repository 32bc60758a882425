#![forbid(unsafe_code)]
//! The HTTP side: one endpoint that speaks MCP, and a sign of life.

pub mod auth;
mod body;
mod endpoint;
mod guard;
mod negotiate;
pub mod outputs;
pub mod reply;
mod runs;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::mcp::ledger::Ledger;
use crate::mcp::sessions::Sessions;
use crate::mcp::tools::ListingCache;
use crate::policy::Policy;
use crate::run::Runner;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::any;
use body::BodyReader;
use gloveport_contract::packet::Caller;
use outputs::Outputs;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;

/// The other end of a connection; the listener puts it into each request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A TCP client.
    Tcp(SocketAddr),
    /// A user of this host on the Unix socket, by SO_PEERCRED.
    Local {
        /// The uid.
        uid: u32,
        /// Its name, or its number.
        user: String,
    },
}

impl Peer {
    /// The part of a caller that the connection tells.
    pub fn caller(&self) -> Caller {
        match self {
            Self::Tcp(address) => Caller { peer: address.to_string(), ..Caller::default() },
            Self::Local { uid, user } => Caller { peer: user.clone(), uid: Some(*uid), ..Caller::default() },
        }
    }
}

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// Catalogue and tokens in force.
    pub policy: Policy,
    /// Runs actions.
    pub runner: Runner,
    /// The daemon's settings.
    pub config: Arc<Config>,
    /// Sessions of the older protocol revisions.
    pub sessions: Sessions,
    /// The tools as they are listed.
    pub listing: ListingCache,
    /// Memory for large outputs.
    pub outputs: Outputs,
    /// Runs in progress, and results that are kept.
    pub ledger: Ledger,
    bodies: BodyReader,
}

impl AppState {
    /// The state of a server that has answered nothing yet.
    pub fn new(policy: Policy, runner: Runner, config: Arc<Config>) -> Self {
        Self {
            policy,
            runner,
            sessions: Sessions::new(config.max_sessions),
            listing: ListingCache::default(),
            outputs: Outputs::default(),
            ledger: Ledger::default(),
            bodies: BodyReader::new(config.body_limit),
            config,
        }
    }
}

/// The router of all listeners. Each request must carry its [`Peer`] as an extension.
pub fn router(state: AppState) -> Router {
    Router::new()
        .route("/mcp", any(endpoint::plain))
        .route("/mcp/", any(endpoint::plain))
        .route("/mcp/t/{secret}", any(endpoint::capability))
        .route("/mcp/t/{secret}/", any(endpoint::capability))
        .route("/healthz", any(health))
        .route("/runs", any(runs::list))
        .route("/runs/{run}/end", any(runs::end))
        // Also what asks for OAuth metadata: there is none, and 404 says so where 401 would loop.
        .fallback(async || reply::empty(StatusCode::NOT_FOUND))
        .layer(middleware::from_fn_with_state(state.clone(), check_origin))
        .with_state(state)
}

/// Nothing is looked at before it is clear that the request means this host.
async fn check_origin(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let config = &state.config;
    match guard::check(request.uri(), request.headers(), &config.allowed_hosts, &config.allowed_origins) {
        Ok(()) => next.run(request).await,
        Err(rejection) => endpoint::refuse(rejection.status(), rejection.message()),
    }
}

/// A sign of life, for anybody on this host: whether actions can run at all, and nothing more.
async fn health(State(state): State<AppState>) -> Response {
    let status = if state.policy.snapshot().catalog.is_ok() { "ok" } else { "no catalog" };
    reply::json(200, &json!({"status": status}))
}
