//! The helper is not there, or cannot record.

use super::{Diagnosis, assert_text};
use gloveport_contract::packet::RefusalCode;
use gloveport_tests::mcp::finish;
use gloveport_tests::{Scene, processes};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[test]
fn it_does_not_run_and_runs_again() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let mut helper = scene.helper(&[hello]);
    let daemon = helper.daemon();
    assert!(Diagnosis::of(&helper.scene).is_well("helper"));
    helper.kill();
    let result = daemon.call("hello", json!({}));
    assert!(result.is_error(), "{:#}", result.0);
    // What the dead one left behind, its socket, is told from none at all.
    assert!(helper.socket().exists());
    let stale = Diagnosis::of(&helper.scene).finding("helper", "fail", "");
    let left = helper.scene.root.join("left.sock");
    fs::rename(helper.socket(), &left).expect("moving a socket");
    let none = Diagnosis::of(&helper.scene).finding("helper", "fail", "");
    fs::rename(&left, helper.socket()).expect("moving a socket");
    assert_text(&helper.scene, "helper_not_running", &[result.text(), stale, none].concat());
    // And it is no obstacle.
    helper.restart();
    assert_eq!(daemon.call("hello", json!({})).stdout(), "hello");
}

#[test]
fn it_goes_away_during_a_run() {
    let scene = Scene::new();
    let sleep = scene.probing("sleep", &["sleep", "20000"]);
    let mut helper = scene.helper(&[sleep]);
    let daemon = helper.daemon();
    let call = daemon.begin("sleep", json!({}));
    let uid = helper.scene.run.number;
    processes::wait_until("it runs", Duration::from_secs(10), || !processes::of(uid).is_empty());
    helper.kill();
    let result = finish(call);
    assert!(result.is_error(), "{:#}", result.0);
    let found = Diagnosis::of(&helper.scene).finding("helper", "fail", "");
    assert_text(&helper.scene, "helper_gone", &(result.text() + &found));
    processes::wait_until_gone(uid, Duration::from_secs(2));
}

/// A small file system of its own, unmounted in the end.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> Self {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k,mode=755", "none"]).arg(at).status();
        assert!(mounted.expect("mount").success());
        Self(at)
    }

    /// To the last byte: whatever the system takes.
    fn fill(&self) {
        let _ = fs::write(self.0.join("filler"), vec![b'x'; 1 << 20]);
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("filler")).expect("removing");
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn the_disk_of_the_audit_log_is_full_and_has_room_again() {
    let scene = Scene::new();
    let state = scene.state();
    let hello = scene.probing("hello", &["print", "hello"]);
    let disk = SmallDisk::mount(&state);
    let helper = scene.helper(&[hello]);
    assert_eq!(helper.run(helper.call("hello", &[])).stdout, "hello\n");

    disk.fill();
    let refused = (0..100).find_map(|_| {
        let finished = helper.run(helper.call("hello", &[]));
        // One whose end alone does not fit any more is another test's.
        if finished.ran() {
            return None;
        }
        finished.refused().map(|(code, detail)| (code, detail.to_owned()))
    });
    let (code, detail) = refused.expect("a full disk refuses runs");
    assert_eq!(code, RefusalCode::Audit);
    let found = Diagnosis::of(&helper.scene).finding("audit_room", "fail", "");
    assert_text(&helper.scene, "audit_disk_full", &(detail + &found));

    disk.empty();
    processes::wait_until("it runs again", Duration::from_secs(10), || {
        helper.run(helper.call("hello", &[])).stdout == "hello\n"
    });
}

#[test]
fn the_disk_fills_while_actions_run() {
    // The last page of the log takes some of their records, not all of them.
    const RUNS: usize = 12;
    let scene = Scene::new();
    let state = scene.state();
    let wait = scene.probing("wait", &["sleep", "20000"]).with(json!({"concurrency": RUNS}));
    let hello = scene.probing("hello", &["print", "hello"]);
    let disk = SmallDisk::mount(&state);
    let helper = scene.helper(&[wait, hello]);
    let daemon = helper.daemon();
    let calls: Vec<_> = (0..RUNS).map(|_| daemon.begin("wait", json!({}))).collect();
    let uid = helper.scene.run.number;
    processes::wait_until("all run", Duration::from_secs(20), || processes::of(uid).len() == RUNS);
    disk.fill();
    let running: Vec<String> = processes::of(uid).iter().map(|process| process.pid.to_string()).collect();
    assert!(Command::new("kill").args(&running).status().expect("kill").success());
    let results: Vec<_> = calls.into_iter().map(finish).collect();
    let failed = results.iter().find(|result| result.is_error()).expect("one that is not recorded");
    assert_text(&helper.scene, "audit_disk_fills", &failed.text());
    assert!(helper.log().contains("the end of a run of `wait` is not recorded"), "{}", helper.log());

    disk.empty();
    processes::wait_until("it runs again", Duration::from_secs(10), || {
        helper.run(helper.call("hello", &[])).stdout == "hello\n"
    });
}
