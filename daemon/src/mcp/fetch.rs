#![forbid(unsafe_code)]
//! `run_result` and `end_run`: a caller's own runs, for a client that comes back, or that wants to see how far
//! a run is. The protocol's tasks would do the same for the few clients that know them; tools are known to all.

use super::call::Invocation;
use super::envelope::Members;
use super::json::kind;
use super::ledger::{Found, Seen};
use super::result::ToolResult;
use crate::run::live::SoFar;
use gloveport_contract::catalog::Risk;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Name of the tool that fetches.
pub const RESULT: &str = "run_result";
/// Name of the tool that ends.
pub const END: &str = "end_run";
/// Longest time that a run is waited for, seconds: clients commonly give a call up after a minute.
const WAIT: u64 = 30;
/// Longest id that is looked at and shown, characters.
const ID: usize = 64;

/// `run_result` as it is listed.
pub fn describe_result() -> Value {
    json!({
        "name": RESULT,
        "title": "Result of a run",
        "description": "What became of a run that you started: its result where it is over, else how long it has been \
            going on and the end of its output so far (redacted, not filtered). Works also after the connection was \
            lost, for as long as the action keeps results. Without `run` it lists your runs.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "run": {"type": "string", "maxLength": ID, "description": "The run's id, from progress or the list."},
                "wait": {"type": "integer", "minimum": 0, "maximum": WAIT, "default": 0,
                         "description": "Seconds to wait for a run that still goes on."},
            },
            "additionalProperties": false,
        },
        "annotations": {
            "title": "Result of a run",
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        },
        "_meta": {"gloveport/risk": Risk::Read.as_str()},
    })
}

/// `end_run` as it is listed.
pub fn describe_end() -> Value {
    json!({
        "name": END,
        "title": "End a run",
        "description": "Ends a run that you started and that still goes on: its processes are killed, and what it has \
            changed stays changed. Its result says that it was ended (run_result).",
        "inputSchema": {
            "type": "object",
            "properties": {
                "run": {"type": "string", "maxLength": ID, "description": "The run's id, from progress or the list."},
            },
            "required": ["run"],
            "additionalProperties": false,
        },
        "annotations": {
            "title": "End a run",
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false,
        },
        "_meta": {"gloveport/risk": Risk::Write.as_str()},
    })
}

/// Calls `run_result`.
pub async fn result(invocation: &Invocation, mut arguments: Members) -> ToolResult {
    let asked = read_run(&mut arguments).and_then(|run| Ok((run, read_wait(&mut arguments)?)));
    let (run, wait) = match asked.and_then(|asked| nothing_else(&arguments).map(|()| asked)) {
        Ok(asked) => asked,
        Err(problem) => return ToolResult::failure(format!("{RESULT}: {problem}")),
    };
    let key = invocation.principal.key();
    let ledger = &invocation.state.ledger;
    let Some(run) = run else {
        return list(&ledger.list(Some(&key)));
    };
    let find = || ledger.find(&run, &key, |action, risk| invocation.principal.permits(action, risk).is_ok());
    let mut found = find();
    if let Some(Found::Going { ended, .. }) = &mut found
        && !wait.is_zero()
    {
        // Closed when it ends; nothing is ever sent.
        let _ = timeout(wait, ended.changed()).await;
        found = find();
    }
    match found {
        Some(Found::Over { seen, mut result }) => {
            result.meta.insert("gloveport/run".to_owned(), json!(seen));
            result
        }
        Some(Found::Going { seen, so_far, .. }) => going(&seen, &so_far),
        None => unknown(invocation, RESULT, &run),
    }
}

