#![forbid(unsafe_code)]
//! `run_batch`: several commands in one submission, in the form of UFO's dispatcher. Each is a call of its
//! own, under its own scope and with its own audit record.

use super::call::Invocation;
use super::envelope::Members;
use super::fit::ENCODED_OUTPUT;
use super::json::kind;
use super::result::ToolResult;
use super::tool_call::read_arguments;
use crate::run::report::Progress;
use gloveport_contract::catalog::Risk;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The tool's name.
pub const NAME: &str = "run_batch";
/// Its own risk: each command is held to the risk of its own action.
pub const RISK: Risk = Risk::Read;
/// Most commands of one batch.
const COMMANDS: usize = 64;

const USAGE: &str = "Call `run_batch` with {\"commands\": [{\"tool_name\": string, \"parameters\"?: object, \
    \"tool_type\"?: string, \"call_id\"?: string}], \"stop_on_failure\"?: boolean} (? is optional).";

/// The tool as it is listed.
pub fn describe() -> Value {
    json!({
        "name": NAME,
        "title": "Run several tools",
        "description": "Calls several tools of this server one after the other. Each entry of `commands` is \
            {tool_name, parameters, tool_type, call_id}; the result holds {status, error, result, call_id} for \
            each, in order. The status is success (the tool answered; a non-zero exit code is an answer), failure \
            (it refused, failed to start or timed out), or skipped (an earlier one failed and stop_on_failure \
            is true).",
        "inputSchema": {
            "type": "object",
            "properties": {
                "commands": {"type": "array", "minItems": 1, "maxItems": COMMANDS, "items": {
                    "type": "object",
                    "properties": {
                        "tool_name": {"type": "string", "description": "A tool of this server."},
                        "parameters": {"type": ["object", "null"], "description": "The tool's own arguments."},
                        "tool_type": {"type": ["string", "null"], "description": "Taken and not looked at."},
                        "call_id": {"type": ["string", "null"], "description": "Given back with the result."},
                    },
                    "required": ["tool_name"],
                }},
                "stop_on_failure": {"type": "boolean", "default": false},
            },
            "required": ["commands"],
            "additionalProperties": false,
        },
        "annotations": {
            "title": "Run several tools",
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false,
        },
        "_meta": {"gloveport/risk": RISK.as_str()},
    })
}

/// One command of a batch.
#[derive(Debug)]
struct Command {
    tool: String,
    parameters: Members,
    call_id: Value,
}

/// Runs a batch.
pub async fn run(
    invocation: &Invocation,
    arguments: Members,
    progress: &mpsc::Sender<Progress>,
) -> ToolResult {
    let (commands, stop) = match read(arguments) {
        Ok(read) => read,
        Err(problem) => return ToolResult::failure(format!("{problem}\n{USAGE}")),
    };
    let budget = ENCODED_OUTPUT / commands.len().max(1);
    let mut results = Vec::new();
    let mut stopped = false;
    for command in commands {
        let (status, error, result) = if stopped {
            ("skipped", Some("an earlier command failed".to_owned()), None)
        } else if command.tool == NAME {
            ("failure", Some("a batch cannot hold a batch".to_owned()), None)
        } else {
            match invocation.call_action(&command.tool, command.parameters, progress, budget).await {
                Ok(result) => outcome(result),
                Err(error) => ("failure", Some(error.message), None),
            }
        };
        stopped |= stop && status == "failure";
        results.push(json!({"status": status, "error": error, "result": result, "call_id": command.call_id}));
    }
    ToolResult::structured(json!({"results": results}))
}

/// The tools that a batch names; of one that has another form, those that can be told.
pub fn tools(arguments: &Members) -> impl Iterator<Item = &str> {
    let commands = arguments.get("commands").and_then(Value::as_array).into_iter().flatten();
    commands.filter_map(|command| command.get("tool_name")?.as_str())
}

/// How a command went, as UFO's dispatcher judges it: a tool that answered is a success, whatever its program's
/// exit code; a failure is what the protocol calls an error.
fn outcome(result: ToolResult) -> (&'static str, Option<String>, Option<Value>) {
    if result.is_error {
        ("failure", Some(result.text), result.structured)
    } else {
        ("success", None, Some(result.structured.unwrap_or(Value::String(result.text))))
    }
}

