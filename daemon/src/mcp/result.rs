#![forbid(unsafe_code)]
//! A tool's result: structured for programs, a text for readers, in the shape that the action asks for.

use super::envelope::Members;
use super::{fit, text};
use crate::run::report::{Report, StepReport, StepStatus};
use gloveport_contract::catalog::{Action, Builtin, ResultShape};
use gloveport_contract::packet::Receipt;
use serde_json::{Value, json};

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// What a reader gets.
    pub text: String,
    /// What a program gets.
    pub structured: Option<Value>,
    /// Whether it is a refusal, a failure to start or a timeout.
    pub is_error: bool,
    /// What stands in `_meta`.
    pub meta: Members,
}

impl ToolResult {
    /// A refusal or a failure, as text.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None, is_error: true, meta: Members::new() }
    }

    /// A result whose text is its structured content.
    pub fn structured(value: Value) -> Self {
        Self { text: value.to_string(), structured: Some(value), is_error: false, meta: Members::new() }
    }

    /// The members of the protocol's result.
    pub fn into_members(self) -> Members {
        let mut members = Members::new();
        members.insert("content".to_owned(), json!([{"type": "text", "text": self.text}]));
        if let Some(structured) = self.structured {
            members.insert("structuredContent".to_owned(), structured);
        }
        members.insert("isError".to_owned(), Value::Bool(self.is_error));
        if !self.meta.is_empty() {
            members.insert("_meta".to_owned(), Value::Object(self.meta));
        }
        members
    }
}

/// A refusal or a failure of an action, in the action's shape. `{success: false, error}` is an answer to an
/// agent that works as with a shell, not an error of the tool.
pub fn refusal(shape: ResultShape, error: impl Into<String>, exit_code: Option<i32>) -> ToolResult {
    let error = error.into();
    if shape == ResultShape::Full {
        return ToolResult::failure(error);
    }
    let mut members =
        Members::from_iter([("success".to_owned(), json!(false)), ("error".to_owned(), json!(error))]);
    if let Some(code) = exit_code {
        members.insert("exit_code".to_owned(), json!(code));
    }
    ToolResult::structured(Value::Object(members))
}

/// Arguments that do not fit the schema: an error in every shape, with the way to call the tool right.
pub fn misuse(shape: ResultShape, problem: &str, usage: &str) -> ToolResult {
    let text = format!("{problem}\n{usage}");
    let structured = (shape != ResultShape::Full).then(|| json!({"success": false, "error": text}));
    ToolResult { structured, ..ToolResult::failure(text) }
}

/// Exit codes of a shell for a program that is there and cannot be executed, and for one that is not there.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// A program of a free-form command that does not exist.
pub fn not_found(shape: ResultShape, program: &str) -> ToolResult {
    refusal(shape, format!("Command not found: {program}"), Some(NOT_FOUND))
}

/// A program of a free-form command that exists and cannot be executed.
pub fn not_executable(shape: ResultShape, program: &str) -> ToolResult {
    refusal(shape, format!("Not executable: {program}"), Some(NOT_EXECUTABLE))
}

/// The result of a run. `budget` bounds its output as JSON encodes it; `program` is the name in a free-form
/// command.
pub fn finished(action: &Action, mut report: Report, program: Option<&str>, budget: usize) -> ToolResult {
    fit::within(&mut report.steps, budget);
    match action.result {
        ResultShape::Full => full(action, &report),
        ResultShape::Command => with_meta(command(action, &report, program), &report),
        ResultShape::ByStep => with_meta(by_step(action, &report), &report),
    }
}

fn with_meta(mut result: ToolResult, report: &Report) -> ToolResult {
    result.meta.insert("gloveport/enforcement".to_owned(), enforcement(report));
    result.meta.insert("gloveport/audit".to_owned(), audit(&report.receipt));
    result.meta.insert("gloveport/timeout_ms".to_owned(), timeout_ms(report));
    result
}

/// The limit that was in force, which is not always the one that was asked for.
fn timeout_ms(report: &Report) -> Value {
    u64::try_from(report.deadline.as_millis()).unwrap_or(u64::MAX).into()
}

fn full(action: &Action, report: &Report) -> ToolResult {
    if let Some(reason) = never_started(report) {
        return ToolResult::failure(format!("{} could not be started: {reason}", action.name));
    }
    let mut structured = json!({
        "action": report.action,
        "success": report.success,
        "exit_code": report.exit_code,
        "timed_out": report.timed_out,
        "timeout_ms": timeout_ms(report),
        "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "steps": report.steps.iter().map(step).collect::<Value>(),
        "enforcement": enforcement(report),
        "audit": audit(&report.receipt),
    });
    let data = data(action, report);
    let text = text::of(action, report, data.as_ref());
    if let (Some(data), Some(members)) = (data, structured.as_object_mut()) {
        members.insert("data".to_owned(), data);
    }
    let is_error = report.timed_out || report.ended_by.is_some();
    ToolResult { text, structured: Some(structured), is_error, meta: Members::new() }
}

