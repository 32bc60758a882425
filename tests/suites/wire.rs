//! A taken-over daemon that does not keep to the protocol: the connection ends, and that is all.

use gloveport_contract::limits;
use gloveport_contract::packet::{Outcome, Request};
use gloveport_tests::helper::AHEAD;
use gloveport_tests::{Helper, Scene, processes};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

fn helper() -> Helper {
    let scene = Scene::new();
    let actions = [scene.probing("hello", &["print", "hello"]), scene.probing("sleep", &["sleep", "20000"])];
    scene.helper(&actions)
}

/// Sends bytes as one packet; the helper must close without running anything, and serve the next one.
fn assert_closed(helper: &Helper, what: &str, bytes: &[u8]) {
    let mut connection = helper.connect();
    // The kernel refuses what no socket buffer holds; then the helper has nothing to do.
    if connection.send_bytes(bytes).is_ok() {
        assert!(!connection.finish().ran(), "{what} ran something");
    }
}

fn assert_still_serves(helper: &Helper) {
    let finished = helper.run(helper.call("hello", &[]));
    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
}

#[test]
fn malformed_packets_end_the_connection() {
    let helper = helper();
    let good = Request::Run(Box::new(helper.call("hello", &[]))).encode().expect("a packet");
    let trailing = [good.as_slice(), b"xyz"].concat();
    let oversize = [good.clone(), vec![0; limits::PACKET]].concat();
    // A packet that is not in canonical form: its first number in the longer way.
    let mut longer_number = vec![0xfb, good[0], 0];
    longer_number.extend(&good[1..]);
    // A list of 2^40 elements; bincode writes such a number as 0xfd and eight bytes.
    // It stands where the first text of a run does, after its version, digest and token.
    let bomb = [&[1_u8, 1][..], &[0; 33], &[0xfd], &(1_u64 << 40).to_le_bytes()].concat();
    let attempts: [(&str, &[u8]); 10] = [
        ("nothing", b""),
        ("one byte", b"\0"),
        ("text", b"GET / HTTP/1.1\r\n\r\n"),
        ("half a packet", &good[..good.len() / 2]),
        ("trailing bytes", &trailing),
        ("an oversized packet", &oversize),
        ("a number in its longer form", &longer_number),
        ("a length bomb", &bomb),
        ("an unknown request", &[9, 0, 0]),
        ("all ones", &[0xff; 4096]),
    ];
    let before = processes::resident(helper.pid());
    for (what, bytes) in attempts {
        assert_closed(&helper, what, bytes);
    }
    assert_still_serves(&helper);
    let grown = processes::resident(helper.pid()).saturating_sub(before);
    assert!(grown < 4096, "the helper grew by {grown} KiB");
    assert_eq!(processes::of(helper.scene.run.number), []);
}

#[test]
fn every_prefix_of_a_packet_is_refused() {
    let helper = helper();
    let good = Request::Run(Box::new(helper.call("hello", &[]))).encode().expect("a packet");
    for length in 1..good.len() {
        assert_closed(&helper, &format!("{length} bytes of {}", good.len()), &good[..length]);
    }
    assert_still_serves(&helper);
}

#[test]
fn a_second_request_ends_the_run() {
    let helper = helper();
    let request = Request::Run(Box::new(helper.call("sleep", &[])));
    let mut connection = helper.connect();
    connection.send(&request);
    processes::wait_until("the program runs", Duration::from_secs(10), || {
        !processes::of(helper.scene.run.number).is_empty()
    });
    connection.send(&request);
    processes::wait_until_gone(helper.scene.run.number, Duration::from_secs(2));
    assert_ne!(connection.finish().outcome(), Some(&Outcome::Exited(0)));
    assert_still_serves(&helper);
}

#[test]
fn descriptors_are_never_taken() {
    let helper = helper();
    let packet = Request::Run(Box::new(helper.call("hello", &[]))).encode().expect("a packet");
    let null = File::open("/dev/null").expect("/dev/null");
    let before = processes::descriptors(helper.pid());
    for count in [1, 3, 253] {
        for _ in 0..20 {
            let mut connection = helper.connect();
            let descriptors = vec![null.as_fd(); count];
            connection.send_with(&packet, &descriptors).expect("sending descriptors");
            assert!(!connection.finish().ran(), "ran with {count} descriptors attached");
        }
    }
    processes::wait_until("the helper has as many descriptors as before", Duration::from_secs(5), || {
        processes::descriptors(helper.pid()) <= before + AHEAD
    });
    assert_still_serves(&helper);
}

#[test]
fn a_client_that_says_nothing_holds_up_nobody() {
    let helper = helper();
    let silent: Vec<_> = (0..16).map(|_| helper.connect()).collect();
    assert_still_serves(&helper);
    drop(silent);
    assert_still_serves(&helper);
}

#[test]
fn a_daemon_that_does_not_read_is_a_cancelled_run_and_not_a_stuck_helper() {
    let scene = Scene::new();
    let flood = scene.probing("flood", &["flood", "100000000"]).with(serde_json::json!({"timeout": "2s"}));
    let hello = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[flood, hello]);
    let mut connection = helper.connect();
    connection.send(&Request::Run(Box::new(helper.call("flood", &[]))));
    processes::wait_until("the program runs", Duration::from_secs(10), || {
        !processes::of(helper.scene.run.number).is_empty()
    });
    // Its pipe is full and nobody reads: others are served meanwhile, and the deadline ends it.
    assert_still_serves(&helper);
    processes::wait_until_gone(helper.scene.run.number, Duration::from_secs(10));
}
