#![forbid(unsafe_code)]
//! The parameters of `tools/call`.

use super::envelope::Members;
use super::errors::RpcError;
use super::json::kind;
use serde_json::Value;

/// A call as the client sends it.
#[derive(Debug)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Members,
    /// The request's `_meta`.
    pub meta: Members,
    /// The token by which the client knows progress of this call.
    pub progress_token: Option<Value>,
    /// What the client's user has answered to questions of an earlier round.
    pub responses: Option<Members>,
}

impl ToolCall {
    /// Reads the parameters.
    ///
    /// # Errors
    /// What has another form than the protocol says.
    pub fn read(mut params: Members) -> Result<Self, RpcError> {
        let name = match params.remove("name") {
            Some(Value::String(name)) => name,
            Some(other) => {
                return Err(RpcError::params(format!("name: must be a text, not {}", kind(&other))));
            }
            None => return Err(RpcError::params("name: required")),
        };
        let arguments = read_arguments("arguments", params.remove("arguments"))?;
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Members::new(),
        };
        let progress_token = match meta.get("progressToken") {
            None | Some(Value::Null) => None,
            Some(token @ Value::String(_)) => Some(token.clone()),
            Some(Value::Number(token)) if !token.is_f64() => Some(Value::Number(token.clone())),
            Some(other) => {
                let problem = format!("progressToken: must be a text or an integer, not {}", kind(other));
                return Err(RpcError::params(problem));
            }
        };
        let responses = match params.remove("inputResponses") {
            Some(Value::Object(responses)) => Some(responses),
            _ => None,
        };
        Ok(Self { name, arguments, meta, progress_token, responses })
    }
}

/// Arguments as an object; left out or null they are empty.
///
/// # Errors
/// Anything else.
pub fn read_arguments(name: &str, value: Option<Value>) -> Result<Members, RpcError> {
    match value {
        None | Some(Value::Null) => Ok(Members::new()),
        Some(Value::Object(arguments)) => Ok(arguments),
        Some(other) => Err(RpcError::params(format!("{name}: must be an object, not {}", kind(&other)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(params: Value) -> Result<ToolCall, RpcError> {
        ToolCall::read(params.as_object().unwrap().clone())
    }

    #[test]
    fn arguments_are_an_object_or_left_out() {
        for arguments in [json!({"name": "x"}), json!({"name": "x", "arguments": null})] {
            assert!(read(arguments).unwrap().arguments.is_empty());
        }
        for arguments in [json!([]), json!("{}"), json!(1)] {
            assert_eq!(read(json!({"name": "x", "arguments": arguments})).unwrap_err().code, -32602);
        }
        assert_eq!(read(json!({})).unwrap_err().code, -32602);
        assert_eq!(read(json!({"name": 5})).unwrap_err().code, -32602);
    }

    #[test]
    fn a_progress_token_keeps_its_type() {
        for token in [json!(0), json!(7), json!("a"), json!("")] {
            let call = read(json!({"name": "x", "_meta": {"progressToken": token}})).unwrap();
            assert_eq!(call.progress_token, Some(token));
        }
        assert_eq!(read(json!({"name": "x", "_meta": {}})).unwrap().progress_token, None);
        for token in [json!(1.5), json!(true), json!({})] {
            assert!(read(json!({"name": "x", "_meta": {"progressToken": token}})).is_err());
        }
    }
}
