#![forbid(unsafe_code)]
//! `subscriptions/listen`: a stream that tells when the list of tools has changed.

use super::envelope::Members;
use super::errors::RpcError;
use super::{Exchange, Reply, modern};
use crate::http::reply::{self, KEEP_ALIVE};
use axum::body::Bytes;
use axum::response::Response;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// Messages that wait for a slow client. One change more or less makes no difference: all say the same.
const QUEUE: usize = 4;

/// Whether the client wants to hear of changed tools; nothing else can be subscribed to here.
///
/// # Errors
/// Parameters of another form.
pub fn wants_tools(params: &Members) -> Result<bool, RpcError> {
    let wanted = params.get("notifications").and_then(Value::as_object);
    let wanted = wanted.ok_or_else(|| RpcError::params("notifications: an object is required"))?;
    match wanted.get("toolsListChanged") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(wanted)) => Ok(*wanted),
        Some(_) => Err(RpcError::params("toolsListChanged: must be true or false")),
    }
}

/// Answers with the stream. It ends with a result when the caller's token is revoked.
pub async fn answer(exchange: Exchange, id: Value, wanted: bool) -> Response {
    let (messages, receiver) = mpsc::channel(QUEUE);
    let mut changed = exchange.state.policy.changed();
    changed.mark_unchanged();
    let honoured = if wanted { json!({"toolsListChanged": true}) } else { json!({}) };
    // The queue is empty yet.
    let _ = messages.try_send(notification(&id, "subscriptions/acknowledged", Some(honoured)));
    tokio::spawn(async move {
        let start = tokio::time::Instant::now() + KEEP_ALIVE_TIME;
        let mut keep_alive = tokio::time::interval_at(start, KEEP_ALIVE_TIME);
        loop {
            let message = tokio::select! {
                () = messages.closed() => return,
                change = changed.changed() => match change {
                    Ok(()) if exchange.principal.is_valid(&exchange.state.policy.snapshot().tokens) => {
                        wanted.then(|| notification(&id, "tools/list_changed", None))
                    }
                    _ => {
                        let _ = messages.send(end(&id)).await;
                        return;
                    }
                },
                _ = keep_alive.tick() => Some(KEEP_ALIVE),
            };
            if let Some(message) = message {
                let _ = messages.try_send(message);
            }
        }
    });
    reply::stream(receiver)
}

/// The mark by which a client knows what belongs to its subscription.
fn tag(id: &Value) -> Value {
    json!({"io.modelcontextprotocol/subscriptionId": id})
}

fn notification(id: &Value, name: &str, notifications: Option<Value>) -> Bytes {
    let mut params = Members::from_iter([("_meta".to_owned(), tag(id))]);
    if let Some(notifications) = notifications {
        params.insert("notifications".to_owned(), notifications);
    }
    let method = format!("notifications/{name}");
    reply::event(&reply::encode(&json!({"jsonrpc": "2.0", "method": method, "params": params})))
}

fn end(id: &Value) -> Bytes {
    let result = modern::complete(Members::from_iter([("_meta".to_owned(), tag(id))]));
    reply::event(&reply::encode(&Reply::new(id, result)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_tools_can_be_subscribed_to() {
        let wants = |params: Value| wants_tools(params.as_object().unwrap());
        assert_eq!(wants(json!({"notifications": {"toolsListChanged": true}})), Ok(true));
        assert_eq!(wants(json!({"notifications": {"promptsListChanged": true}})), Ok(false));
        assert!(wants(json!({})).is_err());
        assert!(wants(json!({"notifications": []})).is_err());
        assert!(wants(json!({"notifications": {"toolsListChanged": 1}})).is_err());
    }
}
