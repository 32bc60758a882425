#![forbid(unsafe_code)]
//! How a call ends that has no answer.

use crate::answer::{escaped_length, prefix_within};
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why there is no answer, in words for the caller: what, why, and the way out.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The call was refused, or what it asks for could not be done.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// The action's configuration is one that this handler cannot work with.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 64 }
    }

    /// A step failed in the operating system.
    pub fn system(what: impl AsRef<str>, error: impl Into<io::Error>) -> Self {
        Self::refused(format!("{}: {}", what.as_ref(), error.into()))
    }

    /// What is told to the caller.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints `{"error": …}`, cut to what the action lets out, and gives the exit code.
    pub fn print(self, max_output: usize) -> ExitCode {
        const FRAME: usize = r#"{"error":""}"#.len() + 1;
        let room = max_output.saturating_sub(FRAME);
        let message = if escaped_length(&self.message) > room {
            prefix_within(&self.message, room)
        } else {
            self.message.as_str()
        };
        // A reader that is gone needs no error.
        let _ = writeln!(io::stdout(), "{}", json!({ "error": message }));
        ExitCode::from(self.code)
    }
}

/// Shorthand for a refusal.
pub fn refuse<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::refused(message))
}
