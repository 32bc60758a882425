#![forbid(unsafe_code)]
//! One problem of the sources, with its place.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a file, both numbers from 1. The column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// What is wrong in a source, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError {
    /// The file or directory.
    pub file: PathBuf,
    /// The place in it; `None` where the file as a whole is meant.
    pub place: Option<Place>,
    /// The problem and the way out.
    pub message: String,
    /// The source line and a caret, ready to print; empty without a place.
    pub excerpt: String,
}

impl SourceError {
    /// A problem of a whole file.
    pub fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_path_buf(), place: None, message: message.into(), excerpt: String::new() }
    }

    /// A problem at a place of a text.
    pub fn at(file: &Path, text: &str, place: Place, message: impl Into<String>) -> Self {
        Self {
            file: file.to_path_buf(),
            place: Some(place),
            message: message.into(),
            excerpt: excerpt(text, place),
        }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(Place { line, column }) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if self.excerpt.is_empty() { Ok(()) } else { write!(f, "\n{}", self.excerpt) }
    }
}

impl std::error::Error for SourceError {}

/// Characters of a line that are shown on each side of the caret.
const EXCERPT_RADIUS: usize = 80;

/// The line of a place with a caret below. A tab becomes a space, so that the caret stands right.
fn excerpt(text: &str, place: Place) -> String {
    let Some(line) = text.lines().nth(place.line.saturating_sub(1)) else {
        return String::new();
    };
    let before = place.column.saturating_sub(1);
    let skipped = before.saturating_sub(EXCERPT_RADIUS);
    let shown: String = line
        .chars()
        .skip(skipped)
        .take(2 * EXCERPT_RADIUS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat(before - skipped);
    format!("{number} | {}\n{margin} | {caret}^", shown.trim_end())
}
