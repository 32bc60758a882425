#![forbid(unsafe_code)]
//! The chain itself, pure: each line holds the hash of the line before.
//!
//! Who changes, removes or reorders a line breaks the hash that the next line holds; who cuts the end is
//! shown by the head file; and who rewrites all of it and the head is found by any receipt that left the
//! host before.

use gloveport_contract::catalog::hex;
use serde::Deserialize;
use std::fmt::Write as _;

/// A place in the chain: that of its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the line, from 1; 0 before the first.
    pub seq: u64,
    /// SHA-256 of the line without its newline; zeros before the first.
    pub hash: [u8; 32],
}

impl Position {
    /// Before the first line.
    pub const START: Self = Self { seq: 0, hash: [0; 32] };

    /// Makes the next line, with its newline, out of a time and a JSON object; and the place after it.
    /// `None` when the body is no JSON object in one line with at least one key.
    pub fn next(&self, time: &str, body: &str) -> Option<(String, Self)> {
        let rest = body.strip_prefix('{').filter(|rest| rest.starts_with('"') && !rest.contains('\n'))?;
        let seq = self.seq.checked_add(1)?;
        let mut line = String::with_capacity(rest.len() + 160);
        // Writing to a String cannot fail.
        let _ = write!(line, r#"{{"seq":{seq},"prev":"{}","time":"{time}",{rest}"#, hex(&self.hash));
        let place = Self { seq, hash: hmac_sha256::Hash::hash(line.as_bytes()) };
        line.push('\n');
        Some((line, place))
    }

    /// The place of a line that is already written. `None` when it is no line of a chain.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Link {
            seq: u64,
            prev: String,
        }
        let link: Link = serde_json::from_slice(line).ok()?;
        (link.seq > 0 && parse_hash(&link.prev).is_some())
            .then(|| Self { seq: link.seq, hash: hmac_sha256::Hash::hash(line) })
    }

    /// The text of the head file: `SEQ HASH` and a newline.
    pub fn head(&self) -> String {
        format!("{} {}\n", self.seq, hex(&self.hash))
    }

    /// Reads the text of a head file.
    pub fn from_head(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
        let (seq, hash) = text.split_once(' ')?;
        // `parse` would also take a sign.
        let seq = seq.parse().ok().filter(|_| !seq.starts_with('+'))?;
        Some(Self { seq, hash: parse_hash(hash)? })
    }
}

/// Reads 64 lower-case hexadecimal digits.
fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0_u8; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != hash.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(hash)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-11-30T12:00:00.000Z";

    fn chain(bodies: &[&str]) -> Vec<String> {
        let mut place = Position::START;
        bodies
            .iter()
            .map(|body| {
                let (line, next) = place.next(TIME, body).unwrap();
                place = next;
                line
            })
            .collect()
    }

    #[test]
    fn the_first_line_is_number_one_and_points_to_zeros() {
        let lines = chain(&[r#"{"kind":"started"}"#]);
        let zeros = "0".repeat(64);
        assert_eq!(
            lines[0],
            format!("{{\"seq\":1,\"prev\":\"{zeros}\",\"time\":\"{TIME}\",\"kind\":\"started\"}}\n")
        );
    }

    #[test]
    fn each_line_holds_the_hash_of_the_one_before() {
        let lines = chain(&[r#"{"kind":"accepted"}"#, r#"{"kind":"ended"}"#]);
        let hash = hex(&hmac_sha256::Hash::hash(lines[0].trim_end().as_bytes()));
        assert!(lines[1].contains(&format!(r#""seq":2,"prev":"{hash}""#)), "{}", lines[1]);
    }

    #[test]
    fn a_written_line_says_where_it_stands() {
        let (line, place) = Position::START.next(TIME, r#"{"kind":"accepted"}"#).unwrap();
        assert_eq!(Position::of_line(line.trim_end().as_bytes()), Some(place));
        for broken in ["", "{}", "\0\0\0", "{\"seq\":1,\"prev\":\"00\"}", "{\"seq\":0,\"prev\":\"\"}", "[1]"]
        {
            assert_eq!(Position::of_line(broken.as_bytes()), None, "{broken:?}");
        }
    }

    #[test]
    fn a_body_that_is_no_object_in_one_line_makes_no_line() {
        for body in ["", "[]", "{}", "{\"a\":\n1}", "x"] {
            assert_eq!(Position::START.next(TIME, body), None, "{body:?}");
        }
    }

    #[test]
    fn a_head_is_read_as_it_is_written_and_in_no_other_form() {
        let (_, place) = Position::START.next(TIME, r#"{"kind":"accepted"}"#).unwrap();
        let head = place.head();
        assert_eq!(Position::from_head(head.as_bytes()), Some(place));
        for broken in [head.trim_end(), "", "\n", "1 00\n", &head.to_uppercase(), &format!("+{head}")] {
            assert_eq!(Position::from_head(broken.as_bytes()), None, "{broken:?}");
        }
    }
}
