#![forbid(unsafe_code)]
//! What a catalogue must fulfil before anybody signs it, and again before the helper acts on it.

mod param;
mod program;
mod surroundings;
#[cfg(test)]
mod tests;

use super::{Action, Catalog, FORMAT, Filter, ParamType, Script};
use crate::limits;
use crate::plan::is_absolute_path;
use crate::units::Millis;
use std::fmt;
pub use surroundings::is_root_group;

/// What is wrong, and where: `path` leads to the key as a reader would say it (`params.unit.pattern`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogError {
    /// The action it belongs to; empty for the document itself.
    pub action: String,
    /// The way to the key, from the action.
    pub path: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.action.is_empty(), self.path.is_empty()) {
            (true, _) => f.write_str(&self.problem),
            (false, true) => write!(f, "action `{}`: {}", self.action, self.problem),
            (false, false) => write!(f, "action `{}`, {}: {}", self.action, self.path, self.problem),
        }
    }
}

impl std::error::Error for CatalogError {}

/// Whether a text can name an action, a step, a token: `[A-Za-z0-9._-]{1,64}` (the rule of MCP tool names).
pub fn is_name(text: &str) -> bool {
    (1..=limits::NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// A key and what is wrong with it.
type Problem = (String, String);

fn problem<T>(path: impl Into<String>, text: impl Into<String>) -> Result<T, Problem> {
    Err((path.into(), text.into()))
}

impl Catalog {
    /// Checks the whole document.
    ///
    /// # Errors
    /// The first problem found, with the action and the key.
    pub fn check(&self) -> Result<(), CatalogError> {
        let document = |problem: String| CatalogError { action: String::new(), path: String::new(), problem };
        if self.format != FORMAT {
            return Err(document(format!(
                "format {} is not known; this version reads {FORMAT}",
                self.format
            )));
        }
        if self.actions.len() > limits::ACTIONS {
            return Err(document(format!("{} actions; at most {}", self.actions.len(), limits::ACTIONS)));
        }
        for pair in self.actions.windows(2) {
            if let [first, second] = pair
                && first.name >= second.name
            {
                return Err(document(format!(
                    "action `{}` stands twice or out of order; actions are sorted by name",
                    second.name
                )));
            }
        }
        self.actions.iter().try_for_each(|action| {
            action.check()?;
            match &action.script {
                Some(script) => embedded(script).map_err(|(path, problem)| CatalogError {
                    action: action.name.clone(),
                    path,
                    problem,
                }),
                None => Ok(()),
            }
        })
    }
}

/// A signed catalogue carries the bytes of its scripts.
fn embedded(script: &Script) -> Result<(), Problem> {
    let Some(body) = &script.body else {
        return problem("script.body", "the script's text is missing; `gloveport catalog build` embeds it");
    };
    if body.len() > limits::SCRIPT {
        return problem("script.body", format!("longer than {} bytes", limits::SCRIPT));
    }
    if script.sha256.as_deref() != Some(hex(&hmac_sha256::Hash::hash(body.as_bytes())).as_str()) {
        return problem("script.sha256", "the digest is not that of the script's text");
    }
    Ok(())
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Action {
    /// Checks one action.
    ///
    /// # Errors
    /// The first problem found, with the key.
    pub fn check(&self) -> Result<(), CatalogError> {
        self.check_keys().map_err(|(path, problem)| CatalogError { action: self.name.clone(), path, problem })
    }

    fn check_keys(&self) -> Result<(), Problem> {
        if !is_name(&self.name) {
            return problem("name", "a name is 1 to 64 of the characters A-Z a-z 0-9 . _ -");
        }
        if self.description.trim().is_empty() {
            return problem("description", "say what the action does: agents choose by this text");
        }
        for (name, param) in self.params.iter() {
            param::check(&format!("params.{name}"), name, param)?;
        }
        if self.params.len() > limits::ARGUMENTS {
            return problem("params", format!("at most {} parameters", limits::ARGUMENTS));
        }
        if self.params.iter().filter(|(_, p)| p.kind == ParamType::Content).count() > 1 {
            return problem("params", "at most one parameter of type content: there is one stdin");
        }
        self.check_program()?;
        self.check_surroundings()?;
        self.check_temporary()?;
        self.check_output()?;
        self.check_host_root()
    }

    fn check_output(&self) -> Result<(), Problem> {
        check_range("max_output", self.max_output(), 1, limits::OUTPUT_MAX)?;
        check_range("max_scan", self.max_scan(), 1, limits::SCAN_MAX)?;
        if self.builtin.is_some() && !self.filters.is_empty() {
            return problem("filters", "a builtin has no filters");
        }
        for (index, filter) in self.filters.iter().enumerate() {
            if self.filters.iter().filter(|other| *other == filter).count() > 1 {
                return problem(format!("filters.{index}"), "stands twice");
            }
            if matches!(self.arguments, super::Arguments::Flat) && self.params.get(filter.as_str()).is_some()
            {
                return problem(format!("filters.{index}"), "a flat parameter has the same name");
            }
        }
        for (index, pattern) in self.redact.patterns.iter().enumerate() {
            check_length(&format!("redact.patterns.{index}"), pattern)?;
        }
        match self.redact.builtin.iter().find(|name| *name != "secrets") {
            Some(name) => problem("redact.builtin", format!("`{name}` is not known; `secrets` is")),
            None => Ok(()),
        }
    }
}

impl Filter {
    /// The word used in catalogues and calls.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Exclude => "exclude",
            Self::Tail => "tail",
            Self::Head => "head",
            Self::Count => "count",
        }
    }
}

fn check_range(at: &str, value: u64, min: u64, max: u64) -> Result<(), Problem> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        problem(at, format!("{value} is not within {min} to {max}"))
    }
}

fn check_time(at: &str, time: Millis) -> Result<(), Problem> {
    if (1..=limits::TIMEOUT_MAX_MS).contains(&time.0) {
        Ok(())
    } else {
        problem(at, format!("{time} is not within 1ms to {}", Millis(limits::TIMEOUT_MAX_MS)))
    }
}

fn check_absolute(at: &str, paths: &[String]) -> Result<(), Problem> {
    match paths.iter().find(|path| !is_absolute_path(path)) {
        Some(path) => {
            problem(at, format!("`{path}` is not an absolute path without `.`, `..` and empty parts"))
        }
        None => Ok(()),
    }
}

fn check_length(at: &str, pattern: &str) -> Result<(), Problem> {
    if pattern.chars().count() > limits::PATTERN_LENGTH {
        problem(at, format!("longer than {} characters", limits::PATTERN_LENGTH))
    } else {
        Ok(())
    }
}

fn check_pattern(at: &str, pattern: &str) -> Result<(), Problem> {
    check_length(at, pattern)?;
    match crate::plan::whole_pattern(pattern) {
        Ok(_) => Ok(()),
        Err(error) => problem(at, format!("not a pattern (RE2 syntax without Unicode classes): {error}")),
    }
}
