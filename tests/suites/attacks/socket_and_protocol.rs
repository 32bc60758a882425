//! The helper's socket, in the hands of a taken-over daemon or of a stranger.

use super::{assert_ran, assert_unsupported, printed, serves};
use gloveport_contract::packet::Request;
use gloveport_tests::helper::AHEAD;
use gloveport_tests::{Helper, Scene, processes};
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, recv,
    socket_with,
};
use rustix::thread::set_thread_res_uid;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn helper() -> Helper {
    let scene = Scene::new();
    let actions = [scene.probing("hello", &["print", "hello"]), scene.probing("sleep", &["sleep", "20000"])];
    scene.helper(&actions)
}

#[test]
fn two_hundred_connections_that_say_nothing_are_gone_after_their_second() {
    let helper = helper();
    let before = processes::descriptors(helper.pid());
    let silent: Vec<_> = (0..200).map(|_| helper.connect()).collect();
    // Runs, calls that wait for a person and what is beside them are bounded, each by itself.
    let family = processes::descendants(helper.pid()).len();
    assert!(family < 120, "{family} processes");
    processes::wait_until("a call is served among them", SOON, || serves(&helper));
    processes::wait_until("nothing is kept for them", SOON, || {
        processes::descriptors(helper.pid()) <= before + AHEAD
            // The audit writer, too.
            && processes::descendants(helper.pid()).len() <= 1 + AHEAD
    });
    drop(silent);
}

#[test]
fn a_socket_that_is_sent_through_itself_is_closed_like_any_other() {
    let helper = helper();
    let packet = Request::Run(Box::new(helper.call("hello", &[]))).encode().expect("a packet");
    let before = processes::descriptors(helper.pid());
    for _ in 0..50 {
        let (mut connection, other) = (helper.connect(), helper.connect());
        connection.send_with(&packet, &[other.as_fd()]).expect("sending a socket");
        assert!(!connection.finish().ran());
    }
    processes::wait_until("no descriptor is kept", SOON, || {
        processes::descriptors(helper.pid()) <= before + AHEAD
    });
    assert_ran(&helper.run(helper.call("hello", &[])));
}

#[test]
fn a_flood_of_malformed_packets_fills_no_log_and_disturbs_no_run() {
    let helper = helper();
    let mut running = helper.connect();
    running.send(&Request::Run(Box::new(helper.call("sleep", &[]))));
    let uid = helper.scene.run.number;
    processes::wait_until("the program runs", SOON, || !processes::of(uid).is_empty());
    for _ in 0..500 {
        let mut connection = helper.connect();
        let _ = connection.send_bytes(b"\xff\xff\xff");
    }
    processes::wait_until("a call is served", SOON, || serves(&helper));
    let malformed = helper.audit().iter().filter(|record| record["kind"] == "malformed").count();
    assert!((1..=31).contains(&malformed), "{malformed} records");
    assert_eq!(processes::of(uid).len(), 1, "the run goes on");
    drop(running);
    processes::wait_until_gone(uid, SOON);
}

#[test]
fn the_daemon_tells_nothing_to_somebody_else_in_the_helpers_place() {
    let mut helper = helper();
    let daemon = helper.daemon();
    assert_eq!(daemon.call("hello", json!({})).stdout(), "hello");
    helper.kill();
    let path = helper.socket();
    fs::remove_file(&path).expect("removing the socket");
    let (uid, place) = (helper.scene.run.number, path.clone());
    let (ready, is_ready) = mpsc::channel();
    // The kernel notes who listens; this thread listens as another user.
    let impostor = std::thread::spawn(move || {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket");
        bind(&socket, &SocketAddrUnix::new(&place).expect("a path")).expect("binding");
        fs::set_permissions(&place, Permissions::from_mode(0o666)).expect("chmod");
        let user = rustix::process::Uid::from_raw(uid);
        set_thread_res_uid(user, user, user).expect("becoming somebody else");
        listen(&socket, 8).expect("listening");
        ready.send(()).expect("the test");
        let connection = accept(&socket).expect("a connection");
        let mut bytes = [0; 65536];
        recv(&connection, &mut bytes[..], RecvFlags::empty()).map_or(0, |(_, length)| length)
    });
    is_ready.recv().expect("the impostor");
    let result = daemon.call("hello", json!({}));
    assert!(result.is_error(), "{:#}", result.0);
    assert_eq!(impostor.join().expect("the impostor"), 0, "the daemon has sent something");
}

#[test]
fn a_program_reaches_neither_the_helper_nor_the_daemon_by_their_sockets() {
    let scene = Scene::new();
    let socket = scene.state().join("helper.sock").display().to_string();
    let unix = json!({"sandbox": {"network": ["unix"]}});
    let daemon = scene.daemon.number;
    let actions = [
        scene.probing("reach", &["unix", &socket]).with(unix.clone()),
        scene.probing("as_the_daemon", &["unix", &socket]).with(unix.clone()).with(json!({
            "run_as": format!("{daemon}:{daemon}"),
        })),
        scene
            .probing("in_its_group", &["unix", &socket])
            .with(unix)
            .with(json!({"groups": [daemon.to_string()]})),
    ];
    let helper = scene.helper(&actions);
    assert_eq!(printed(&helper, "reach"), "errno EACCES");
    assert_unsupported(&helper, "as_the_daemon", "daemon's account");
    assert_unsupported(&helper, "in_its_group", "daemon's account");
    // It is there: the probe's own socket is of another kind, and the kernel says so to who may connect.
    assert_eq!(super::outside(&helper, &["unix", &socket]), "errno EPROTOTYPE");
}
