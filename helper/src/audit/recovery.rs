#![forbid(unsafe_code)]
//! Where the chain goes on after a start, and what must be said about its end. Pure.

use super::chain::Position;
use super::record::{Kind, RECORD, Record};
use gloveport_contract::catalog::hex;

/// Bytes of an incomplete line that are kept in the record about it.
const REMAINS: usize = 4096;

/// What was found at the end of the chain.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it goes on.
    pub place: Position,
    /// How many bytes at the end of the log are no line.
    pub torn: usize,
    /// What must be recorded before anything else.
    pub records: Vec<Record>,
}

/// Looks at the end of the log and at the head file. `None` when the log does not end in a chain.
///
/// A line that a crash cut off is taken out of the log and told in a record of its own. Where the head
/// names a line that is not there, or another one, the chain goes on from the head: the break stays visible
/// to everybody who verifies it, now and later.
pub fn recover(tail: &[u8], is_whole_file: bool, head: &[u8]) -> Option<Found> {
    let lines = Lines::read(tail);
    if lines.last.is_none() && (!is_whole_file || tail.len() > RECORD) {
        return None;
    }
    let end = lines.last.unwrap_or(Position::START);
    let mut records = Vec::new();
    let (place, gap) = go_on(end, head, |seq| lines.places.iter().find(|place| place.seq == seq).copied());
    if let Some(reason) = gap {
        records.push(Record { reason: Some(reason), ..Record::new(Kind::Gap) });
    }
    if !lines.torn.is_empty() {
        records.push(torn(lines.torn));
    }
    Some(Found { place, torn: lines.torn.len(), records })
}

/// The lines at the end of the log.
struct Lines<'t> {
    places: Vec<Position>,
    last: Option<Position>,
    torn: &'t [u8],
}

impl<'t> Lines<'t> {
    fn read(tail: &'t [u8]) -> Self {
        let mut lines = Self { places: Vec::new(), last: None, torn: tail };
        let mut rest = tail;
        while let Some(newline) = rest.iter().position(|byte| *byte == b'\n') {
            let Some((line, [_, after @ ..])) = rest.split_at_checked(newline) else { break };
            rest = after;
            if let Some(place) = Position::of_line(line) {
                lines.places.push(place);
                lines.last = Some(place);
                lines.torn = rest;
            }
        }
        lines
    }
}

/// The place from which the chain goes on, and the gap before it.
fn go_on(
    end: Position,
    head: &[u8],
    place_of: impl Fn(u64) -> Option<Position>,
) -> (Position, Option<String>) {
    let Some(head) = Position::from_head(head) else {
        let gap = (end.seq > 0).then(|| {
            format!("audit.head was missing or unreadable; audit.jsonl ended with record {}", end.seq)
        });
        return (end, gap);
    };
    if head == end {
        return (end, None);
    }
    let named = format!("audit.head names record {} with hash {}", head.seq, hex(&head.hash));
    if head.seq >= end.seq {
        let found = match end.seq {
            0 => "audit.jsonl was empty".to_owned(),
            seq if seq == head.seq => format!("that in audit.jsonl has hash {}", hex(&end.hash)),
            seq => format!("audit.jsonl ended with record {seq}"),
        };
        return (head, Some(format!("{named}; {found}")));
    }
    // A crash between a line and its head leaves the head behind, on a line that is still there.
    let gap = place_of(head.seq)
        .filter(|place| *place != head)
        .map(|place| format!("{named}; that in audit.jsonl has hash {}", hex(&place.hash)));
    (end, gap)
}

