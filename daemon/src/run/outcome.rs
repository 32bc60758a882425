#![forbid(unsafe_code)]
//! What the helper said and what was read, as one report.

use super::budget::Budget;
use super::collect::Stream;
use super::present::cut;
use super::report::{Report, StepReport, StepStatus};
use gloveport_contract::packet::{Enforcement, Outcome, Receipt, Usage};
use std::time::Duration;

const SIGPIPE: i32 = 13;
/// Exit code of a run that the deadline ended, as timeout(1) has it.
const TIMED_OUT: i32 = 124;
/// Exit codes of a shell: found but not executable, not found.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// Nothing was started, for another reason.
const NOT_STARTED: i32 = 125;
const ENOENT: i32 = 2;

/// A step as far as it is known.
pub struct StepEnd {
    report: StepReport,
    killed_by: Option<String>,
    /// We stopped reading before its writers were done.
    closed_early: bool,
    /// The run's exit code, if this is the first step that failed.
    exit_code: i32,
}

/// What belongs to the whole run.
pub struct Run {
    /// The action's name.
    pub action: String,
    /// The effective limit.
    pub deadline: Duration,
    /// From request to end.
    pub duration: Duration,
    /// What confined it.
    pub enforcement: Enforcement,
    /// The audit record.
    pub receipt: Receipt,
    /// Who had it ended.
    pub ended_by: Option<String>,
}

impl StepEnd {
    /// A step that has not started; that is what it stays if nothing more is heard of it.
    pub fn new(name: &str) -> Self {
        let report = StepReport {
            name: name.to_owned(),
            status: StepStatus::Skipped,
            exit_code: None,
            signal: None,
            not_started: None,
            stdout: String::new(),
            stderr: String::new(),
            stdout_bytes: 0,
            stderr_bytes: 0,
            stdout_truncated: false,
            stderr_truncated: false,
            scan_limit_reached: false,
            redactions: 0,
            lossy_utf8: false,
            count: None,
            usage: Usage::default(),
        };
        Self { report, killed_by: None, closed_early: false, exit_code: 0 }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.report.name
    }

    /// Its output, read; what does not fit into the budget is cut.
    pub fn show(&mut self, mut stdout: Stream, mut stderr: Stream, budget: &mut Budget, last: bool) {
        let shares = budget.share(stdout.text.text.len(), stderr.text.text.len(), last);
        for (stream, share) in [(&mut stdout, shares.0), (&mut stderr, shares.1)] {
            if let Some(keep) = stream.keep {
                stream.text.truncated |= cut(&mut stream.text.text, share, keep);
            }
        }
        let report = &mut self.report;
        self.closed_early = stdout.closed_early || stderr.closed_early;
        report.stdout_bytes = stdout.bytes;
        report.stderr_bytes = stderr.bytes;
        report.stdout_truncated = stdout.text.truncated;
        report.stderr_truncated = stderr.text.truncated;
        report.scan_limit_reached = stdout.scan_limit_reached;
        report.redactions = stdout.redactions + stderr.redactions;
        report.lossy_utf8 = stdout.text.lossy || stderr.text.lossy;
        report.count = stdout.count;
        report.stdout = stdout.text.text;
        report.stderr = stderr.text.text;
    }

