#![forbid(unsafe_code)]
//! A line as it is shown.

use crate::answer::prefix_of;

/// Longest text of a line in an answer, bytes.
const SHOWN: usize = 4096;

/// The text of a line without its end, invalid UTF-8 replaced, and cut with a note if it is very long.
pub fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let length = line.len();
    // Nothing beyond what is shown needs decoding.
    let text = String::from_utf8_lossy(line.get(..SHOWN + 4).unwrap_or(line));
    if length <= SHOWN {
        return text.into_owned();
    }
    let kept = prefix_of(&text, SHOWN);
    format!("{kept}… [{} bytes more]", length.saturating_sub(kept.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_without_its_end() {
        assert_eq!(shown(b"a\r\n"), "a");
        assert_eq!(shown(b"\xff\n"), "\u{fffd}");
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        let line = "ä".repeat(5000);
        let text = shown(line.as_bytes());
        assert!(text.starts_with("ääää") && text.ends_with("ä… [5904 bytes more]"));
    }
}
