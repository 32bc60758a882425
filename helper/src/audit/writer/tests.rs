#![forbid(unsafe_code)]

use super::super::journal::tests::State;
use super::super::record::{Kind, Record};
use super::super::{AuditError, Client};
use super::*;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

const SETTINGS: Settings = Settings {
    full: AuditFull::Refuse,
    sync: AuditSync::ByRisk,
    rotate: 1 << 20,
    clients: 2,
    same_user: true,
};

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

/// A writer in a thread, not confined, and its control socket.
fn start(state: &State) -> (OwnedFd, JoinHandle<()>) {
    let (ours, theirs) = pair();
    let journal = state.open();
    (ours, thread::spawn(move || Writer::new(theirs, journal, SETTINGS).serve()))
}

fn record(durable: bool) -> Record {
    Record { durable, ..Record::new(Kind::Ended) }
}

#[test]
fn every_record_has_its_receipt() {
    let state = State::new();
    let (control, writer) = start(&state);
    let (one, two) = (Client::pair(&control).unwrap(), Client::pair(&control).unwrap());
    assert_eq!(one.append(&record(false)).unwrap().seq, 1);
    assert_eq!(two.append(&record(true)).unwrap().seq, 2);
    let receipt = one.append(&record(true)).unwrap();
    drop((control, one, two));
    writer.join().unwrap();
    let log = std::fs::read_to_string(&state.paths.audit).unwrap();
    let line = log.lines().last().unwrap();
    assert_eq!(receipt, Receipt { seq: 3, hash: hmac_sha256::Hash::hash(line.as_bytes()) });
}

#[test]
fn the_largest_record_fits_a_packet() {
    let state = State::new();
    let (control, writer) = start(&state);
    let client = Client::pair(&control).unwrap();
    let text = || Some("\u{1}".repeat(100_000));
    let large = Record {
        argv: vec![vec!["\u{1}".repeat(4000); 5]],
        peer: text(),
        client: text(),
        reason: text(),
        request: text(),
        ..record(true)
    };
    assert_eq!(client.append(&large).unwrap().seq, 1);
    assert!(std::fs::metadata(&state.paths.audit).unwrap().len() > 100_000);
    drop((control, client));
    writer.join().unwrap();
}

#[test]
fn the_last_records_come_after_the_helper_has_ended() {
    let state = State::new();
    let (control, writer) = start(&state);
    let client = Client::pair(&control).unwrap();
    drop(control);
    assert_eq!(client.append(&record(false)).unwrap().seq, 1);
    drop(client);
    writer.join().unwrap();
}

#[test]
fn one_client_too_many_is_turned_away() {
    let state = State::new();
    let (control, writer) = start(&state);
    let clients = [(); 3].map(|()| Client::pair(&control).unwrap());
    assert_eq!(clients[2].append(&record(false)), Err(AuditError::Gone));
    assert!(clients[0].append(&record(false)).is_ok());
    drop((control, clients));
    writer.join().unwrap();
}

#[test]
fn a_client_cannot_write_the_keys_of_the_writer_or_a_second_line() {
    let read = |packet: &[u8]| {
        let (client, writer) = pair();
        send(client.as_raw_fd(), packet, MsgFlags::empty()).unwrap();
        let mut buffer = vec![0; RECORD + 2];
        read_record(writer.as_raw_fd(), &mut buffer).map(|(durable, json)| (durable, json.to_owned()))
    };
    assert_eq!(read(b"\x01{\"kind\":\"ended\"}"), Some((true, r#"{"kind":"ended"}"#.to_owned())));
    for packet in [
        &b"\0{}"[..],
        b"\0{\"seq\":1,\"kind\":\"ended\"}",
        b"\0{\"kind\":\"ended\",\"\\u0073eq\":1}",
        b"\0{\"prev\":\"\"}",
        b"\0{\"time\":\"\"}",
        b"\0[1]",
        b"\0{\"kind\":\"ended\"}{}",
        b"\0\xff",
        b"\0",
    ] {
        assert_eq!(read(packet), None, "{packet:?}");
    }
    assert_eq!(read(&[b"\0{\"a\":\"", "x".repeat(RECORD).as_bytes(), b"\"}"].concat()), None);
}

#[test]
fn a_confined_writer_can_do_its_work_and_open_nothing() {
    let state = State::new();
    let (control, theirs) = pair();
    let name = "audit::writer::tests::a_confined_writer";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", name])
        .env("GLOVEPORT_TEST_STATE", state.paths.audit.parent().unwrap())
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn();
    let client = Client::pair(&control).unwrap();
    for seq in 1..=3 {
        assert_eq!(client.append(&record(seq == 2)).unwrap().seq, seq);
    }
    thread::sleep(BEHIND * 2);
    assert_eq!(client.append(&record(false)).unwrap().seq, 4);
    drop((control, client));
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(CONFINED));
}

/// What the confined process exits with when it was.
const CONFINED: i32 = 42;

#[test]
#[ignore = "is the process that the test above starts"]
fn a_confined_writer() {
    let Some(directory) = std::env::var_os("GLOVEPORT_TEST_STATE") else { return };
    let control = crate::sys::descriptors::inherited(0).unwrap();
    let paths = crate::paths::Paths::in_state(directory.as_ref());
    let journal = Journal::open(&paths, true).unwrap();
    // Root has more to give up.
    let same_user = !nix::unistd::geteuid().is_root();
    run(control, journal, Settings { same_user, ..SETTINGS }, None).unwrap();
    let refused = File::open("/etc/passwd").err().and_then(|error| error.raw_os_error());
    std::process::exit(if refused == Some(libc::EPERM) { CONFINED } else { 1 });
}