fn read(mut arguments: Members) -> Result<(Vec<Command>, bool), String> {
    let commands = match arguments.remove("commands") {
        Some(Value::Array(commands)) => commands,
        Some(other) => return Err(format!("commands: must be a list, not {}", kind(&other))),
        None => return Err("commands: required".to_owned()),
    };
    if commands.is_empty() || commands.len() > COMMANDS {
        return Err(format!("commands: {} entries; 1 to {COMMANDS}", commands.len()));
    }
    let stop = match arguments.remove("stop_on_failure") {
        None => false,
        Some(Value::Bool(stop)) => stop,
        Some(other) => return Err(format!("stop_on_failure: must be true or false, not {}", kind(&other))),
    };
    if let Some(name) = arguments.keys().next() {
        let shown: String = name.chars().take(64).collect();
        return Err(format!("{shown}: not an input of this tool"));
    }
    let commands = commands.into_iter().enumerate().map(|(at, command)| {
        read_command(command).map_err(|problem| format!("commands, entry {}: {problem}", at + 1))
    });
    Ok((commands.collect::<Result<_, _>>()?, stop))
}

/// Further members of UFO's Command are its own business and pass by.
fn read_command(command: Value) -> Result<Command, String> {
    let Value::Object(mut members) = command else {
        return Err(format!("must be an object, not {}", kind(&command)));
    };
    let tool = match members.remove("tool_name") {
        Some(Value::String(name)) => name,
        Some(other) => return Err(format!("tool_name: must be a text, not {}", kind(&other))),
        None => return Err("tool_name: required".to_owned()),
    };
    let parameters =
        read_arguments("parameters", members.remove("parameters")).map_err(|error| error.message)?;
    for name in ["tool_type", "call_id"] {
        match members.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => return Err(format!("{name}: must be a text, not {}", kind(other))),
        }
    }
    Ok(Command { tool, parameters, call_id: members.remove("call_id").unwrap_or(Value::Null) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: Value) -> Result<(Vec<Command>, bool), String> {
        read(arguments.as_object().unwrap().clone())
    }

    #[test]
    fn a_batch_is_read_as_ufo_sends_it() {
        let (commands, stop) = parse(json!({"commands": [
            {"tool_name": "a", "parameters": {"x": 1}, "tool_type": "action", "call_id": "c1"},
            {"tool_name": "b"},
        ], "stop_on_failure": true}))
        .unwrap();
        assert!(stop);
        assert_eq!((commands[0].tool.as_str(), &commands[0].call_id), ("a", &json!("c1")));
        assert_eq!((commands[1].parameters.len(), &commands[1].call_id), (0, &Value::Null));
    }

    #[test]
    fn what_has_another_form_is_named() {
        for (arguments, named) in [
            (json!({}), "commands: required"),
            (json!({"commands": {}}), "commands: must be a list"),
            (json!({"commands": []}), "commands: 0 entries"),
            (json!({"commands": [5]}), "commands, entry 1: must be an object"),
            (json!({"commands": [{}]}), "commands, entry 1: tool_name: required"),
            (json!({"commands": [{"tool_name": "a", "parameters": []}]}), "commands, entry 1: parameters"),
            (json!({"commands": [{"tool_name": "a", "call_id": 5}]}), "commands, entry 1: call_id"),
            (json!({"commands": [{"tool_name": "a"}], "stop_on_failure": 1}), "stop_on_failure"),
            (json!({"commands": [{"tool_name": "a"}], "x": 1}), "x: not an input"),
        ] {
            let problem = parse(arguments.clone()).unwrap_err();
            assert!(problem.starts_with(named), "{arguments}: {problem}");
        }
    }

    #[test]
    fn a_tool_that_answered_is_a_success_whatever_its_exit_code() {
        let of = |value: Value| outcome(ToolResult::structured(value));
        assert_eq!(of(json!({"success": true, "exit_code": 0})).0, "success");
        let (status, error, result) = of(json!({"success": false, "exit_code": 2, "stdout": "x"}));
        assert_eq!((status, error), ("success", None));
        assert_eq!(result.unwrap()["exit_code"], 2);
        let (status, error, result) = outcome(ToolResult::failure("refused"));
        assert_eq!((status, error.as_deref(), result), ("failure", Some("refused"), None));
    }
}
