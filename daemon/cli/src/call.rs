#![forbid(unsafe_code)]
//! `gloveport call`: one tool call, its output on stdout, its exit code as ours.

use crate::failure::{Failure, Outcome, REFUSED, TIMEOUT};
use crate::mcp::DaemonArgs;
use crate::out;
use clap::Args;
use gloveportd::paths::Paths;
use serde_json::{Map, Value};
use std::io::IsTerminal;

/// One tool call through the daemon.
///
/// Prints what the run wrote and ends with its exit code; 124: timeout, 125: refused or failed to start,
/// 69: the daemon cannot be reached, 64: called the wrong way.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool, as `gloveport tools` lists it
    tool: String,
    /// Its arguments, one JSON object
    #[arg(value_name = "ARGUMENTS-JSON")]
    arguments: Option<String>,
    /// Print the structured result as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Runs the command.
///
/// # Errors
/// The arguments are none, or there is no result.
pub fn run(args: &CallArgs, paths: &Paths) -> Outcome {
    let arguments = arguments(args.arguments.as_deref())?;
    let mut params = Map::new();
    params.insert("name".into(), args.tool.clone().into());
    params.insert("arguments".into(), arguments.into());
    // Progress is for a person who waits; a script gets the result alone.
    if std::io::stderr().is_terminal() {
        params.insert("_meta".into(), serde_json::json!({"progressToken": 1}));
    }
    let result = args.daemon.daemon(paths)?.request("tools/call", params, None, |message| {
        out::note(format!("gloveport: {}", out::printable(message)));
    })?;
    let structured = result.get("structuredContent");
    if args.json {
        out::json(structured.unwrap_or(&result));
    } else {
        print(structured, &result);
    }
    Ok(exit_code(structured, is_error(&result)))
}

fn arguments(text: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(text) = text else { return Ok(Map::new()) };
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Failure::usage("the arguments must be one JSON object")
            .remedy(r#"for example '{"params": {"unit": "ssh.service"}}'"#)),
        Err(error) => Err(Failure::usage(format!("the arguments are no JSON: {error}"))
            .remedy(r#"quote them for the shell: '{"command": "df -h"}'"#)),
    }
}

fn is_error(result: &Value) -> bool {
    result.get("isError").and_then(Value::as_bool).unwrap_or(false)
}

/// Our exit code for a result: the run's own, or why there was no run.
fn exit_code(structured: Option<&Value>, is_error: bool) -> u8 {
    let Some(result) = structured else { return if is_error { REFUSED } else { 0 } };
    if result.get("timed_out").and_then(Value::as_bool) == Some(true) {
        return TIMEOUT;
    }
    if let Some(code) = result.get("exit_code").and_then(Value::as_i64) {
        // An exit status has eight bits; what does not fit must not look like success.
        return u8::try_from(code).unwrap_or(1);
    }
    match result.get("error").and_then(Value::as_str) {
        Some(error) if error.starts_with("Timeout after ") => TIMEOUT,
        Some(_) => REFUSED,
        None if is_error => REFUSED,
        None => u8::from(result.get("success").and_then(Value::as_bool) == Some(false)),
    }
}

/// Prints what a result holds: the output of its steps, its data, or the document itself.
fn print(structured: Option<&Value>, result: &Value) {
    let Some(document) = structured else {
        for text in texts(result) {
            if is_error(result) { out::note(format!("gloveport: {text}")) } else { out::line(text) }
        }
        return;
    };
    if let Some(error) = document.get("error").and_then(Value::as_str) {
        out::note(format!("gloveport: {error}"));
    } else if let Some(data) = document.get("data") {
        out::line(serde_json::to_string_pretty(data).unwrap_or_default());
        steps(document).iter().for_each(print_remarks);
    } else if document.get("steps").is_some() {
        steps(document).iter().for_each(print_step);
    } else if document.get("stdout").is_some() {
        print_step(document);
    } else {
        out::line(serde_json::to_string_pretty(document).unwrap_or_default());
    }
    if document.get("timed_out").and_then(Value::as_bool) == Some(true) {
        out::note("gloveport: the run reached its timeout; what is above is what it wrote until then");
    }
}

fn steps(document: &Value) -> &[Value] {
    document.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn print_step(step: &Value) {
    match step.get("count").and_then(Value::as_u64) {
        Some(count) => out::line(count),
        None => out::text(text(step, "stdout")),
    }
    print_remarks(step);
}

/// What stands beside a step's output: its errors, and what became of it on its way.
fn print_remarks(step: &Value) {
    let flag = |key: &str| step.get(key).and_then(Value::as_bool) == Some(true);
    let stderr = text(step, "stderr");
    if !stderr.is_empty() {
        out::note(stderr.trim_end_matches('\n'));
    }
    if let Some(reason) = step.get("error").and_then(Value::as_str) {
        out::note(format!("gloveport: step {} did not start: {reason}", text(step, "name")));
    }
    if flag("stdout_truncated") || flag("stderr_truncated") {
        out::note("gloveport: the output was cut to the action's max_output");
    }
    if flag("scan_limit_reached") {
        out::note("gloveport: max_scan was reached; the filters saw no more");
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts(result: &Value) -> impl Iterator<Item = &str> {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block.get("text")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::USAGE;
    use serde_json::json;

    #[test]
    fn the_exit_code_is_that_of_the_run_or_says_why_there_was_none() {
        for (structured, is_error, expected) in [
            (Some(json!({"success": true, "exit_code": 0, "timed_out": false})), false, 0),
            (Some(json!({"success": false, "exit_code": 3})), false, 3),
            (Some(json!({"success": false, "exit_code": 143})), false, 143),
            (Some(json!({"success": false, "exit_code": 300})), false, 1),
            (Some(json!({"success": false, "exit_code": 124, "timed_out": true})), true, 124),
            (Some(json!({"success": false, "error": "Timeout after 1s."})), false, 124),
            (Some(json!({"success": false, "error": "Command not found: x", "exit_code": 127})), false, 127),
            (Some(json!({"success": false, "error": "blocked"})), false, 125),
            (Some(json!({"uname": "Linux", "disk": "…"})), false, 0),
            (None, true, 125),
            (None, false, 0),
        ] {
            assert_eq!(exit_code(structured.as_ref(), is_error), expected, "{structured:?}");
        }
    }

    #[test]
    fn arguments_are_one_object() {
        assert_eq!(arguments(None).unwrap(), Map::new());
        assert_eq!(arguments(Some(r#"{"a": 1}"#)).unwrap()["a"], 1);
        assert_eq!(arguments(Some("[1]")).unwrap_err().exit_code(), USAGE);
        assert_eq!(arguments(Some("{a}")).unwrap_err().exit_code(), USAGE);
    }
}