/// The reason, where no step of a run was ever started.
fn never_started(report: &Report) -> Option<&str> {
    let tried =
        report.steps.iter().all(|step| step.not_started.is_some() || step.status == StepStatus::Skipped);
    if tried { report.steps.iter().find_map(|step| step.not_started.as_deref()) } else { None }
}

/// What a handler printed: one JSON value.
fn data(action: &Action, report: &Report) -> Option<Value> {
    match action.builtin {
        None | Some(Builtin::Command) => None,
        Some(_) => serde_json::from_str(&report.steps.first()?.stdout).ok(),
    }
}

fn step(step: &StepReport) -> Value {
    let mut value = json!({
        "name": step.name,
        "status": status(step.status),
        "exit_code": step.exit_code,
        "signal": step.signal,
        "stdout": step.stdout,
        "stderr": step.stderr,
        "stdout_bytes": step.stdout_bytes,
        "stderr_bytes": step.stderr_bytes,
        "stdout_truncated": step.stdout_truncated,
        "stderr_truncated": step.stderr_truncated,
        "scan_limit_reached": step.scan_limit_reached,
        "redactions": step.redactions,
        "lossy_utf8": step.lossy_utf8,
        "count": step.count,
    });
    if let (Some(reason), Some(members)) = (&step.not_started, value.as_object_mut()) {
        members.insert("error".to_owned(), json!(reason));
    }
    value
}

fn status(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Success => "success",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
        StepStatus::Timeout => "timeout",
        StepStatus::Cancelled => "cancelled",
    }
}

fn enforcement(report: &Report) -> Value {
    let e = &report.enforcement;
    let mut value = json!({
        "run_as": e.run_as,
        "no_new_privs": e.no_new_privs,
        "landlock_abi": e.landlock_abi,
        "seccomp": e.seccomp,
        "one_shot_exec": e.one_shot_exec,
        "cgroup": e.cgroup,
        "network": e.network,
        "absent": e.absent,
        "lacking": e.lacking,
        "killed_by": report.killed_by,
    });
    if e.same_user
        && let Some(members) = value.as_object_mut()
    {
        members.insert("same_user".to_owned(), Value::Bool(true));
    }
    value
}

/// A receipt as it stands in results.
pub fn audit(receipt: &Receipt) -> Value {
    let hash: String = receipt.hash.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"seq": receipt.seq, "hash": hash})
}

fn command(action: &Action, report: &Report, program: Option<&str>) -> ToolResult {
    if report.timed_out {
        return refusal(ResultShape::Command, text::timeout(report), None);
    }
    if let Some(by) = &report.ended_by {
        return refusal(ResultShape::Command, text::ended(by, report), None);
    }
    let Some(step) = report.steps.first() else {
        return refusal(ResultShape::Command, "the action has no step", None);
    };
    if let Some(reason) = &step.not_started {
        // It was there when the call was checked, and is not any more.
        return match (report.exit_code, program) {
            (NOT_FOUND, Some(program)) => not_found(ResultShape::Command, program),
            (NOT_EXECUTABLE, Some(program)) => not_executable(ResultShape::Command, program),
            _ => refusal(ResultShape::Command, reason, None),
        };
    }
    ToolResult::structured(json!({
        "success": report.exit_code == 0,
        "exit_code": report.exit_code,
        "stdout": step.stdout,
        // The shape has no place for marks: what was cut is told where a program tells such things.
        "stderr": with_cuts(&step.stderr, action, step),
    }))
}

/// A text, and behind it what was cut.
fn with_cuts(text: &str, action: &Action, step: &StepReport) -> String {
    text::cuts(action, step).into_iter().fold(text.to_owned(), |mut text, cut| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&cut);
        text.push('\n');
        text
    })
}

