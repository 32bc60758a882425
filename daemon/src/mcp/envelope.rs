#![forbid(unsafe_code)]
//! From bytes to one JSON-RPC message: a request or a notification, nothing else.

use super::errors::{INVALID_REQUEST, PARSE, RpcError};
use super::json::{self, JsonError};
use serde_json::{Map, Value};

/// Members of an object.
pub type Members = Map<String, Value>;

/// What a client sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A request or a notification.
    Message(Message),
    /// An answer to a request of ours.
    Answer(Answer),
}

/// An answer of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The id of what it answers.
    pub id: Value,
    /// Its result; `None` for an error.
    pub result: Option<Value>,
}

/// One message of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The id, a text or an integer; `None` for a notification.
    pub id: Option<Value>,
    /// The method.
    pub method: String,
    /// Its parameters; empty where there are none.
    pub params: Members,
}

/// Bytes that are no message.
#[derive(Debug, Clone, PartialEq)]
pub struct BadMessage {
    /// The id, where one could be read.
    pub id: Option<Value>,
    /// What is wrong.
    pub error: RpcError,
}

impl Incoming {
    /// Reads a body.
    ///
    /// # Errors
    /// [`PARSE`] for what is no JSON, [`INVALID_REQUEST`] for what is no single request, notification or answer.
    pub fn read(body: &[u8]) -> Result<Self, BadMessage> {
        let document = json::parse(body).map_err(|error| {
            let (code, problem) = match error {
                JsonError::Syntax(problem) => (PARSE, problem),
                JsonError::Refused(problem) => (INVALID_REQUEST, problem),
            };
            BadMessage { id: None, error: RpcError::new(code, problem) }
        })?;
        match Answer::in_document(&document) {
            Some(answer) => Ok(Self::Answer(answer)),
            None => Message::from_document(document).map(Self::Message),
        }
    }
}

impl Answer {
    fn in_document(document: &Value) -> Option<Self> {
        let members = document.as_object()?;
        let is_answer = members.get("jsonrpc")?.as_str() == Some("2.0")
            && !members.contains_key("method")
            && members.contains_key("result") != members.contains_key("error");
        let id = members.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64())?;
        is_answer.then(|| Self { id: id.clone(), result: members.get("result").cloned() })
    }
}

impl Message {
    /// Reads a body where nothing is ever asked, so that an answer is no message.
    ///
    /// # Errors
    /// Those of [`Incoming::read`], and an answer.
    pub fn read(body: &[u8]) -> Result<Self, BadMessage> {
        match Incoming::read(body)? {
            Incoming::Message(message) => Ok(message),
            Incoming::Answer(answer) => {
                let error =
                    RpcError::new(INVALID_REQUEST, "nothing was asked, so there is nothing to answer");
                Err(BadMessage { id: Some(answer.id), error })
            }
        }
    }

    fn from_document(document: Value) -> Result<Self, BadMessage> {
        let bad = |id: Option<Value>, problem: &str| {
            Err(BadMessage { id, error: RpcError::new(INVALID_REQUEST, problem) })
        };
        let mut members = match document {
            Value::Object(members) => members,
            Value::Array(_) => return bad(None, "batches are not taken: send one message per request"),
            _ => return bad(None, "a message is a JSON object"),
        };
        let id = match members.remove("id") {
            None => None,
            Some(id @ Value::String(_)) => Some(id),
            Some(Value::Number(id)) if !id.is_f64() => Some(Value::Number(id)),
            Some(other) => {
                let kind = json::kind(&other);
                return bad(None, &format!("id must be a text or an integer of at most 64 bits, not {kind}"));
            }
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return bad(id, "jsonrpc must be \"2.0\"");
        }
        let method = match members.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return bad(id, "method must be a text"),
            None => return bad(id, "method is missing"),
        };
        let params = match members.remove("params") {
            None | Some(Value::Null) => Members::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return bad(id, "params must be an object"),
        };
        Ok(Self { id, method, params })
    }

    /// The request's `_meta`.
    pub fn meta(&self) -> Option<&Members> {
        self.params.get("_meta").and_then(Value::as_object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(body: &str) -> i64 {
        Message::read(body.as_bytes()).unwrap_err().error.code
    }

    #[test]
    fn a_request_and_a_notification_differ_by_the_presence_of_the_id() {
        let request = Message::read(br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#).unwrap();
        assert_eq!(request.id, Some(json!(0)));
        let notification = Message::read(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!((notification.id, notification.params.len()), (None, 1));
    }

    #[test]
    fn an_id_is_a_text_or_an_integer() {
        for id in ["null", "1.5", "true", "[]", "{}"] {
            assert_eq!(
                code(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)),
                INVALID_REQUEST,
                "{id}"
            );
        }
    }

    #[test]
    fn an_integer_may_have_64_bits_and_a_longer_one_is_named_as_that() {
        let ping =
            |id: &str| Message::read(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes());
        for id in [u64::MAX.to_string(), "9223372036854775808".to_owned(), i64::MIN.to_string()] {
            assert_eq!(ping(&id).unwrap().id.unwrap().to_string(), id);
        }
        for id in ["18446744073709551616", "-9223372036854775809"] {
            let problem = ping(id).unwrap_err().error.message;
            assert!(
                problem.contains("at most 64 bits") && problem.contains("more than 64 bits"),
                "{problem}"
            );
        }
    }

    #[test]
    fn what_is_no_single_message_is_an_invalid_request() {
        for body in [
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "1",
            "null",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        ] {
            assert_eq!(code(body), INVALID_REQUEST, "{body}");
        }
        assert_eq!(code("{"), PARSE);
    }

    #[test]
    fn an_answer_is_told_from_a_request() {
        let body = br#"{"jsonrpc":"2.0","id":"approval-7","result":{"action":"accept"}}"#;
        let answer = Answer { id: json!("approval-7"), result: Some(json!({"action": "accept"})) };
        assert_eq!(Incoming::read(body), Ok(Incoming::Answer(answer)));
        let refused = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#;
        assert_eq!(Incoming::read(refused), Ok(Incoming::Answer(Answer { id: json!(1), result: None })));
    }

    #[test]
    fn the_id_is_given_back_where_it_could_be_read() {
        let bad = Message::read(br#"{"jsonrpc":"2.0","id":"a","method":5}"#).unwrap_err();
        assert_eq!(bad.id, Some(json!("a")));
    }
}
