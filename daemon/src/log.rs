#![forbid(unsafe_code)]
//! Log lines on stderr; where the journal reads them, with the priority in front: `<4>text` (sd-daemon(3)).
//! Control characters are escaped, so that no client and no program can write a line of its own
//! (CVE-2023-28486).

use rustix::fs::fstat;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether stderr is the journal's.
static TO_JOURNAL: AtomicBool = AtomicBool::new(false);

/// How much it matters, by the numbers of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error = 3,
    /// Something is not as it should be.
    Warning = 4,
    /// What an operator wants to know.
    Info = 6,
}

/// Looks where stderr leads: to the journal, if it is the stream that `JOURNAL_STREAM` names (systemd.exec(5)).
pub fn begin() {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let is_named =
        fstat(std::io::stderr()).is_ok_and(|stream| named == format!("{}:{}", stream.st_dev, stream.st_ino));
    TO_JOURNAL.store(is_named, Ordering::Relaxed);
}

/// Writes one line. A closed stderr is no reason to stop serving.
pub fn write(level: Level, text: impl Display) {
    let line = line(TO_JOURNAL.load(Ordering::Relaxed).then_some(level), &text.to_string());
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// The line with its newline.
fn line(level: Option<Level>, text: &str) -> String {
    let priority = level.map(|level| format!("<{}>", level as u8)).unwrap_or_default();
    format!("{priority}{}\n", escape(text))
}

fn escape(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_stays_one_line() {
        assert_eq!(escape("a\n<0>forged\x1b[2J"), "a\\n<0>forged\\u{1b}[2J");
        assert_eq!(escape("für"), "für");
        assert_eq!(line(Some(Level::Warning), "disk\nfull"), "<4>disk\\nfull\n");
        assert_eq!(line(None, "disk full"), "disk full\n");
    }
}
