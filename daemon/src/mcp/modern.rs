#![forbid(unsafe_code)]
//! Revision 2026-07-28: no handshake, no session; every request brings its version, and every result says
//! how it is to be read.

use super::call::User;
use super::envelope::{Members, Message};
use super::errors::RpcError;
use super::tool_call::ToolCall;
use super::{
    Exchange, INSTRUCTIONS, META_CAPABILITIES, META_CLIENT, MODERN, Reply, client_name, elicit, listen,
    routing, server_info, stream,
};
use crate::http::reply;
use axum::response::Response;
use serde_json::{Value, json};

/// How long a client may hold on to a list, milliseconds. One that listens hears of changes at once.
const TTL_MS: u64 = 60_000;

/// Answers one message of this era.
pub async fn answer(exchange: Exchange, message: Message) -> Response {
    // Cancellation is closing the stream; there is no notification that this server waits for.
    let Some(id) = message.id.clone() else {
        return reply::accepted();
    };
    if let Err(error) = routing::ladder(&exchange.headers, &message) {
        return reply::error(error.ladder_status(), Some(&id), &error);
    }
    let result = match message.method.as_str() {
        "server/discover" => Ok(reply::encode(&Reply::new(&id, discover()))),
        "tools/list" => exchange.list_tools(&id, &message.params, cacheable(Members::new())),
        "tools/call" => match ToolCall::read(message.params) {
            Ok(call) => {
                let user = if elicit::is_declared(call.meta.get(META_CAPABILITIES)) {
                    User::AskedFirst(elicit::goes_on(call.responses.as_ref()))
                } else {
                    User::Unreachable
                };
                let invocation = exchange.invocation(client(&call.meta), user, &id);
                return stream::answer(invocation, call, id, complete, None).await;
            }
            Err(error) => Err(error),
        },
        "subscriptions/listen" => match listen::wants_tools(&message.params) {
            Ok(wanted) => return listen::answer(exchange, id, wanted).await,
            Err(error) => Err(error),
        },
        method => {
            let error = RpcError::method(method);
            return reply::error(error.ladder_status(), Some(&id), &error);
        }
    };
    match result {
        Ok(body) => reply::encoded(200, body),
        Err(error) => reply::error(200, Some(&id), &error),
    }
}

fn client(meta: &Members) -> String {
    client_name(meta.get(META_CLIENT))
}

/// Marks a result as a whole one where it is nothing else, and says who gave it.
pub fn complete(mut result: Members) -> Members {
    result.entry("resultType").or_insert_with(|| json!("complete"));
    if let Some(meta) = result.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), server_info());
    }
    result
}

/// Adds how long a result may be kept. What a caller sees depends on the token: never shared.
fn cacheable(mut result: Members) -> Members {
    result.insert("ttlMs".to_owned(), json!(TTL_MS));
    result.insert("cacheScope".to_owned(), json!("private"));
    complete(result)
}

fn discover() -> Value {
    let mut result = Members::new();
    result.insert("supportedVersions".to_owned(), json!([MODERN]));
    result.insert("capabilities".to_owned(), json!({"tools": {"listChanged": true}}));
    result.insert("instructions".to_owned(), json!(INSTRUCTIONS));
    Value::Object(cacheable(result))
}
