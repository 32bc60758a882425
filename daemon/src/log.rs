#![forbid(unsafe_code)]
//! Log lines on stderr, as journald reads them: `<4>text`. Control characters are escaped, so that no
//! client and no program can write a line of its own (CVE-2023-28486).

use std::fmt::Display;
use std::io::Write;

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

/// Writes one line. A closed stderr is no reason to stop serving.
pub fn write(level: Level, text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "<{}>{}", level as u8, escape(&text.to_string()));
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
    }
}
