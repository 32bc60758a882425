#![forbid(unsafe_code)]
//! Output that never panics: `println!` does when its reader goes away.

use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Writes to stdout and flushes.
///
/// # Errors
/// What the write said.
pub fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Writes to stdout. A reader that has seen enough (`gloveport audit tail | head -1`) ends the program
/// quietly, as any filter ends.
pub fn text(text: &str) {
    if write(text.as_bytes()).is_err() {
        std::process::exit(0);
    }
}

/// Writes a line to stdout, as [`text`] does.
pub fn line(line: impl Display) {
    text(&format!("{line}\n"));
}

/// Writes a value as one line of JSON to stdout, as [`text`] does.
pub fn json(value: &impl Serialize) {
    line(serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")));
}

/// Writes a line to stderr; there is nobody to tell when that fails.
pub fn note(line: impl Display) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Whether a person reads stdout.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Text with control characters made visible, for a terminal. What comes from another program or from a
/// client must not move the cursor of the person who reads it.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// A number of things, in words: `1 token`, `2 tokens`.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Columns, aligned, two spaces apart; the last is not padded.
pub fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < row.len() {
                let gap = width(column).saturating_sub(cell.chars().count()) + 2;
                text.extend(std::iter::repeat_n(' ', gap));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".into(), "bb".into()], vec!["ccc".into(), "d".into()]];
        assert_eq!(table(&rows), "a    bb\nccc  d\n");
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
    }
}
