#![forbid(unsafe_code)]
//! Redaction of a handler's JSON: inside its strings, so that it stays JSON.

use super::Redactor;
use serde::de::IgnoredAny;

/// Rewrites every string value of a JSON document: redacted, then through `present`. A value is looked at
/// together with its key (`"password": "…"`). All else, and the order of keys, stays as it is.
///
/// Returns the document and how many places were redacted; `None` where it is no JSON.
pub fn redact_json(
    document: &[u8],
    mut redactor: Redactor,
    present: impl Fn(&[u8]) -> String,
) -> Option<(String, u64)> {
    serde_json::from_slice::<IgnoredAny>(document).ok()?;
    let mut rest = std::str::from_utf8(document).ok()?;
    let mut out = String::with_capacity(rest.len());
    let mut key: Option<String> = None;
    while let Some((before, literal, after)) = next_string(rest) {
        out.push_str(before);
        // A key counts for the value that follows it at once, not for what an object or array holds.
        if before.contains(['{', '[', ',']) {
            key = None;
        }
        let text: String = serde_json::from_str(literal).ok()?;
        if after.trim_ascii_start().starts_with(':') {
            out.push_str(literal);
            key = Some(text);
        } else {
            let shown = present(&redact(&mut redactor, key.take(), &text));
            out.push_str(&serde_json::to_string(&shown).ok()?);
        }
        rest = after;
    }
    out.push_str(rest);
    let count = redactor.finish(&mut Vec::new());
    Some((out, count))
}

fn redact(redactor: &mut Redactor, key: Option<String>, text: &str) -> Vec<u8> {
    let prefix = key.map(|key| format!("{key}=")).unwrap_or_default();
    let mut out = Vec::with_capacity(prefix.len() + text.len());
    redactor.push(prefix.as_bytes(), &mut out);
    redactor.push(text.as_bytes(), &mut out);
    redactor.flush(&mut out);
    match out.strip_prefix(prefix.as_bytes()) {
        Some(value) => value.to_vec(),
        None => out,
    }
}

/// Text before the next string literal, the literal with its quotes, and what follows.
fn next_string(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('"')?;
    let mut hidden = false;
    let length = text.get(start + 1..)?.bytes().position(|b| {
        let end = b == b'"' && !hidden;
        hidden = b == b'\\' && !hidden;
        end
    })?;
    let (before, rest) = text.split_at_checked(start)?;
    let (literal, after) = rest.split_at_checked(length + 2)?;
    Some((before, literal, after))
}
