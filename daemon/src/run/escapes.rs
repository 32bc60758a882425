#![forbid(unsafe_code)]
//! Terminal escapes and characters that nobody sees: shown as text, or removed.
//!
//! Line feed, tab, and carriage return before a line feed are text. Everything else of C0 and C1 is not,
//! nor what changes the direction of writing, has no width, or tags a text invisibly.

/// A sequence with a text inside (OSC, DCS, …) that does not end within so many characters is none: only
/// its introducer is removed, and the text stays.
const SEQUENCE: usize = 4096;

/// `\x1b` in place of the control character, `\u{202e}` in place of the invisible one.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_text(c, chars.peek().copied()) {
            out.push(c);
        } else if c.is_ascii() {
            out.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

/// Removes control characters, invisible ones, and escape sequences as a terminal would read them
/// (ECMA-48: CSI, OSC, DCS, SOS, PM, APC, and two-character escapes).
pub fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '\u{1b}' => after_escape(after),
            '\u{9b}' => after_csi(after),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => after_string(after),
            c => {
                if is_text(c, after.chars().next()) {
                    out.push(c);
                }
                after
            }
        };
    }
    out
}

fn is_text(c: char, next: Option<char>) -> bool {
    match c {
        '\n' | '\t' => true,
        '\r' => next == Some('\n'),
        c => !c.is_control() && !is_invisible(c),
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        // Zero width, direction marks, separators, embeddings, isolates, invisible operators.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        // Tags and the variation selectors beyond the sixteen that emoji use: both can carry whole texts.
        | '\u{e0000}'..='\u{e0fff}')
}

/// What follows an ESC.
fn after_escape(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => after_csi(chars.as_str()),
        Some(']' | 'P' | 'X' | '^' | '_') => after_string(chars.as_str()),
        // Intermediate bytes, then one final byte: `ESC ( B`.
        Some(' '..='/') => {
            let rest = chars.as_str().trim_start_matches(|c| matches!(c, ' '..='/'));
            rest.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(rest)
        }
        Some('0'..='~') => chars.as_str(),
        _ => text,
    }
}

/// Parameter bytes, intermediate bytes, one final byte.
fn after_csi(text: &str) -> &str {
    let rest = text.trim_start_matches(|c| matches!(c, '0'..='?'));
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// Everything up to BEL or ST on the same line.
fn after_string(text: &str) -> &str {
    for (at, c) in text.char_indices().take(SEQUENCE) {
        let rest = text.get(at + c.len_utf8()..).unwrap_or_default();
        match c {
            '\u{7}' | '\u{9c}' => return rest,
            '\u{1b}' => return rest.strip_prefix('\\').unwrap_or(text),
            '\n' => return text,
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_visible_text() {
        assert_eq!(visible("\x1b[31mred\x1b[0m\x07"), "\\x1b[31mred\\x1b[0m\\x07");
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{e0041}d"), "a\\u{202e}b\\u{200b}c\\u{e0041}d");
        assert_eq!(visible("x\u{9b}2J\0\x7f"), "x\\u{9b}2J\\x00\\x7f");
        assert_eq!(visible("tab\tdos\r\nlone\rback\u{8}"), "tab\tdos\r\nlone\\x0dback\\x08");
        assert_eq!(visible("für 日本 😀❤\u{fe0f}"), "für 日本 😀❤\u{fe0f}");
    }

    #[test]
    fn sequences_are_removed_whole() {
        for (text, expected) in [
            ("\x1b[1;31mred\x1b[m", "red"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;aGk=\x07x", "x"),
            ("\x1bPq#0;2;0\x1b\\x", "x"),
            ("\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "x"),
            ("\u{9b}2Jx\u{9d}0;t\u{9c}y", "xy"),
            ("\x1b(Bx\x1b7y\x1bcz", "xyz"),
            ("a\x1b", "a"),
            ("a\x1b[", "a"),
            ("a\x1b[3", "a"),
            ("a\u{200b}b\u{202e}c\u{feff}d\rx\r\n", "abcdx\r\n"),
        ] {
            assert_eq!(strip(text), expected, "{text:?}");
        }
    }

    #[test]
    fn text_after_an_unterminated_sequence_survives() {
        assert_eq!(strip("\x1b]0;title\nnext line"), "0;title\nnext line");
        assert_eq!(strip("\x1bPdata without end"), "data without end");
        let long = "x".repeat(SEQUENCE + 1);
        assert_eq!(strip(&format!("\x1b]{long}\x07")), long);
        assert_eq!(strip("\x1b]0;a\x1b[1mb"), "0;ab");
    }

    #[test]
    fn plain_text_is_untouched() {
        let text = "für 日本 😀\tx\r\n";
        assert_eq!((visible(text), strip(text)), (text.into(), text.into()));
    }
}