    /// It has ended; its output was shown before.
    pub fn end(&mut self, outcome: Outcome, killed_by: Option<String>, usage: Usage) {
        let report = &mut self.report;
        report.usage = usage;
        (report.status, self.exit_code) = match outcome {
            Outcome::Skipped => (StepStatus::Skipped, 0),
            Outcome::NotStarted { stage, errno } => {
                report.not_started = Some(describe(&stage, errno));
                (StepStatus::Failed, code_of(&stage, errno))
            }
            Outcome::Exited(code) => {
                report.exit_code = Some(code);
                (if code == 0 { StepStatus::Success } else { StepStatus::Failed }, code)
            }
            Outcome::Signaled(signal) => {
                report.signal = Some(signal);
                // It wrote on after we had stopped reading: our doing, not a failure.
                let ours = signal == SIGPIPE && self.closed_early;
                let code = if ours { 0 } else { 128 + signal };
                report.exit_code = Some(code);
                (if ours { StepStatus::Success } else { StepStatus::Failed }, code)
            }
        };
        match killed_by.as_deref() {
            Some("timeout") => (report.status, self.exit_code) = (StepStatus::Timeout, TIMED_OUT),
            Some("cancelled") => report.status = StepStatus::Cancelled,
            _ => {}
        }
        self.killed_by = killed_by;
    }

    /// Whether the helper ended it because its own end or its caller's had come.
    pub fn was_cancelled(&self) -> bool {
        self.report.status == StepStatus::Cancelled
    }

    fn succeeded(&self) -> bool {
        self.report.status == StepStatus::Success
    }

    fn was_skipped(&self) -> bool {
        self.report.status == StepStatus::Skipped
    }

    /// A broken pipe that was our doing counts as a failure all the same.
    fn count_broken_pipe(&mut self) {
        if self.report.signal == Some(SIGPIPE) && self.succeeded() {
            self.exit_code = 128 + SIGPIPE;
            self.report.exit_code = Some(self.exit_code);
            self.report.status = StepStatus::Failed;
        }
    }
}

/// The stage and the reason why a program was not started.
fn describe(stage: &str, errno: i32) -> String {
    match errno {
        0 => stage.to_owned(),
        errno => format!("{stage}: {}", std::io::Error::from_raw_os_error(errno)),
    }
}

fn code_of(stage: &str, errno: i32) -> i32 {
    match (stage, errno) {
        ("exec", ENOENT) => NOT_FOUND,
        ("exec", _) => NOT_EXECUTABLE,
        _ => NOT_STARTED,
    }
}

