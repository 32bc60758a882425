#![forbid(unsafe_code)]
//! Where the value behind a key ends, and whether it is a secret. Each function returns the secret's place,
//! if there is one, and the place up to which it has looked.

use super::PLACEHOLDER;
use std::ops::Range;

/// A secret's place, if there is one, and how far was looked.
pub(super) type Found = (Option<Range<usize>>, usize);

/// Settings that stand where a password could.
const WORDS: &[&str] = &[
    "true", "false", "null", "none", "nil", "yes", "no", "on", "off", "enabled", "disabled", "required",
    "optional", "files", "compat", "systemd", "sss",
];

/// A quoted value, or everything up to white space.
pub(super) fn word(text: &[u8], start: usize) -> Found {
    let (start, end) = extent(text, start);
    let value = text.get(start..end).unwrap_or_default();
    let bare = value.trim_ascii().strip_suffix(b",").unwrap_or(value);
    let plain = WORDS.iter().any(|word| bare.eq_ignore_ascii_case(word.as_bytes()))
        || bare.iter().all(|b| b"*.,;:()[]{}<>".contains(b))
        || bare.starts_with(PLACEHOLDER);
    ((!plain).then_some(start..end), end)
}

/// The value of [`word`], if it looks random: long enough, letters and digits, no path, many different bytes.
pub(super) fn random(text: &[u8], start: usize) -> Found {
    let (start, quoted_end) = extent(text, start);
    let value = text.get(start..quoted_end).unwrap_or_default();
    let length = value.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+/=_.~%-".contains(b)).count();
    let (value, end) = (value.get(..length).unwrap_or_default(), start + length);
    let random = value.len() >= 20
        && !value.starts_with(b"/")
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && entropy(value) > 3.3;
    (random.then_some(start..end), end)
}

/// Everything up to the end of the line, or to the quote that ends a shell word or a JSON string.
pub(super) fn line(text: &[u8], start: usize) -> Found {
    let end = until(text, start, |b| b"\n\r\"'".contains(&b));
    ((start < end).then_some(start..end), end)
}

/// `user:password@` or `token@` of a URL: the password, or a token of at least 16 bytes. A password that
/// nobody encoded may hold what would end the authority: `user:pass/word@`.
pub(super) fn user_info(text: &[u8], start: usize) -> Found {
    let end = until(text, start, |b| b.is_ascii_whitespace() || b"/?#\"'<>".contains(&b));
    let authority = text.get(start..end).unwrap_or_default();
    let Some(at) = authority.iter().rposition(|b| *b == b'@') else {
        return unencoded_password(text, start, authority);
    };
    // An image by its digest, `docker://image:tag@sha256:…`, names nobody.
    if authority.get(at..).unwrap_or_default().starts_with(b"@sha256:") {
        return (None, end);
    }
    let user = authority.get(..at).unwrap_or_default();
    let place = match user.iter().position(|b| *b == b':') {
        Some(colon) if colon + 1 < at => Some(start + colon + 1..start + at),
        None if at >= 16 => Some(start..start + at),
        _ => None,
    };
    (place, end)
}

/// The password of [`user_info`] where it holds a `/`, `?` or `#`: what stands there is no port, and an `@`
/// follows in the same word.
fn unencoded_password(text: &[u8], start: usize, authority: &[u8]) -> Found {
    let end = start + authority.len();
    let colon = authority.iter().position(|b| *b == b':').filter(|_| !authority.starts_with(b"["));
    let Some(password) = colon.map(|colon| start + colon + 1) else {
        return (None, end);
    };
    if text.get(password..end).unwrap_or_default().iter().all(u8::is_ascii_digit) {
        return (None, end);
    }
    let word = until(text, end, |b| b.is_ascii_whitespace() || b"\"'<>".contains(&b));
    let at = text.get(end..word).unwrap_or_default().iter().position(|b| *b == b'@');
    (at.map(|at| password..end + at), word)
}

/// First and last of a value: inside its quotes, which may be escaped as in JSON within JSON, or a word.
fn extent(text: &[u8], start: usize) -> (usize, usize) {
    let quote = until(text, start, |b| b != b'\\');
    match text.get(quote) {
        Some(&mark @ (b'"' | b'\'')) => {
            let inside = quote + 1;
            let escaped = quote > start;
            let mut end = inside;
            while let Some(&b) = text.get(end) {
                match b {
                    b'\n' => break,
                    b if b == mark => break,
                    // In an escaped string a backslash begins the closing quote; in a plain one it hides one.
                    b'\\' if escaped => break,
                    b'\\' if text.get(end + 1).is_some_and(|next| *next != b'\n') => end += 2,
                    _ => end += 1,
                }
            }
            (inside, end)
        }
        _ => (start, until(text, start, |b| b.is_ascii_whitespace())),
    }
}

/// The first place from `start` on where `stop` holds, or the end.
fn until(text: &[u8], start: usize, stop: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    start + rest.iter().position(|b| stop(*b)).unwrap_or(rest.len())
}

/// Shannon entropy, bits per byte.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for b in value {
        if let Some(count) = counts.get_mut(usize::from(*b)) {
            *count += 1;
        }
    }
    let total = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|p| -p * p.log2())
        .sum()
}