fn by_step(action: &Action, report: &Report) -> ToolResult {
    let part = |step: &StepReport| match (step.status, &step.not_started) {
        (StepStatus::Success, _) => with_cuts(&step.stdout, action, step),
        (StepStatus::Timeout, _) => format!("Error: {}", text::timeout(report)),
        (_, Some(reason)) => format!("Error: {reason}"),
        (StepStatus::Skipped, _) => "Error: skipped, because an earlier part failed".to_owned(),
        (StepStatus::Cancelled, _) => "Error: cancelled".to_owned(),
        (StepStatus::Failed, _) => match step.stderr.trim() {
            "" => format!("Error: exit code {}", step.exit_code.unwrap_or(report.exit_code)),
            said => format!("Error: {said}"),
        },
    };
    ToolResult::structured(report.steps.iter().map(|step| (step.name.clone(), json!(part(step)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fit::ENCODED_OUTPUT;
    use crate::mcp::fixtures::{action, report};
    use std::time::Duration;

    #[test]
    fn the_full_shape_has_exactly_the_documented_members() {
        let result = finished(&action(json!({})), report("hello\n"), None, ENCODED_OUTPUT);
        let structured = result.structured.unwrap();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(
            keys(&structured),
            "action audit duration_ms enforcement exit_code steps success timed_out timeout_ms"
        );
        assert_eq!(
            keys(&structured["steps"][0]),
            "count exit_code lossy_utf8 name redactions scan_limit_reached signal status stderr stderr_bytes \
             stderr_truncated stdout stdout_bytes stdout_truncated"
        );
        assert_eq!(
            keys(&structured["enforcement"]),
            "absent cgroup killed_by lacking landlock_abi network no_new_privs one_shot_exec run_as seccomp"
        );
        assert_eq!(structured["audit"]["hash"].as_str().map(str::len), Some(64));
        assert!(!result.is_error);
    }

    #[test]
    fn a_non_zero_exit_is_a_normal_result_and_a_timeout_is_an_error() {
        let mut failed = report("");
        (failed.success, failed.exit_code) = (false, 3);
        assert!(!finished(&action(json!({})), failed, None, ENCODED_OUTPUT).is_error);
        let mut late = report("part");
        (late.success, late.timed_out) = (false, true);
        let result = finished(&action(json!({})), late, None, ENCODED_OUTPUT);
        assert!(result.is_error);
        assert_eq!(result.structured.unwrap()["steps"][0]["stdout"], "part");
    }

    #[test]
    fn a_failure_to_start_is_text_only() {
        let mut never = report("");
        never.steps[0].status = StepStatus::Failed;
        never.steps[0].not_started = Some("exec: permission denied".to_owned());
        let result = finished(&action(json!({})), never, None, ENCODED_OUTPUT);
        assert!(result.is_error && result.structured.is_none());
        assert!(result.text.contains("permission denied"));
    }

    #[test]
    fn the_command_shape_is_what_an_agent_of_a_shell_expects() {
        let command = action(json!({"result": "command"}));
        let mut done = report("out");
        done.exit_code = 2;
        let result = finished(&command, done, None, ENCODED_OUTPUT);
        assert_eq!(
            result.structured,
            Some(json!({"success": false, "exit_code": 2, "stdout": "out", "stderr": ""}))
        );
        assert!(result.meta.contains_key("gloveport/audit"));
        let mut late = report("");
        (late.timed_out, late.deadline) = (true, Duration::from_secs(30));
        let result = finished(&command, late, None, ENCODED_OUTPUT);
        assert_eq!(result.structured, Some(json!({"success": false, "error": "Timeout after 30s."})));
        assert!(!result.is_error);
        let mut long = report("日");
        (long.steps[0].stdout_truncated, long.steps[0].stdout_bytes) = (true, 900);
        let structured = finished(&command, long, None, ENCODED_OUTPUT).structured.unwrap();
        assert_eq!(structured["stdout"], "日");
        assert_eq!(
            structured["stderr"],
            "[stdout cut: 3 bytes shown, 900 written. Ask for less to see the rest.]\n"
        );
        let mut vanished = report("");
        (vanished.success, vanished.exit_code) = (false, 127);
        vanished.steps[0].not_started = Some("exec: No such file or directory".to_owned());
        assert_eq!(
            finished(&command, vanished, Some("x"), ENCODED_OUTPUT).structured,
            Some(json!({"success": false, "error": "Command not found: x", "exit_code": 127}))
        );
    }

    #[test]
    fn one_part_that_fails_leaves_the_others() {
        let mut parts = report("Linux");
        let mut failed = parts.steps[0].clone();
        failed.name = "disk".to_owned();
        failed.status = StepStatus::Failed;
        failed.stderr = "df: no such file\n".to_owned();
        parts.steps.push(failed);
        let result = finished(&action(json!({"result": "by_step"})), parts, None, ENCODED_OUTPUT);
        assert_eq!(result.structured, Some(json!({"main": "Linux", "disk": "Error: df: no such file"})));
    }

    #[test]
    fn the_output_of_a_handler_is_data() {
        let handler =
            action(json!({"exec": null, "builtin": "read_file", "builtin_config": {"read": ["/srv"]}}));
        let result = finished(&handler, report(r#"{"lines":["a"]}"#), None, ENCODED_OUTPUT);
        assert_eq!(result.structured.unwrap()["data"], json!({"lines": ["a"]}));
    }
}