fn torn(remains: &[u8]) -> Record {
    let digest = hex(&hmac_sha256::Hash::hash(remains));
    let kept = remains.get(..REMAINS).unwrap_or(remains);
    Record {
        reason: Some(format!(
            "the helper or the host ended while a record was written: {} bytes, sha256 {digest}",
            remains.len()
        )),
        remains: Some(super::abbreviate::text(kept)),
        ..Record::new(Kind::Torn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of so many lines, and its places.
    fn chain(lines: usize) -> (String, Vec<Position>) {
        let (mut text, mut places) = (String::new(), vec![Position::START]);
        for _ in 0..lines {
            let next = places.last().unwrap().next("2026-11-30T00:00:00.000Z", r#"{"kind":"ended"}"#);
            let (line, place) = next.unwrap();
            text.push_str(&line);
            places.push(place);
        }
        (text, places)
    }

    fn kinds(found: &Found) -> Vec<Kind> {
        found.records.iter().map(|record| record.kind).collect()
    }

    #[test]
    fn nothing_at_all_is_the_start() {
        let found = recover(b"", true, b"").unwrap();
        assert_eq!(found, Found { place: Position::START, torn: 0, records: Vec::new() });
    }

    #[test]
    fn a_whole_chain_goes_on_at_its_end_without_a_word() {
        let (text, places) = chain(3);
        let found = recover(text.as_bytes(), true, places[3].head().as_bytes()).unwrap();
        assert_eq!(found, Found { place: places[3], torn: 0, records: Vec::new() });
    }

    #[test]
    fn a_head_that_lags_behind_is_what_a_crash_leaves() {
        let (text, places) = chain(3);
        let found = recover(text.as_bytes(), true, places[2].head().as_bytes()).unwrap();
        assert_eq!(found, Found { place: places[3], torn: 0, records: Vec::new() });
    }

    #[test]
    fn a_cut_tail_is_recorded_and_stays_visible_as_a_break() {
        let (_, places) = chain(3);
        let (text, _) = chain(1);
        let found = recover(text.as_bytes(), true, places[3].head().as_bytes()).unwrap();
        assert_eq!((found.place, kinds(&found)), (places[3], vec![Kind::Gap]));
        let reason = found.records[0].reason.clone().unwrap();
        assert!(reason.contains("names record 3") && reason.contains("ended with record 1"), "{reason}");
    }

    #[test]
    fn a_log_that_was_moved_away_goes_on_from_its_head() {
        let (_, places) = chain(3);
        let found = recover(b"", true, places[3].head().as_bytes()).unwrap();
        assert_eq!((found.place, kinds(&found)), (places[3], vec![Kind::Gap]));
    }

    #[test]
    fn another_last_line_than_the_head_names_is_a_gap() {
        let (text, places) = chain(3);
        let other = Position { hash: [1; 32], ..places[3] };
        let found = recover(text.as_bytes(), true, other.head().as_bytes()).unwrap();
        assert_eq!((found.place, kinds(&found)), (other, vec![Kind::Gap]));
    }

    #[test]
    fn another_earlier_line_than_the_head_names_is_a_gap() {
        let (text, places) = chain(3);
        let other = Position { hash: [1; 32], ..places[2] };
        let found = recover(text.as_bytes(), true, other.head().as_bytes()).unwrap();
        assert_eq!((found.place, kinds(&found)), (places[3], vec![Kind::Gap]));
    }

    #[test]
    fn a_missing_head_is_a_gap() {
        let (text, places) = chain(3);
        let found = recover(text.as_bytes(), true, b"").unwrap();
        assert_eq!((found.place, kinds(&found)), (places[3], vec![Kind::Gap]));
    }

    #[test]
    fn a_torn_line_is_taken_out_and_told() {
        let (text, places) = chain(2);
        for remains in ["{\"seq\":3,\"pre", "{\"seq\":3}\n", "\0\0\0\0"] {
            let torn_text = format!("{text}{remains}");
            let found = recover(torn_text.as_bytes(), true, places[2].head().as_bytes()).unwrap();
            assert_eq!(
                (found.place, found.torn, kinds(&found)),
                (places[2], remains.len(), vec![Kind::Torn])
            );
            assert_eq!(found.records[0].remains.as_deref(), Some(remains));
        }
    }

    #[test]
    fn a_torn_first_line_is_told_too() {
        let found = recover(b"{\"seq\":1,", true, b"").unwrap();
        assert_eq!((found.place, found.torn, kinds(&found)), (Position::START, 9, vec![Kind::Torn]));
    }

    #[test]
    fn a_file_that_is_no_chain_is_left_alone() {
        assert_eq!(recover(b"something else\n", false, b""), None);
        assert_eq!(recover(&vec![b'x'; RECORD + 1], true, b""), None);
    }
}
