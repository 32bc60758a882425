#![forbid(unsafe_code)]

use super::*;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A state directory of our own under `/tmp`, removed at the end.
pub(in crate::audit) struct State {
    directory: PathBuf,
    pub(in crate::audit) paths: Paths,
}

impl State {
    pub(in crate::audit) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = PathBuf::from(format!("/tmp/gloveport-audit-{}-{number}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        Self { paths: Paths::in_state(&directory), directory }
    }

    pub(in crate::audit) fn open(&self) -> Journal {
        Journal::open(&self.paths, true).unwrap()
    }

    pub(in crate::audit) fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.paths.audit).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn kinds(&self) -> Vec<String> {
        self.lines().iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect()
    }

    fn add(&self, text: &str) {
        let mut log = OpenOptions::new().append(true).open(&self.paths.audit).unwrap();
        log.write_all(text.as_bytes()).unwrap();
    }

    fn is_whole(&self) -> bool {
        is_chain(&self.paths.audit)
            && fs::read(&self.paths.audit_head).ok().and_then(|head| Position::from_head(&head))
                == last(&self.paths.audit)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn last(log: &Path) -> Option<Position> {
    Position::of_line(fs::read_to_string(log).unwrap().lines().last()?.as_bytes())
}

/// Whether every line holds the number and the hash that follow from the one before.
fn is_chain(log: &Path) -> bool {
    let mut place = Position::START;
    fs::read_to_string(log).unwrap().lines().all(|line| {
        let keys: Value = serde_json::from_str(line).unwrap();
        let follows =
            keys["seq"] == place.seq + 1 && keys["prev"] == gloveport_contract::catalog::hex(&place.hash);
        place = Position::of_line(line.as_bytes()).unwrap();
        follows
    })
}

const ENDED: &str = r#"{"kind":"ended"}"#;

#[test]
fn a_chain_goes_on_where_it_ended() {
    let state = State::new();
    state.open().append(ENDED).unwrap();
    let place = state.open().append(ENDED).unwrap();
    assert_eq!(place.seq, 2);
    assert!(state.is_whole());
    assert_eq!(state.kinds(), ["ended", "ended"]);
}

#[test]
fn a_torn_line_is_told_before_anything_else() {
    let state = State::new();
    state.open().append(ENDED).unwrap();
    state.add("{\"seq\":2,\"prev\":\"00");
    let mut journal = state.open();
    journal.append(ENDED).unwrap();
    assert_eq!(state.kinds(), ["ended", "torn", "ended"]);
    assert_eq!(state.lines()[1]["remains"], "{\"seq\":2,\"prev\":\"00");
    assert!(state.is_whole());
}

#[test]
fn a_cut_tail_leaves_a_break_that_stays() {
    let state = State::new();
    let mut journal = state.open();
    for _ in 0..3 {
        journal.append(ENDED).unwrap();
    }
    drop(journal);
    let text = fs::read_to_string(&state.paths.audit).unwrap();
    fs::write(&state.paths.audit, text.split_inclusive('\n').next().unwrap()).unwrap();
    state.open().append(ENDED).unwrap();
    assert_eq!(state.kinds(), ["ended", "gap", "ended"]);
    assert_eq!(state.lines()[1]["seq"], 4);
    assert!(!is_chain(&state.paths.audit));
}

#[test]
fn two_helpers_cannot_write_one_chain() {
    let state = State::new();
    let _first = state.open();
    assert!(matches!(Journal::open(&state.paths, true), Err(JournalError::Locked(_))));
}

#[test]
fn a_file_that_is_no_chain_is_left_as_it_is() {
    let state = State::new();
    fs::write(&state.paths.audit, "notes\n".repeat(TAIL)).unwrap();
    assert!(matches!(Journal::open(&state.paths, true), Err(JournalError::NotAChain(_))));
    assert!(fs::read_to_string(&state.paths.audit).unwrap().ends_with("notes\n"));
}

#[test]
fn what_a_full_disk_lost_is_told_when_there_is_room_again() {
    let state = State::new();
    let mut journal = state.open();
    journal.append(ENDED).unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let log = std::mem::replace(&mut journal.log, full);
    assert_eq!(journal.append(ENDED), Err(Errno::ENOSPC));
    // That device cannot be cut to a length, so the journal goes on refusing for that reason.
    assert!((0..2).all(|_| journal.append(ENDED).is_err()));
    journal.log = log;
    assert_eq!(journal.append(ENDED).map(|place| place.seq), Ok(3));
    assert_eq!(state.kinds(), ["ended", "gap", "ended"]);
    assert_eq!(state.lines()[1]["count"], 3);
    assert!(state.lines()[1]["reason"].as_str().unwrap().contains("No space left"));
    assert!(state.is_whole());
}

#[test]
fn what_was_lost_is_told_without_another_record() {
    let state = State::new();
    let mut journal = state.open();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let log = std::mem::replace(&mut journal.log, full);
    assert_eq!(journal.append(ENDED), Err(Errno::ENOSPC));
    assert!(journal.settle().is_err() && journal.is_owing());
    journal.log = log;
    assert_eq!((journal.settle(), journal.is_owing()), (Ok(()), false));
    assert_eq!(state.kinds(), ["gap"]);
    assert!(state.is_whole());
}

#[test]
fn a_head_that_could_not_be_written_is_put_right_later() {
    let state = State::new();
    let mut journal = state.open();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let head = std::mem::replace(&mut journal.head, full);
    journal.append(ENDED).unwrap();
    assert_eq!(journal.settle(), Err(Errno::ENOSPC));
    journal.head = head;
    assert_eq!(journal.settle(), Ok(()));
    assert!(state.is_whole());
}

#[test]
fn a_helper_that_ended_just_after_a_file_was_full_goes_on_without_a_gap() {
    let state = State::new();
    let mut journal = state.open();
    journal.append(ENDED).unwrap();
    journal.append(ENDED).unwrap();
    drop(journal);
    drop(volumes::turn(&state.paths.audit, true).unwrap());
    state.open().append(ENDED).unwrap();
    assert_eq!(state.kinds(), ["ended"]);
    assert_eq!(state.lines()[0]["seq"], 3);
}

#[test]
fn a_full_file_is_not_renamed_over_another() {
    let state = State::new();
    state.open().append(ENDED).unwrap();
    let other = state.paths.audit.with_file_name(gloveport_contract::volume::name(1));
    fs::write(&other, "older").unwrap();
    let refused = volumes::turn(&state.paths.audit, true).unwrap_err().to_string();
    assert!(refused.contains("audit-000000000001.jsonl: ") && refused.contains("exists"), "{refused}");
    assert_eq!(fs::read_to_string(other).unwrap(), "older");
    assert_eq!(state.kinds(), ["ended"]);
}