/// Calls `end_run`.
pub fn end(invocation: &Invocation, mut arguments: Members) -> ToolResult {
    let run = match read_run(&mut arguments).and_then(|run| nothing_else(&arguments).map(|()| run)) {
        Ok(Some(run)) => run,
        Ok(None) => return ToolResult::failure(format!("{END}: run: required")),
        Err(problem) => return ToolResult::failure(format!("{END}: {problem}")),
    };
    let by = format!("its caller ({})", invocation.owner(&invocation.principal).name);
    if invocation.state.ledger.end(&run, Some(&invocation.principal.key()), &by) {
        ToolResult {
            text: format!("{run} is being ended; `{RESULT}` tells how it went"),
            ..ToolResult::structured(json!({"run": run, "ending": true}))
        }
    } else {
        unknown(invocation, END, &run)
    }
}

fn unknown(invocation: &Invocation, tool: &str, run: &str) -> ToolResult {
    invocation.note(&invocation.principal, tool, "run", "no run of this caller has that id");
    ToolResult::failure(format!(
        "{tool}: you have no run `{run}`: another caller has started it, or it is over and its result is no longer \
         kept. Call `{RESULT}` without arguments to see yours"
    ))
}

fn list(runs: &[Seen]) -> ToolResult {
    let line = |run: &Seen| match run.kept_for_s {
        Some(left) => format!("{} {}: finished, the result is kept for {left} s", run.run, run.action),
        None => format!("{} {}: {}", run.run, run.action, at_work(run)),
    };
    let lines: Vec<String> = runs.iter().map(line).collect();
    let text =
        if lines.is_empty() { "no run of yours goes on or is kept".to_owned() } else { lines.join("\n") };
    ToolResult { text, ..ToolResult::structured(json!({"runs": runs})) }
}

fn at_work(run: &Seen) -> String {
    let seconds = run.elapsed_ms.unwrap_or_default() / 1000;
    format!("{}, {seconds} s, {} bytes of output so far", run.state, run.bytes)
}

fn going(seen: &Seen, so_far: &SoFar) -> ToolResult {
    let mut text = format!("[{} {}: {}]\n{}", seen.action, seen.run, at_work(seen), so_far.stdout);
    if !so_far.stderr.is_empty() {
        text.push_str(&format!("\n[stderr]\n{}", so_far.stderr));
    }
    let mut structured = json!(seen);
    if let Some(members) = structured.as_object_mut() {
        members.insert("stdout".to_owned(), json!(so_far.stdout));
        members.insert("stderr".to_owned(), json!(so_far.stderr));
    }
    ToolResult { text, ..ToolResult::structured(structured) }
}

fn read_run(arguments: &mut Members) -> Result<Option<String>, String> {
    match arguments.remove("run") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(run)) => Ok(Some(run.chars().filter(|c| !c.is_control()).take(ID).collect())),
        Some(other) => Err(format!("run: must be a text, not {}", kind(&other))),
    }
}

fn read_wait(arguments: &mut Members) -> Result<Duration, String> {
    let wait = match arguments.remove("wait") {
        None | Some(Value::Null) => Some(0),
        Some(value) => value.as_u64().filter(|wait| *wait <= WAIT),
    };
    wait.map(Duration::from_secs)
        .ok_or_else(|| format!("wait: must be an integer from 0 to {WAIT} (seconds)"))
}

fn nothing_else(arguments: &Members) -> Result<(), String> {
    match arguments.keys().next() {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(ID).collect();
            Err(format!("{shown}: not an input of this tool"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_form_is_named() {
        let read = |arguments: Value| {
            let mut arguments = arguments.as_object().unwrap().clone();
            read_run(&mut arguments)?;
            read_wait(&mut arguments)?;
            nothing_else(&arguments)
        };
        for arguments in [json!({}), json!({"run": "7"}), json!({"run": null, "wait": 30})] {
            assert_eq!(read(arguments), Ok(()));
        }
        for (arguments, named) in [
            (json!({"run": 7}), "run: must be a text"),
            (json!({"wait": 31}), "wait: "),
            (json!({"wait": 1.5}), "wait: "),
            (json!({"wait": -1}), "wait: "),
            (json!({"other": 1}), "other: not an input"),
        ] {
            assert!(read(arguments.clone()).unwrap_err().starts_with(named), "{arguments}");
        }
    }
}
