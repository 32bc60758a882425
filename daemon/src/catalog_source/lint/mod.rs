#![forbid(unsafe_code)]
//! What is risky in a catalogue that is not wrong: for the person who writes it, and the one who signs it.

mod commands;
mod identity;
mod params;
mod pattern;
mod programs;
mod sandbox;

use super::{SourceError, Sources};
use gloveport_contract::catalog::{Action, Sandbox};
use std::fmt;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Somebody should decide whether this is meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Level {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A finding about one key of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The action.
    pub action: String,
    /// The way to the key.
    pub path: String,
    /// What is risky, why, and what would be less so.
    pub text: String,
}

impl Finding {
    /// The finding at its place in the sources.
    pub fn located(&self, sources: &Sources) -> SourceError {
        sources.finding(&self.action, &self.path, self.to_string())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: action `{}`", self.level.as_str(), self.action)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Looks at one action. What this host has of its programs is looked at too.
pub fn lint(action: &Action) -> Vec<Finding> {
    let mut report = Report { action: &action.name, findings: Vec::new() };
    programs::lint(action, &mut report);
    identity::lint(action, &mut report);
    params::lint(action, &mut report);
    commands::lint(action, &mut report);
    sandbox::lint(action, &mut report);
    report.findings
}

struct Report<'a> {
    action: &'a str,
    findings: Vec<Finding>,
}

impl Report<'_> {
    fn warn(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.add(Level::Warning, path, text);
    }

    fn note(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.add(Level::Note, path, text);
    }

    fn add(&mut self, level: Level, path: impl Into<String>, text: impl Into<String>) {
        let action = self.action.to_owned();
        self.findings.push(Finding { level, action, path: path.into(), text: text.into() });
    }
}

/// Every sandbox of an action that somebody wrote, with its key.
fn sandboxes(action: &Action) -> Vec<(String, &Sandbox)> {
    let mut found = vec![("sandbox".to_owned(), &action.sandbox)];
    for (index, step) in action.steps.iter().flatten().enumerate() {
        found.extend(step.sandbox.as_ref().map(|own| (format!("steps.{index}.sandbox"), own)));
    }
    for (index, rule) in action.builtin_config.iter().flat_map(|config| config.rules()).enumerate() {
        let at = format!("builtin_config.commands.{index}.sandbox");
        found.extend(rule.sandbox.as_ref().map(|own| (at, own)));
    }
    found
}
