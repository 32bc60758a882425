#![forbid(unsafe_code)]
//! How a command fails: what happened, why, the way out, and the exit code.

use std::fmt;

/// Exit code of a command that was called the wrong way (`EX_USAGE`).
pub const USAGE: u8 = 64;
/// Exit code when the daemon cannot be reached (`EX_UNAVAILABLE`).
pub const UNREACHABLE: u8 = 69;
/// Exit code of a run that its deadline ended, as timeout(1) has it.
pub const TIMEOUT: u8 = 124;
/// Exit code of a run that was refused or failed to start.
pub const REFUSED: u8 = 125;

/// What a command may return: its exit code.
pub type Outcome = Result<u8, Failure>;

/// A failure that a person can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    code: u8,
    what: String,
    remedy: Option<String>,
}

impl Failure {
    /// A failure with exit code 1. `what` says what happened and why, in one sentence.
    pub fn new(what: impl Into<String>) -> Self {
        Self { code: 1, what: what.into(), remedy: None }
    }
    /// A command that was called the wrong way.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(what).code(USAGE)
    }
    /// The same with the way out.
    #[must_use]
    pub fn remedy(self, text: impl Into<String>) -> Self {
        Self { remedy: Some(text.into()), ..self }
    }
    /// The same with another exit code.
    #[must_use]
    pub fn code(self, code: u8) -> Self {
        Self { code, ..self }
    }
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        self.code
    }
    /// What happened and why, without the way out.
    pub fn what(&self) -> &str {
        &self.what
    }
    /// The way out.
    pub fn way_out(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, "\n  {}", remedy.replace('\n', "\n  ")),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self::new(what)
    }
}
