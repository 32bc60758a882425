#![forbid(unsafe_code)]
//! What goes into a run and what comes out of it, as the protocol layer sees it.

use gloveport_contract::packet::{Argument, Caller, Enforcement, Receipt, RefusalCode, Usage};
use std::time::Duration;

/// A call of an action.
#[derive(Clone)]
pub struct Call {
    /// The action.
    pub action: String,
    /// Its arguments.
    pub args: Vec<Argument>,
    /// What goes to stdin, where a parameter of type content is declared.
    pub content: Option<Vec<u8>>,
    /// The filters that the caller asked for.
    pub filters: Filters,
    /// The token that was presented; `None` for a local user.
    pub token: Option<String>,
    /// Who calls.
    pub caller: Caller,
}

/// Filters of one call. `tail`, `head` and `count` exclude each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Keep lines that match.
    pub matching: Option<String>,
    /// Drop lines that match.
    pub exclude: Option<String>,
    /// The last lines only.
    pub tail: Option<u64>,
    /// The first lines only.
    pub head: Option<u64>,
    /// Their number only; `Some(false)` counts as present.
    pub count: Option<bool>,
}

/// A sign of life of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The helper accepted it; it may take this long.
    Accepted {
        /// Its id.
        run: String,
        /// The effective limit.
        deadline: Duration,
    },
    /// A person must say yes.
    AwaitingApproval {
        /// The id for `gloveport approve`.
        id: String,
        /// How long it has waited.
        elapsed: Duration,
        /// How long it is held.
        timeout: Duration,
    },
    /// A step has started.
    Step {
        /// Its index.
        index: u32,
        /// Its name.
        name: String,
    },
    /// So many bytes of output have been read so far.
    Output {
        /// Bytes of all streams.
        bytes: u64,
        /// Since the call.
        elapsed: Duration,
    },
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The action.
    pub action: String,
    /// Each step succeeded.
    pub success: bool,
    /// That of the first failed step, or 0; 128+n for a signal, 124 for a timeout.
    pub exit_code: i32,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// The effective limit.
    pub deadline: Duration,
    /// From request to end.
    pub duration: Duration,
    /// All steps of the action, also those that were skipped.
    pub steps: Vec<StepReport>,
    /// What confined it.
    pub enforcement: Enforcement,
    /// What ended it beside itself.
    pub killed_by: Option<String>,
    /// Who had it ended before it was over.
    pub ended_by: Option<String>,
    /// The audit record.
    pub receipt: Receipt,
}

/// How a step ended, for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// Exit status 0.
    Success,
    /// Anything else.
    Failed,
    /// An earlier step failed.
    Skipped,
    /// The deadline came.
    Timeout,
    /// The caller went away.
    Cancelled,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: StepStatus,
    /// Its exit code; 128+n for a signal; `None` where it never started.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it never started: the preparation's stage and the reason.
    pub not_started: Option<String>,
    /// Redacted, filtered, cut.
    pub stdout: String,
    /// Redacted, cut.
    pub stderr: String,
    /// Raw bytes that it wrote.
    pub stdout_bytes: u64,
    /// Raw bytes that it wrote.
    pub stderr_bytes: u64,
    /// stdout was cut to the budget.
    pub stdout_truncated: bool,
    /// stderr was cut to the budget.
    pub stderr_truncated: bool,
    /// `max_scan` was reached: filters saw no more.
    pub scan_limit_reached: bool,
    /// How many places were redacted.
    pub redactions: u64,
    /// Bytes that were no UTF-8 became U+FFFD.
    pub lossy_utf8: bool,
    /// The number of lines, where `count` was asked for.
    pub count: Option<u64>,
    /// What it used.
    pub usage: Usage,
}

/// Why there is no report.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The helper refused it.
    Refused {
        /// The kind of reason.
        code: RefusalCode,
        /// The reason.
        detail: String,
        /// The record.
        receipt: Option<Receipt>,
    },
    /// All slots are taken.
    Busy,
    /// The helper cannot be reached, or went away: the reason and the way out.
    Helper(String),
    /// The call is larger than a packet, or a filter is no pattern: refused before it was sent.
    Invalid(String),
}
