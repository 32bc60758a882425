#![forbid(unsafe_code)]
//! The protocol's side of the router: eras, results and errors. Results of a host pass through unread.

use gloveportd::mcp::MODERN;
use gloveportd::mcp::envelope::Message;
use gloveportd::mcp::errors::RpcError;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How long a client may hold on to the list of tools, milliseconds.
const TTL_MS: u64 = 10_000;
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// What a model should know of the hosts as a whole.
pub const INSTRUCTIONS: &str = "Each tool runs one signed action on the host that `host` names, confined by that \
    host's kernel, and nothing else can be run. Calls to several hosts may run at once. The tool `hosts` tells \
    which are up. A refusal names the rule that refused; repeating the same call will not help.";

/// Which of the protocol's two eras a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: each request stands alone.
    Modern,
    /// Up to 2025-11-25: `initialize` comes first.
    Legacy,
}

/// Members of a result that pass through unread.
pub type RawMembers = BTreeMap<String, Box<RawValue>>;
/// A result, or an error object.
pub type Outcome = Result<RawMembers, Box<RawValue>>;

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<RawMembers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

impl Era {
    /// A request stands in the modern era when it names its version itself.
    ///
    /// # Errors
    /// It names a version that is not served.
    pub fn of(message: &Message) -> Result<Self, RpcError> {
        match message.meta().and_then(|meta| meta.get(META_VERSION)) {
            None if message.method == "server/discover" => {
                Err(RpcError::params(format!("_meta: {META_VERSION} is required")))
            }
            None => Ok(Self::Legacy),
            Some(version) if version == MODERN => Ok(Self::Modern),
            Some(version) => Err(RpcError::version(version.as_str().unwrap_or_default(), &[MODERN])),
        }
    }

    /// A reply in the form of this era. A result that a host gave is marked as whole by that host.
    pub fn reply(self, id: &Value, outcome: Outcome) -> Vec<u8> {
        let (result, error) = match outcome {
            Ok(mut members) => {
                match self {
                    Self::Legacy => {
                        members
                            .retain(|key, _| !["resultType", "ttlMs", "cacheScope"].contains(&key.as_str()));
                    }
                    Self::Modern if members.contains_key("resultType") => {}
                    Self::Modern => {
                        members.insert("resultType".to_owned(), raw(&"complete".into()));
                        members
                            .entry("_meta".to_owned())
                            .or_insert_with(|| raw(&json!({META_SERVER: server_info()})));
                    }
                }
                (Some(members), None)
            }
            Err(error) => (None, Some(error)),
        };
        serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result, error }).unwrap_or_default()
    }
}

/// Our name and version.
pub fn server_info() -> Value {
    json!({"name": "gloveport", "title": "gloveport over ssh", "version": env!("CARGO_PKG_VERSION")})
}

/// The result of `server/discover`.
pub fn discover() -> Value {
    json!({
        "supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS,
        "ttlMs": TTL_MS, "cacheScope": "private",
    })
}

/// The result of `tools/list`, in one page.
pub fn list(tools: Vec<Value>) -> Value {
    json!({"tools": tools, "ttlMs": TTL_MS, "cacheScope": "private"})
}

/// The result of a call that failed before a host could answer it.
pub fn failure(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// A value as the text that it is sent as.
pub fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The members of a result of our own.
pub fn raw_members(value: &Value) -> RawMembers {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), raw(value))).collect()
}

/// The error object of an error.
pub fn raw_error(error: &RpcError) -> Box<RawValue> {
    error.message(None).get("error").map(raw).unwrap_or_else(|| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Message {
        Message::read(body.as_bytes()).unwrap()
    }

    #[test]
    fn a_request_that_names_its_version_stands_alone() {
        let legacy = read(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert_eq!(Era::of(&legacy).unwrap(), Era::Legacy);
        let named = |version: &str| {
            read(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"{META_VERSION}":"{version}"}}}}}}"#
            ))
        };
        assert_eq!(Era::of(&named(MODERN)).unwrap(), Era::Modern);
        assert_eq!(Era::of(&named("2030-01-01")).unwrap_err().code, -32022);
        assert!(Era::of(&read(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#)).is_err());
    }

    #[test]
    fn a_reply_has_the_marks_of_its_era_and_no_others() {
        let reply = |era: Era, result: Value| -> Value {
            serde_json::from_slice(&era.reply(&json!("a"), Ok(raw_members(&result)))).unwrap()
        };
        let legacy = reply(Era::Legacy, json!({"isError": false, "resultType": "complete", "ttlMs": 1}));
        assert_eq!(legacy, json!({"jsonrpc": "2.0", "id": "a", "result": {"isError": false}}));
        let modern = reply(Era::Modern, json!({"isError": true}));
        assert_eq!(modern["result"]["resultType"], "complete");
        assert_eq!(modern["result"]["_meta"][META_SERVER]["name"], "gloveport");
        let error = Era::Legacy.reply(&json!(1), Err(raw_error(&RpcError::method("x"))));
        let error: Value = serde_json::from_slice(&error).unwrap();
        assert_eq!(error["error"]["code"], -32601);
    }
}
