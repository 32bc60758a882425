#![forbid(unsafe_code)]
//! A result as a reader wants it: the output, then what must be known about it.

use crate::run::report::{Report, StepReport, StepStatus};
use gloveport_contract::catalog::Action;
use gloveport_contract::units::Millis;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// The sentence of a run that the deadline ended. UFO's agents look for its beginning.
pub fn timeout(report: &Report) -> String {
    format!("Timeout after {}s.", seconds(report.deadline))
}

/// The sentence of a run that somebody has ended.
pub fn ended(by: &str, report: &Report) -> String {
    format!("Ended by {by} after {}s, before it was over.", seconds(report.duration))
}

/// Seconds without needless digits.
fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 { time.as_secs().to_string() } else { format!("{:.3}", time.as_secs_f64()) }
}

/// A time as catalogues write it.
pub fn time(time: Duration) -> String {
    Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).to_string()
}

/// What is said of output that was cut: how much is missing, and how to get at it.
pub fn cuts(action: &Action, step: &StepReport) -> Vec<String> {
    let mut notes = Vec::new();
    if step.stdout_truncated {
        let way_out = if action.filters.is_empty() {
            "Ask for less to see the rest.".to_owned()
        } else {
            let names: Vec<&str> = action.filters.iter().map(|filter| filter.as_str()).collect();
            format!("Narrow it with {} to see the rest.", names.join(", "))
        };
        let (shown, all) = (step.stdout.len(), step.stdout_bytes);
        notes.push(format!("[stdout cut: {shown} bytes shown, {all} written. {way_out}]"));
    }
    if step.stderr_truncated {
        let (shown, all) = (step.stderr.len(), step.stderr_bytes);
        notes.push(format!("[stderr cut: {shown} bytes shown, {all} written]"));
    }
    notes
}

/// The text of a finished run. `data` is what a handler printed.
pub fn of(action: &Action, report: &Report, data: Option<&Value>) -> String {
    let mut text = String::new();
    let several = report.steps.len() > 1;
    for step in &report.steps {
        if several {
            begin_line(&mut text);
            note(&mut text, format_args!("== {} ==", step.name));
        }
        match data {
            Some(data) if !several => text.push_str(&format!("{data:#}")),
            _ => text.push_str(&step.stdout),
        }
        about(&mut text, action, report, step);
    }
    if report.timed_out {
        note(&mut text, format_args!("[{} The output up to then is above.]", timeout(report)));
    }
    if let Some(by) = &report.ended_by {
        note(&mut text, format_args!("[{} The output up to then is above.]", ended(by, report)));
    }
    if report.exit_code != 0 && !report.timed_out {
        note(&mut text, format_args!("[exit code {}]", report.exit_code));
    }
    if let Some(cause) = report.killed_by.as_deref().filter(|cause| *cause != "timeout")
        && report.ended_by.is_none()
    {
        note(&mut text, format_args!("[ended by: {cause}]"));
    }
    if text.is_empty() {
        text.push_str("[no output]");
    }
    text
}

/// What must be known of one step.
fn about(text: &mut String, action: &Action, report: &Report, step: &StepReport) {
    if let Some(count) = step.count
        && step.stdout.is_empty()
    {
        note(text, format_args!("{count}"));
    }
    if !step.stderr.trim().is_empty() {
        note(text, format_args!("[stderr]"));
        text.push_str(&step.stderr);
    }
    for cut in cuts(action, step) {
        note(text, format_args!("{cut}"));
    }
    if step.scan_limit_reached {
        note(text, format_args!("[only the first {} bytes of stdout were looked at]", action.max_scan()));
    }
    if step.redactions > 0 {
        note(text, format_args!("[{} places redacted]", step.redactions));
    }
    if step.lossy_utf8 {
        note(text, format_args!("[bytes that are no UTF-8 are shown as U+FFFD]"));
    }
    if let Some(reason) = &step.not_started {
        note(text, format_args!("[not started: {reason}]"));
    } else if step.status == StepStatus::Skipped {
        note(text, format_args!("[skipped: an earlier step failed]"));
    } else if let Some(code) = step.exit_code.filter(|code| *code != 0 && report.steps.len() > 1) {
        note(text, format_args!("[exit code {code}]"));
    }
}

fn begin_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn note(text: &mut String, note: std::fmt::Arguments<'_>) {
    begin_line(text);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{note}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fixtures::{action, report};
    use serde_json::json;

    #[test]
    fn plain_output_stands_alone() {
        assert_eq!(of(&action(json!({})), &report("a\nb\n"), None), "a\nb\n");
        assert_eq!(of(&action(json!({})), &report(""), None), "[no output]");
    }

    #[test]
    fn what_must_be_known_follows_the_output() {
        let mut run = report("a");
        (run.success, run.exit_code) = (false, 2);
        let step = &mut run.steps[0];
        step.stderr = "oh\n".to_owned();
        step.stdout_truncated = true;
        step.stdout_bytes = 900;
        step.redactions = 2;
        assert_eq!(
            of(&action(json!({"filters": ["tail", "match"]})), &run, None),
            "a\n[stderr]\noh\n\
             [stdout cut: 1 bytes shown, 900 written. Narrow it with tail, match to see the rest.]\n\
             [2 places redacted]\n[exit code 2]\n"
        );
    }

    #[test]
    fn a_timeout_is_told_with_its_length() {
        let mut run = report("a");
        (run.timed_out, run.deadline) = (true, Duration::from_millis(1500));
        assert!(of(&action(json!({})), &run, None).contains("Timeout after 1.500s."));
        run.deadline = Duration::from_secs(1);
        assert_eq!(timeout(&run), "Timeout after 1s.");
    }
}
