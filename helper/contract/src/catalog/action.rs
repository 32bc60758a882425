#![forbid(unsafe_code)]
//! One action and what belongs to it.

use super::{Builtin, BuiltinConfig, Limits, Param, Sandbox};
use crate::limits;
use crate::named::Named;
use crate::units::{Bytes, Millis};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What an action may do to its host, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Changes nothing.
    Read,
    /// Changes something that can be put right.
    Write,
    /// May cost data or the host.
    Dangerous,
}

impl Risk {
    /// The word used in catalogues, tokens and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Dangerous => "dangerous",
        }
    }
}

/// Where the parameters stand in a tool's input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    /// Under `params`, filters beside it.
    #[default]
    Nested,
    /// At the top level.
    Flat,
}

/// What happens after a failed step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The rest is skipped, and stays visible as such.
    #[default]
    Stop,
    /// The next step runs.
    Continue,
}

/// Whether a person must say yes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// Runs at once.
    #[default]
    None,
    /// Held until `gloveport approve`.
    Required,
}

/// What a closed connection means for a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// The run ends.
    #[default]
    Cancel,
    /// The run goes on to its end.
    Finish,
}

/// The form of the structured result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultShape {
    /// `action, success, steps, enforcement, audit`.
    #[default]
    Full,
    /// `{step: stdout or "Error: …"}`.
    ByStep,
    /// `{success, exit_code, stdout, stderr}` or `{success: false, error}`.
    Command,
}

/// A filter that a caller may apply to the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Keep lines that match.
    Match,
    /// Drop lines that match.
    Exclude,
    /// The last lines only.
    Tail,
    /// The first lines only.
    Head,
    /// Their number only.
    Count,
}

/// What is removed from output before anybody sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redact {
    /// Built-in recognisers by name; `secrets` is the only one, and in force unless the list is given.
    #[serde(default = "recognisers", skip_serializing_if = "is_recognisers")]
    pub builtin: Vec<String>,
    /// RE2 patterns of the action's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub patterns: Vec<String>,
}

impl Default for Redact {
    fn default() -> Self {
        Self { builtin: recognisers(), patterns: Vec::new() }
    }
}

/// What is recognised where `redact` says nothing of it: patterns of its own take nothing away.
fn recognisers() -> Vec<String> {
    vec!["secrets".into()]
}

fn is_recognisers(builtin: &[String]) -> bool {
    builtin == recognisers()
}

/// What becomes of terminal escapes, bidirectional and zero-width characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Escapes {
    /// Shown as text, `\x1b`.
    #[default]
    Visible,
    /// Removed.
    Strip,
    /// Left as they are.
    Raw,
}

/// How output is presented.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Terminal escapes and invisible characters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub escapes: Escapes,
}

/// One element of an argv: a text or `"{parameter}"`, or an optional group of those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgvItem {
    /// A literal or a whole-element placeholder.
    One(String),
    /// Present when each of its parameters is given (a boolean: when it is true; a list: when it has
    /// items), absent otherwise.
    Group(Vec<String>),
}

/// One program of an action with several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name in the result.
    pub name: String,
    /// Its argv; the first element is an absolute path.
    pub exec: Vec<ArgvItem>,
    /// Other absolute paths, tried only when the first does not exist.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exec_fallbacks: Vec<String>,
    /// A sandbox of its own in place of the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
}

/// A script whose bytes are signed with the action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The file beside the YAML source, by name.
    pub file: String,
    /// The absolute path of its interpreter.
    pub interpreter: String,
    /// The script's own arguments.
    #[serde(default, skip_serializing_if = "is_default")]
    pub args: Vec<ArgvItem>,
    /// Its text: embedded by `catalog build`, absent in a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Lower-case hexadecimal SHA-256 of the text: embedded by `catalog build`, absent in a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How long a run may take.
#[derive(Debug, Clone, PartialEq)]
pub enum Timeout {
    /// Always this long.
    Fixed(Millis),
    /// Seconds from a parameter, clamped to 1 s up to `max`.
    Param {
        /// The integer parameter, in seconds.
        param: String,
        /// When it is not given.
        default: Millis,
        /// The longest that a caller can get.
        max: Millis,
    },
}

/// Where a program starts.
#[derive(Debug, Clone, PartialEq)]
pub enum Directory {
    /// Always here.
    Fixed(String),
    /// From a parameter, under one of the roots; `/` when it is not given.
    Param {
        /// The path parameter.
        param: String,
        /// Directories it must lie under, after resolving it as `run_as`.
        roots: Vec<String>,
    },
}

/// A signed action. All keys are described in `docs/catalog-reference.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the keys are the language; the reference page describes them")]
pub struct Action {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    pub risk: Risk,
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub params: Named<Param>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub arguments: Arguments,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<Vec<ArgvItem>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub exec_fallbacks: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin_config: Option<BuiltinConfig>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_interpreter: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_error: OnError,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_scan: Option<Bytes>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub filters: Vec<Filter>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub redact: Redact,
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: Output,
    #[serde(default, skip_serializing_if = "is_default")]
    pub result: ResultShape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Directory>,
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub env: Named<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "is_default")]
    pub sandbox: Sandbox,
    #[serde(default, skip_serializing_if = "is_default")]
    pub approval: Approval,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_timeout: Option<Millis>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_disconnect: OnDisconnect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_result: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub host_root: bool,
}

impl Action {
    /// The account it runs as where the action names none.
    pub const RUN_AS: &'static str = "gloveport-run";

    /// The account it runs as: a name of `/etc/passwd` or `uid:gid`.
    pub fn run_as(&self) -> &str {
        self.run_as.as_deref().unwrap_or(Self::RUN_AS)
    }
    /// Bytes of output that reach the client, stdout and stderr of all steps together.
    pub fn max_output(&self) -> u64 {
        self.max_output.map_or(limits::OUTPUT_DEFAULT, |bytes| bytes.0)
    }
    /// Raw stdout bytes that are scanned per step.
    pub fn max_scan(&self) -> u64 {
        self.max_scan.map_or(limits::SCAN_DEFAULT, |bytes| bytes.0)
    }
    /// Runs of this action at once.
    pub fn concurrency(&self) -> u32 {
        self.concurrency.unwrap_or(limits::CONCURRENCY_DEFAULT)
    }
    /// How long an approval is waited for.
    pub fn approval_timeout(&self) -> Duration {
        self.approval_timeout.map_or(Duration::from_secs(600), |t| Duration::from_millis(t.0))
    }
    /// How long the result of a run is kept for a client that comes back; nothing is kept of a run that ends
    /// with its connection.
    pub fn keep_result(&self) -> Option<Duration> {
        let kept = self.keep_result.map_or(Duration::from_secs(600), |t| Duration::from_millis(t.0));
        (self.on_disconnect == OnDisconnect::Finish).then_some(kept)
    }
    /// The longest that a run of it can take.
    pub fn longest_timeout(&self) -> Duration {
        Duration::from_millis(match &self.timeout {
            None => limits::TIMEOUT_DEFAULT_MS,
            Some(Timeout::Fixed(time)) => time.0,
            Some(Timeout::Param { max, .. }) => max.0,
        })
    }
}
