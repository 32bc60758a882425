#![forbid(unsafe_code)]
//! `/runs` on the local socket: what `gloveport status` shows of the runs, and ends. Root sees all of them, a
//! local user their own; nobody else is answered, and TCP not at all.

use super::{AppState, Peer, reply};
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

/// Longest body: a name.
const BODY: usize = 1024;

/// Whose runs a peer may see.
enum Viewer {
    Root,
    User { key: String, name: String },
}

impl Viewer {
    fn of(state: &AppState, request: &Request) -> Option<Self> {
        match request.extensions().get::<Peer>()? {
            Peer::Local { uid: 0, .. } => Some(Self::Root),
            Peer::Local { uid, user } => {
                state.policy.snapshot().tokens.local_user(*uid)?;
                Some(Self::User { key: format!("local:{uid}"), name: user.clone() })
            }
            Peer::Tcp(_) => None,
        }
    }

    /// Whose runs are seen; `None` is everybody's.
    fn owner(&self) -> Option<&str> {
        match self {
            Self::Root => None,
            Self::User { key, .. } => Some(key),
        }
    }
}

/// `GET /runs`.
pub async fn list(State(state): State<AppState>, request: Request) -> Response {
    match (request.method(), Viewer::of(&state, &request)) {
        (_, None) => reply::empty(StatusCode::NOT_FOUND),
        (&Method::GET, Some(viewer)) => reply::json(200, &json!({"runs": state.ledger.list(viewer.owner())})),
        _ => reply::empty(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// What root says of itself: the person behind sudo.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Wish {
    by: String,
}

/// `POST /runs/ID/end`.
pub async fn end(State(state): State<AppState>, Path(run): Path<String>, request: Request) -> Response {
    let Some(viewer) = Viewer::of(&state, &request) else {
        return reply::empty(StatusCode::NOT_FOUND);
    };
    if request.method() != Method::POST {
        return reply::empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let by = match &viewer {
        Viewer::User { name, .. } => name.clone(),
        Viewer::Root => {
            let body = axum::body::to_bytes(request.into_body(), BODY).await.unwrap_or_default();
            let wish: Wish = serde_json::from_slice(&body).unwrap_or_default();
            let by: String = wish.by.chars().filter(|c| !c.is_control()).take(64).collect();
            if by.is_empty() { "root".to_owned() } else { by }
        }
    };
    if state.ledger.end(&run, viewer.owner(), &format!("{by}, at the host,")) {
        reply::empty(StatusCode::NO_CONTENT)
    } else {
        reply::empty(StatusCode::NOT_FOUND)
    }
}
