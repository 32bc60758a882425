#![forbid(unsafe_code)]
//! The limits of the handlers: what holds without a word, and the ceiling that a configuration can only
//! tighten. The catalogue's check and the handlers themselves read the same numbers.

use super::{Problem, problem};
use crate::catalog::BuiltinConfig;
use crate::limits;
use crate::units::{Bytes, Millis};

/// A limit that a configuration may lower: what holds without it, and the most that it can say.
struct Ceiling {
    default: u64,
    most: u64,
}

/// Files that one search opens.
const FILES: Ceiling = Ceiling { default: 100, most: 10_000 };
/// Bytes that one search reads, after decompression.
const SCAN: Ceiling = Ceiling { default: 1 << 30, most: limits::SCAN_MAX };
/// Matches that one search returns.
const MATCHES: Ceiling = Ceiling { default: 100, most: 10_000 };
/// Lines before and after a match.
const CONTEXT: Ceiling = Ceiling { default: 10, most: 100 };
/// Rows of one result.
const ROWS: Ceiling = Ceiling { default: 1000, most: 100_000 };
/// Bytes of a result, a body or a file's content.
const BYTES: Ceiling = Ceiling { default: 1 << 20, most: limits::OUTPUT_MAX };
/// Milliseconds of one statement on the server.
const STATEMENT: Ceiling = Ceiling { default: 10_000, most: 60_000 };

impl Ceiling {
    fn of(&self, configured: Option<u64>) -> u64 {
        configured.unwrap_or(self.default).min(self.most)
    }
}

/// The limits in force: as configured, never above the handler's own.
impl BuiltinConfig {
    /// Most files of a search.
    pub fn max_files(&self) -> u64 {
        FILES.of(self.max_files)
    }
    /// Most bytes of a search, after decompression.
    pub fn max_scan(&self) -> u64 {
        SCAN.of(self.max_scan.map(|bytes| bytes.0))
    }
    /// Most matches of a search.
    pub fn max_matches(&self) -> u64 {
        MATCHES.of(self.max_matches)
    }
    /// Most lines before and after a match.
    pub fn max_context(&self) -> u64 {
        CONTEXT.of(self.max_context)
    }
    /// Most rows of a query's result.
    pub fn max_rows(&self) -> u64 {
        ROWS.of(self.max_rows)
    }
    /// Most bytes of a result, a body or a file's content.
    pub fn max_bytes(&self) -> u64 {
        BYTES.of(self.max_bytes.map(|bytes| bytes.0))
    }
    /// Longest time of a statement on the server.
    pub fn statement_time(&self) -> Millis {
        Millis(STATEMENT.of(self.timeout.map(|time| time.0)))
    }
}

/// Checks every limit that a configuration names.
pub(super) fn check(config: &BuiltinConfig) -> Result<(), Problem> {
    let bytes = |value: u64| Bytes(value).to_string();
    let number = |value: u64| value.to_string();
    check_ceiling("max_files", config.max_files, &FILES, number)?;
    check_ceiling("max_scan", config.max_scan.map(|size| size.0), &SCAN, bytes)?;
    check_ceiling("max_matches", config.max_matches, &MATCHES, number)?;
    check_ceiling("max_context", config.max_context, &CONTEXT, number)?;
    check_ceiling("max_rows", config.max_rows, &ROWS, number)?;
    check_ceiling("max_bytes", config.max_bytes.map(|size| size.0), &BYTES, bytes)?;
    check_ceiling("timeout", config.timeout.map(|time| time.0), &STATEMENT, |ms| Millis(ms).to_string())
}

fn check_ceiling(
    key: &str,
    value: Option<u64>,
    ceiling: &Ceiling,
    show: impl Fn(u64) -> String,
) -> Result<(), Problem> {
    // No context lines at all is a sensible wish; no files, rows or bytes is not.
    let least = u64::from(key != "max_context");
    match value {
        Some(value) if !(least..=ceiling.most).contains(&value) => problem(
            format!("builtin_config.{key}"),
            format!(
                "{} is not within {} to {}: a configuration can only tighten",
                show(value),
                show(least),
                show(ceiling.most)
            ),
        ),
        _ => Ok(()),
    }
}
