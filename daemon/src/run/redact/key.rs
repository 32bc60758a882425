#![forbid(unsafe_code)]
//! Whether what reads like a key is one. After `=` it always is; a colon also ends the name of a file, of a
//! package or of a service, and an ordinary message follows: `cat: /root/secret: Permission denied`.

use super::value::{self, Found};
use std::ops::Range;

/// Longer words are never let through, and so never looked at twice.
const LONGEST_SHOWN: usize = 128;
/// A shorter word with others behind it is prose.
const SHORTEST: usize = 6;
/// No word of a message is longer.
const LONGEST_WORD: usize = 20;
/// Where the paths that programs print begin. A secret in base64 may begin with a slash, too.
const ROOTS: &[&str] = &[
    "/bin/", "/boot/", "/dev/", "/etc/", "/home/", "/lib/", "/lib64/", "/media/", "/mnt/", "/opt/", "/proc/",
    "/root/", "/run/", "/sbin/", "/srv/", "/sys/", "/tmp/", "/usr/", "/var/",
];

/// The value behind a key and its joint, which is what `key` covers.
pub(super) fn value(text: &[u8], key: Range<usize>) -> Found {
    match value::word(text, key.end) {
        (Some(place), end) if is_secret(text, &key, &place) => (Some(place), end),
        // Another key may stand in what is shown: `/etc/secret:7:token=…`.
        (Some(_), _) => (None, key.end),
        nothing => nothing,
    }
}

fn is_secret(text: &[u8], key: &Range<usize>, place: &Range<usize>) -> bool {
    let joined = text.get(key.clone()).unwrap_or_default();
    let word = text.get(place.clone()).unwrap_or_default();
    if joined.contains(&b'=') || word.len() > LONGEST_SHOWN {
        return true;
    }
    let next = text.get(place.end..).unwrap_or_default();
    if is_name(text, key.start, joined) {
        return is_password(word, next);
    }
    let is_quoted = place.start > key.end;
    is_quoted || joined.ends_with(b">") || !(is_prose(word, next) || is_path(word))
}

/// Whether it is a name rather than a key: the last part of a path, or of `pam_unix(passwd:session)`.
fn is_name(text: &[u8], start: usize, joined: &[u8]) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let is_outside = |b: &u8| !(b.is_ascii_alphanumeric() || b"_.-".contains(b));
    match before.iter().rev().find(|b| is_outside(b)) {
        Some(b'/') => true,
        Some(b'(') => joined.ends_with(b":"),
        _ => false,
    }
}

/// What a file of that name may hold, printed behind it as grep does: `/run/secrets/db_password:hunter2`.
fn is_password(word: &[u8], next: &[u8]) -> bool {
    word.len() >= SHORTEST
        && matches!(next.first(), None | Some(b'\n' | b'\r' | b'"' | b'\''))
        && word.iter().any(u8::is_ascii_digit)
        && word.iter().any(u8::is_ascii_alphabetic)
        && !word.contains(&b':')
}

/// The first word of a message: short, or letters as a word has them, and another word behind it.
fn is_prose(word: &[u8], next: &[u8]) -> bool {
    let second = next.strip_prefix(b" ").unwrap_or_default();
    let second = second.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let goes_on =
        second.first().is_some_and(u8::is_ascii_alphabetic) && !second.iter().any(|b| b":=".contains(b));
    goes_on && (word.len() < SHORTEST || is_plain(word))
}

/// Letters only, in lower case but for the first, or all in upper case.
fn is_plain(word: &[u8]) -> bool {
    let rest = word.get(1..).unwrap_or_default();
    word.len() <= LONGEST_WORD
        && word.iter().all(u8::is_ascii_alphabetic)
        && (rest.iter().all(u8::is_ascii_lowercase) || word.iter().all(u8::is_ascii_uppercase))
}

/// The path of a file of the system: `passwd: /usr/bin/passwd`.
fn is_path(word: &[u8]) -> bool {
    ROOTS.iter().any(|root| word.starts_with(root.as_bytes()))
        && word.iter().all(|b| b.is_ascii_alphanumeric() || b"/_.,@+-".contains(b))
}
