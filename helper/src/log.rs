#![forbid(unsafe_code)]
//! Log lines on stderr; where the journal reads them, with the priority in front (sd-daemon(3)).
//!
//! Whatever a line quotes may come from a hostile peer: control characters are escaped and the length is
//! bounded, so that a quotation can neither forge a line nor flood the journal.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether stderr is the journal's. Found out once: a supervisor's filter no longer lets it look.
static TO_JOURNAL: AtomicBool = AtomicBool::new(false);

/// Longest line, bytes of text before escaping. A page is more than any reason needs.
const LINE: usize = 4096;

/// Looks where stderr leads: to the journal, if it is the stream that `JOURNAL_STREAM` names (systemd.exec(5)).
pub fn begin() {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let is_named = nix::sys::stat::fstat(std::io::stderr())
        .is_ok_and(|stream| named == format!("{}:{}", stream.st_dev, stream.st_ino));
    TO_JOURNAL.store(is_named, Ordering::Relaxed);
}

/// Something that keeps the helper from its work.
pub fn error(text: impl Display) {
    write(3, &text);
}

/// Something that an operator should look at.
pub fn warning(text: impl Display) {
    write(4, &text);
}

/// Something worth knowing.
pub fn info(text: impl Display) {
    write(6, &text);
}

fn write(priority: u8, text: &dyn Display) {
    let mut stderr = std::io::stderr();
    let priority = TO_JOURNAL.load(Ordering::Relaxed).then_some(priority);
    // A log that nobody reads any more is no reason to stop confining programs.
    let _ = stderr.write_all(line(priority, &text.to_string()).as_bytes());
}

/// The line with its newline, to be written by one system call.
fn line(priority: Option<u8>, text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LINE) + 8);
    if let Some(priority) = priority {
        // Writing to a String cannot fail.
        let _ = write!(line, "<{priority}>");
    }
    for (at, character) in text.char_indices() {
        if at >= LINE {
            line.push('…');
            break;
        }
        if character.is_control() || is_invisible(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

/// Characters that make a terminal show other text than is there: separators and bidirectional controls.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_cannot_forge_a_line_or_a_priority() {
        assert_eq!(line(Some(4), "peer \"x\n<3>forged\x1b[2J\""), "<4>peer \"x\\n<3>forged\\u{1b}[2J\"\n");
        assert_eq!(line(None, "a\u{202e}b"), "a\\u{202e}b\n");
    }

    #[test]
    fn a_line_is_bounded() {
        assert!(line(Some(6), &"x".repeat(1 << 20)).len() < LINE + 16);
    }

    #[test]
    fn text_in_any_script_stays_readable() {
        assert_eq!(line(None, "größer 値"), "größer 値\n");
    }
}