/// Puts the report together.
pub fn report(run: Run, mut steps: Vec<StepEnd>) -> Report {
    // The helper keeps to `on_error: stop` without asking the daemon why a pipe broke: one that was taken over
    // could end a step early and have the next one run. Where it skipped the rest, not all went well.
    if let Some(last) = steps.iter().rposition(|step| !step.was_skipped())
        && last + 1 < steps.len()
        && let Some(last) = steps.get_mut(last)
    {
        last.count_broken_pipe();
    }
    let first_failed = steps.iter().find(|step| !step.was_skipped() && !step.succeeded());
    // A step that ran after the deadline cannot be: one timeout covers all of them.
    let timed_out = steps.iter().any(|step| step.killed_by.as_deref() == Some("timeout"));
    Report {
        action: run.action,
        success: first_failed.is_none() && !timed_out,
        exit_code: if timed_out { TIMED_OUT } else { first_failed.map_or(0, |step| step.exit_code) },
        timed_out,
        deadline: run.deadline,
        duration: run.duration,
        enforcement: run.enforcement,
        killed_by: steps.iter().find_map(|step| step.killed_by.clone()),
        receipt: run.receipt,
        ended_by: run.ended_by,
        steps: steps.into_iter().map(|step| step.report).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::present::{Keep, Text};

    fn ended(outcome: Outcome, killed_by: Option<&str>) -> StepEnd {
        let mut step = StepEnd::new("main");
        step.end(outcome, killed_by.map(Into::into), Usage::default());
        step
    }

    fn reported(steps: Vec<StepEnd>) -> Report {
        let run = Run {
            action: "a".into(),
            deadline: Duration::from_secs(1),
            duration: Duration::ZERO,
            enforcement: Enforcement::default(),
            receipt: Receipt { seq: 1, hash: [0; 32] },
            ended_by: None,
        };
        report(run, steps)
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let not_started = |stage: &str, errno| Outcome::NotStarted { stage: stage.into(), errno };
        for (outcome, killed_by, code, status) in [
            (Outcome::Exited(0), None, 0, StepStatus::Success),
            (Outcome::Exited(0), Some("leftovers"), 0, StepStatus::Success),
            (Outcome::Exited(3), None, 3, StepStatus::Failed),
            (Outcome::Signaled(9), None, 137, StepStatus::Failed),
            (Outcome::Signaled(9), Some("memory"), 137, StepStatus::Failed),
            (Outcome::Signaled(13), None, 141, StepStatus::Failed),
            (Outcome::Signaled(15), Some("timeout"), 124, StepStatus::Timeout),
            (Outcome::Exited(0), Some("timeout"), 124, StepStatus::Timeout),
            (Outcome::Signaled(9), Some("cancelled"), 137, StepStatus::Cancelled),
            (not_started("exec", 2), None, 127, StepStatus::Failed),
            (not_started("exec", 13), None, 126, StepStatus::Failed),
            (not_started("cwd", 2), None, 125, StepStatus::Failed),
        ] {
            let report = reported(vec![ended(outcome.clone(), killed_by)]);
            assert_eq!(
                (report.exit_code, report.steps[0].status),
                (code, status),
                "{outcome:?} {killed_by:?}"
            );
            assert_eq!(report.success, status == StepStatus::Success);
            assert_eq!(report.timed_out, killed_by == Some("timeout"));
        }
    }

    #[test]
    fn the_first_failure_decides_and_a_skipped_step_stays_visible() {
        let steps = vec![
            ended(Outcome::Exited(0), None),
            ended(Outcome::Exited(4), None),
            ended(Outcome::Exited(5), None),
            ended(Outcome::Skipped, None),
        ];
        let report = reported(steps);
        assert_eq!((report.exit_code, report.steps.len()), (4, 4));
        assert_eq!(report.steps[3].status, StepStatus::Skipped);
        assert_eq!(report.steps[3].exit_code, None);
    }

    #[test]
    fn a_broken_pipe_is_no_failure_where_we_closed_it() {
        let mut step = StepEnd::new("main");
        let stream = Stream { closed_early: true, ..Stream::default() };
        step.show(stream, Stream::default(), &mut Budget::new(100), true);
        step.end(Outcome::Signaled(SIGPIPE), None, Usage::default());
        let report = reported(vec![step]);
        assert!(report.success && report.exit_code == 0 && report.steps[0].signal == Some(SIGPIPE));
    }

    #[test]
    fn a_broken_pipe_for_which_the_rest_was_skipped_counts() {
        let broken = || {
            let mut step = StepEnd::new("main");
            let stream = Stream { closed_early: true, ..Stream::default() };
            step.show(stream, Stream::default(), &mut Budget::new(100), false);
            step.end(Outcome::Signaled(SIGPIPE), None, Usage::default());
            step
        };
        let report = reported(vec![broken(), ended(Outcome::Skipped, None)]);
        assert_eq!(
            (report.success, report.exit_code, report.steps[0].status),
            (false, 141, StepStatus::Failed)
        );
        let report = reported(vec![broken(), ended(Outcome::Exited(0), None)]);
        assert_eq!((report.success, report.exit_code), (true, 0));
    }

    #[test]
    fn output_over_the_budget_is_cut_but_never_a_document() {
        let text = |keep| Stream {
            text: Text { text: "0123456789".into(), ..Text::default() },
            keep,
            ..Stream::default()
        };
        let shown = |keep| {
            let mut step = StepEnd::new("main");
            step.show(text(keep), Stream::default(), &mut Budget::new(4), true);
            (step.report.stdout, step.report.stdout_truncated)
        };
        assert_eq!(shown(Some(Keep::Start)), ("0123".into(), true));
        assert_eq!(shown(Some(Keep::End)), ("6789".into(), true));
        assert_eq!(shown(None), ("0123456789".into(), false));
    }
}
