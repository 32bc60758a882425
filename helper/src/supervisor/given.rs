#![forbid(unsafe_code)]
//! What a step is given by descriptor, from 3 upwards: a script, or what a handler reads; and last the temporary
//! directory of the run.

use super::{Refusal, Supervisor};
use crate::child::GIVEN;
use crate::{memfd, trusted_file};
use gloveport_contract::catalog::{Action, Literal, ParamType, hex};
use gloveport_contract::packet::{RefusalCode, Run, Value};
use gloveport_contract::plan::{PlannedStep, StepKind};
use serde_json::Map;
use std::io;
use std::os::fd::OwnedFd;

/// The declared descriptors of a step.
pub struct Given {
    /// They come to lie at 3, 4 and so on.
    pub descriptors: Vec<OwnedFd>,
    /// The path of the temporary directory, as the step itself knows it.
    pub temporary: Option<String>,
}

/// Gathers what a step is given.
///
/// # Errors
/// A credential that is not one, memory that has run out.
pub fn given(
    supervisor: &Supervisor<'_>,
    action: &Action,
    step: &PlannedStep<'_>,
    request: &Run,
    temporary: Option<&OwnedFd>,
) -> Result<Given, Refusal> {
    let internal = |error: io::Error| Refusal {
        code: RefusalCode::Internal,
        detail: format!("what the step is given: {error}"),
    };
    let mut descriptors = match step.kind {
        StepKind::Program { .. } => Vec::new(),
        StepKind::Script { body, .. } => vec![memfd::sealed("script", body.as_bytes()).map_err(internal)?],
        StepKind::Handler(_) => {
            let configuration = serde_json::to_vec(&action.builtin_config).map_err(|e| internal(e.into()))?;
            let input = serde_json::to_vec(&input(action, request)).map_err(|e| internal(e.into()))?;
            let mut given = vec![
                memfd::sealed("configuration", &configuration).map_err(internal)?,
                memfd::sealed("input", &input).map_err(internal)?,
            ];
            if let Some(name) = action.builtin_config.as_ref().and_then(|config| config.credential.as_ref()) {
                given.push(credential(supervisor, name)?);
            }
            given
        }
    };
    let directory = temporary.filter(|_| step.sandbox.private_tmp.is_some());
    let temporary =
        directory.and((GIVEN..).nth(descriptors.len())).map(|number| format!("/proc/self/fd/{number}"));
    if let Some(directory) = directory {
        descriptors.push(directory.try_clone().map_err(internal)?);
    }
    Ok(Given { descriptors, temporary })
}

/// A credential, read whole so that a rotation in between is either all old or all new.
fn credential(supervisor: &Supervisor<'_>, name: &str) -> Result<OwnedFd, Refusal> {
    let refuse = |detail: String| Refusal { code: RefusalCode::Unsupported, detail };
    if supervisor.options.same_user {
        return Err(refuse(format!("the credential `{name}`: there are none under --same-user")));
    }
    if name.contains('/') || name.starts_with('.') {
        return Err(refuse(format!("the credential `{name}` is no name of a file")));
    }
    let path = supervisor.options.paths.credentials.join(name);
    let bytes = trusted_file::read_credential(&path, false).map_err(|error| refuse(error.to_string()))?;
    memfd::sealed("credential", &bytes).map_err(|error| refuse(format!("the credential `{name}`: {error}")))
}

/// The arguments as a handler reads them: an object of name and value, with the defaults filled in. Content
/// travels by stdin; here is what was declared of it.
pub(super) fn input(action: &Action, request: &Run) -> serde_json::Value {
    let mut object = Map::new();
    for (name, param) in action.params.iter() {
        let given = request.args.iter().find(|arg| arg.name == name).map(|arg| &arg.value);
        let value = match (given, &param.default, request.content) {
            (_, _, Some(content)) if param.kind == ParamType::Content => {
                serde_json::json!({"length": content.length, "sha256": hex(&content.sha256)})
            }
            (Some(value), _, _) if *value != Value::Null => json(value),
            (_, Some(default), _) => literal(default),
            _ => continue,
        };
        object.insert(name.to_owned(), value);
    }
    object.into()
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Boolean(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        // The plan has refused what is no UTF-8.
        Value::Text(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::List(items) => items.iter().map(|item| json(&item.clone().into())).collect(),
    }
}

fn literal(default: &Literal) -> serde_json::Value {
    match default {
        Literal::Boolean(value) => (*value).into(),
        Literal::Integer(value) => (*value).into(),
        Literal::Text(text) => text.as_str().into(),
        Literal::List(items) => items.iter().map(literal).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gloveport_contract::packet::{Argument, Caller, Content, Scalar, VERSION};

    #[test]
    fn a_handler_reads_what_was_given_the_defaults_and_what_was_declared_of_content() {
        let action: Action = serde_json::from_str(
            r#"{"name": "a", "description": "d", "risk": "write", "exec": ["/bin/true"], "params": {
                "path": {"type": "string"}, "mode": {"type": "integer", "default": 420},
                "left_out": {"type": "string", "optional": true}, "null": {"type": "string", "default": "n"},
                "list": {"type": "list", "items": {"type": "integer"}}, "content": {"type": "content"}}}"#,
        )
        .unwrap();
        let argument = |name: &str, value| Argument { name: name.into(), value };
        let request = Run {
            version: VERSION,
            digest: [0; 32],
            token: None,
            caller: Caller::default(),
            action: "a".into(),
            args: vec![
                argument("path", "/srv/x".into()),
                argument("null", Value::Null),
                argument("list", Value::List(vec![Scalar::Integer(1), Scalar::Integer(2)])),
            ],
            argv: Vec::new(),
            content: Some(Content { length: 3, sha256: [0xab; 32] }),
        };
        let expected = serde_json::json!({"path": "/srv/x", "mode": 420, "null": "n", "list": [1, 2],
            "content": {"length": 3, "sha256": "ab".repeat(32)}});
        assert_eq!(input(&action, &request), expected);
    }
}
