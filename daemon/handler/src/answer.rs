#![forbid(unsafe_code)]
//! One JSON value, never longer than the action lets out: cut JSON is no JSON.

use crate::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;

/// What a call found.
#[derive(Debug)]
pub struct Answer(Value);

impl Answer {
    /// An answer of these fields.
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// Prints the value. Handlers keep their limits themselves; what still is too long becomes an error.
    pub fn print(self, max_output: usize) -> ExitCode {
        let text = self.0.to_string();
        if text.len() >= max_output {
            return Failure::refused(format!(
                "the answer is {} bytes long and the action lets out {max_output}: ask for less, or raise max_output",
                text.len() + 1
            ))
            .print(max_output);
        }
        match writeln!(io::stdout(), "{text}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }
}

/// Bytes that a value takes as JSON.
pub fn json_length(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

fn escaped_width(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Bytes that a text takes between the quotes of a JSON string.
pub fn escaped_length(text: &str) -> usize {
    text.chars().map(escaped_width).sum()
}

/// The longest beginning of a text that takes at most `room` bytes in a JSON string. It ends at a character.
pub fn prefix_within(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += escaped_width(c);
        if used > room {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// The longest beginning of a text of at most `length` bytes that ends at a character.
pub fn prefix_of(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or(text)
}

/// Standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes standard base64 with padding; line breaks are ignored.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    STANDARD.decode(text).ok()
}

/// A JSON string of UTF-8 text, or `{"base64": …}` of anything else.
pub fn text_or_base64(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": base64(bytes) }),
    }
}

/// Content that must fit into a JSON string: its text or base64 form, and how many bytes of it fitted.
pub struct Fitted {
    /// `utf-8` or `base64`.
    pub encoding: &'static str,
    /// The string.
    pub text: String,
    /// Bytes of the content that it stands for.
    pub length: usize,
}

/// As much of the content as fits into `room` bytes of JSON. Text ends at a character. `at_end` says that
/// nothing follows: only then is an unfinished character at the end a reason to call it binary.
pub fn fit(bytes: &[u8], room: usize, at_end: bool) -> Fitted {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() && !at_end && error.valid_up_to() > 0 => {
            bytes.get(..error.valid_up_to()).and_then(|whole| std::str::from_utf8(whole).ok())
        }
        Err(_) => None,
    };
    match text.filter(|text| !text.contains('\0')) {
        Some(text) => {
            let text = prefix_within(text, room);
            Fitted { encoding: "utf-8", text: text.to_owned(), length: text.len() }
        }
        None => {
            let length = bytes.len().min(room / 4 * 3);
            let text = base64(bytes.get(..length).unwrap_or_default());
            Fitted { encoding: "base64", text, length }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_escaped_length_is_what_the_serializer_writes() {
        let text: String = (0..0x3000).filter_map(char::from_u32).collect();
        assert_eq!(escaped_length(&text) + 2, json_length(&text));
    }

    #[test]
    fn a_prefix_fits_and_ends_at_a_character() {
        for room in 0..20 {
            let prefix = prefix_within("aä\n\u{1}€\"z", room);
            assert!(escaped_length(prefix) <= room);
        }
        assert_eq!(prefix_within("aä", 2), "a");
        assert_eq!(prefix_within("aä", 3), "aä");
        assert_eq!(prefix_of("aä", 2), "a");
    }

    #[test]
    fn text_stays_text_and_the_rest_is_base64() {
        let fitted = fit("grün".as_bytes(), 100, true);
        assert_eq!((fitted.encoding, fitted.text.as_str(), fitted.length), ("utf-8", "grün", 5));
        let fitted = fit(b"gr\xc3", 100, false);
        assert_eq!((fitted.encoding, fitted.length), ("utf-8", 2));
        assert_eq!(fit(b"gr\xc3", 100, true).encoding, "base64");
        assert_eq!(fit(b"a\0b", 100, true).text, "YQBi");
        let fitted = fit(&[0xff; 100], 9, true);
        assert_eq!((fitted.length, fitted.text.len()), (6, 8));
    }
}
