#![forbid(unsafe_code)]
//! From bytes to the text of a result: UTF-8, escapes, cut at a character's boundary.

use super::escapes;
use gloveport_contract::catalog::Escapes;
use std::borrow::Cow;

/// A text that may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Whether bytes that are no UTF-8 became U+FFFD.
    pub lossy: bool,
    /// Whether it was longer than asked for.
    pub truncated: bool,
}

/// Which side of a text gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Its start stays.
    Start,
    /// Its end stays.
    End,
}

/// Decodes, neutralises and cuts to at most `limit` bytes. `cut_off` says that bytes are missing already, at
/// the side that gives way: half a character there is dropped, it is not the program's fault.
pub fn present(bytes: &[u8], cut_off: bool, keep: Keep, limit: usize, escapes: Escapes) -> Text {
    let bytes = match keep {
        _ if !cut_off => bytes,
        Keep::Start => without_half_at_end(bytes),
        Keep::End => without_half_at_start(bytes),
    };
    let decoded = String::from_utf8_lossy(bytes);
    let lossy = matches!(decoded, Cow::Owned(_));
    let mut text = match escapes {
        Escapes::Raw => decoded.into_owned(),
        Escapes::Visible => escapes::visible(&decoded),
        Escapes::Strip => escapes::strip(&decoded),
    };
    let truncated = cut(&mut text, limit, keep) || cut_off;
    Text { text, lossy, truncated }
}

/// Cuts a text to at most `limit` bytes, between characters. Returns whether it was longer.
pub fn cut(text: &mut String, limit: usize, keep: Keep) -> bool {
    if text.len() <= limit {
        return false;
    }
    match keep {
        Keep::Start => {
            let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or_default());
        }
        Keep::End => {
            let start = (text.len() - limit..=text.len()).find(|at| text.is_char_boundary(*at));
            text.drain(..start.unwrap_or_default());
        }
    }
    true
}

fn without_half_at_end(bytes: &[u8]) -> &[u8] {
    // A character has at most four bytes, so its beginning is among the last three or it is whole.
    for length in 1..=3.min(bytes.len()) {
        let (head, tail) = bytes.split_at(bytes.len() - length);
        match std::str::from_utf8(tail) {
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => return head,
            _ => {}
        }
    }
    bytes
}

fn without_half_at_start(bytes: &[u8]) -> &[u8] {
    let continuation = |b: &u8| b & 0b1100_0000 == 0b1000_0000;
    let half = bytes.iter().take(3).take_while(|b| continuation(b)).count();
    bytes.get(half..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(bytes: &[u8]) -> (String, bool) {
        let text = present(bytes, false, Keep::Start, 100, Escapes::Raw);
        (text.text, text.lossy)
    }

    #[test]
    fn bytes_that_are_no_utf8_are_marked_and_flagged() {
        assert_eq!(raw(b"a\xff\xfeb"), ("a\u{fffd}\u{fffd}b".into(), true));
        assert_eq!(raw("日本".as_bytes()), ("日本".into(), false));
        assert_eq!(raw(b"\xe6\x97"), ("\u{fffd}".into(), true));
    }

    #[test]
    fn a_character_that_our_own_cut_split_is_dropped_without_a_flag() {
        for (start, end) in [("aé", "日😀"), ("a", "é"), ("é日", "😀"), ("", "a")] {
            let whole = [start, end].concat();
            let next = end.chars().next().map_or(0, char::len_utf8);
            for half in 0..next {
                let cut = &whole.as_bytes()[..start.len() + half];
                let expected = Text { text: start.into(), lossy: false, truncated: true };
                assert_eq!(present(cut, true, Keep::Start, 100, Escapes::Raw), expected);
            }
            let last = start.chars().next_back().map_or(0, char::len_utf8);
            for half in 0..last {
                let cut = &whole.as_bytes()[start.len() - half..];
                let expected = Text { text: end.into(), lossy: false, truncated: true };
                assert_eq!(present(cut, true, Keep::End, 100, Escapes::Raw), expected);
            }
        }
    }

    #[test]
    fn what_escapes_add_counts_too() {
        let text = present(b"\x1b\x1b", false, Keep::Start, 6, Escapes::Visible);
        assert_eq!(text, Text { text: "\\x1b\\x".into(), lossy: false, truncated: true });
    }

    #[test]
    fn a_cut_falls_between_characters() {
        for limit in 0..20 {
            for keep in [Keep::Start, Keep::End] {
                let mut text = "日本語 x".to_owned();
                let whole = text.clone();
                let cut_off = cut(&mut text, limit, keep);
                assert!(text.len() <= limit.min(whole.len()) && cut_off == (text.len() < whole.len()));
                assert!(if keep == Keep::Start { whole.starts_with(&text) } else { whole.ends_with(&text) });
            }
        }
    }
}
