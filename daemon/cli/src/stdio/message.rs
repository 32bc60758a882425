#![forbid(unsafe_code)]
//! What the bridge must know of a message. Everything else passes through as it came.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A message from the client.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id; `None` for a notification.
    pub id: Option<Value>,
    /// Its method; `None` for an answer.
    pub method: Option<String>,
    /// The tool, prompt or resource that it names.
    pub name: Option<String>,
    /// The protocol that it names itself, as a stateless request does.
    pub protocol: Option<String>,
    /// The request that a `notifications/cancelled` means.
    pub cancelled: Option<Value>,
}

/// Why a message cannot be passed on: the code and text of its error.
pub type Refusal = (i64, &'static str);

/// JSON-RPC's code for what is no JSON.
pub const NOT_JSON: i64 = -32700;
/// JSON-RPC's code for JSON that is no request.
pub const INVALID: i64 = -32600;
/// JSON-RPC's code for a server that cannot do its part.
pub const INTERNAL: i64 = -32603;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Tells `null` from nothing: a request whose id is null is a mistake, not a notification.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    name: Option<Value>,
    #[serde(default)]
    uri: Option<Value>,
    #[serde(default, rename = "requestId")]
    request_id: Option<Value>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol: Option<Value>,
}

impl Message {
    /// Reads what must be known. The daemon checks the rest, and more strictly.
    ///
    /// # Errors
    /// It is no JSON, or no single request.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        // A derived struct would also take an array, element by element.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            let is_json = serde_json::from_slice::<&RawValue>(bytes).is_ok();
            return Err(if is_json { (INVALID, "one message at a time, as an object") } else { NO_JSON });
        }
        let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(|error| {
            if error.is_data() { (INVALID, "this is no message of JSON-RPC") } else { NO_JSON }
        })?;
        if envelope.id.as_ref().is_some_and(|id| !id.is_string() && !id.is_number()) {
            return Err((INVALID, "the id of a request is a string or a number"));
        }
        if envelope.method.is_none() && envelope.result.is_none() && envelope.error.is_none() {
            return Err((INVALID, "method is missing"));
        }
        let params: Params =
            envelope.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let is_cancel = envelope.method.as_deref() == Some("notifications/cancelled");
        Ok(Self {
            id: envelope.id,
            name: match envelope.method.as_deref() {
                Some("tools/call" | "prompts/get") => text(params.name),
                Some("resources/read") => text(params.uri),
                _ => None,
            },
            method: envelope.method,
            protocol: params.meta.and_then(|meta| text(meta.protocol)),
            cancelled: params.request_id.filter(|_| is_cancel),
        })
    }
}

const NO_JSON: Refusal = (NOT_JSON, "this is no JSON");

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_must_be_known_is_read() {
        let message = Message::parse(
            br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"name":1},
                "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":0}}}"#,
        )
        .unwrap();
        assert_eq!(message.id, Some(json!("a")));
        assert_eq!(message.name.as_deref(), Some("x"));
        assert_eq!(message.protocol.as_deref(), Some("2026-07-28"));
        let cancel =
            Message::parse(br#"{"method":"notifications/cancelled","params":{"requestId":7}}"#).unwrap();
        assert_eq!((cancel.id, cancel.cancelled), (None, Some(json!(7))));
    }

    #[test]
    fn params_of_another_shape_are_left_to_the_daemon() {
        let message = Message::parse(br#"{"id":1,"method":"tools/call","params":[1]}"#).unwrap();
        assert_eq!((message.name, message.protocol), (None, None));
    }

    #[test]
    fn what_is_no_message_has_the_code_that_the_protocol_wants() {
        for (bytes, code) in [
            (b"{".as_slice(), -32700),
            (b"hello", -32700),
            (b"\x97", -32700),
            (b"[]", -32600),
            (b"[{}]", -32600),
            (b"5", -32600),
            (br#"{"method": 5}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":7}"#, -32600),
            (br#"{"id":1,"id":2}"#, -32600),
            (br#"{"id":null,"method":"ping"}"#, -32600),
            (br#"{"id":[1],"method":"ping"}"#, -32600),
        ] {
            assert_eq!(Message::parse(bytes).unwrap_err().0, code, "{bytes:?}");
        }
    }

    #[test]
    fn deep_nesting_is_passed_on_unread() {
        let deep = format!(
            r#"{{"id":1,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(Message::parse(deep.as_bytes()).is_ok());
    }
}
