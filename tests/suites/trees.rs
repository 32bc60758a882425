//! Whole process trees end: at the timeout, at a disconnect, and when the program itself is done.

use gloveport_tests::helper::AHEAD;
use gloveport_tests::{Pair, Scene, processes};
use serde_json::json;
use std::time::{Duration, Instant};

/// What the specification allows for any tree within its limits.
const GONE: Duration = Duration::from_secs(1);

fn pair(timeout: &str) -> Pair {
    let scene = Scene::new();
    let probe = scene.any_probe().with(json!({"timeout": timeout, "limits": {"processes": 60}}));
    scene.pair(&[probe])
}

/// The descriptors of both programs.
fn descriptors(pair: &Pair) -> [usize; 2] {
    ["gloveport-helper", "gloveportd"].map(|program| processes::descriptors(pair.process(program).pid))
}

/// Both programs have no more descriptors than before; an idle connection may take a moment to close.
fn assert_no_more_descriptors(pair: &Pair, before: [usize; 2]) {
    processes::wait_until(&format!("descriptors are back to {before:?}"), Duration::from_secs(5), || {
        descriptors(pair).iter().zip(before).all(|(now, before)| *now <= before + AHEAD)
    });
}

fn wait_until_started(pair: &Pair, count: usize) {
    processes::wait_until("the tree has grown", Duration::from_secs(10), || {
        processes::of(pair.scene.run.number).len() >= count
    });
}

#[test]
fn a_daemonised_grandchild_is_gone_after_the_timeout() {
    let pair = pair("1s");
    pair.probe(&["print", "warm"]);
    let before = descriptors(&pair);
    let result = pair.probe(&["daemon", "20000"]);
    assert_eq!(result.structured()["timed_out"], true, "{:#}", result.0);
    assert!(result.is_error(), "a timeout is an error, with what there was");
    assert!(result.stdout().starts_with("pid "), "partial output: {:#}", result.0);
    processes::wait_until_gone(pair.scene.run.number, GONE);
    assert_no_more_descriptors(&pair, before);
}

#[test]
fn a_daemonised_grandchild_is_gone_after_a_disconnect() {
    let pair = pair("30s");
    pair.probe(&["print", "warm"]);
    let before = descriptors(&pair);
    let call = pair.begin("probe", json!({"params": {"words": ["daemon", "20000"]}}));
    // The program and its grandchild.
    wait_until_started(&pair, 2);
    drop(call);
    processes::wait_until_gone(pair.scene.run.number, GONE);
    assert_no_more_descriptors(&pair, before);
}

#[test]
fn what_ignores_every_polite_signal_is_gone_too() {
    let pair = pair("1s");
    for words in [["ignore-term", "20000"], ["stop", "0"], ["tree", "50"]] {
        let begun = Instant::now();
        let result = pair.probe(&words);
        assert_eq!(result.structured()["timed_out"], true, "{words:?}: {:#}", result.0);
        assert!(begun.elapsed() < Duration::from_secs(5), "{words:?} took {:?}", begun.elapsed());
        processes::wait_until_gone(pair.scene.run.number, GONE);
    }
}

#[test]
fn a_background_child_that_holds_stdout_does_not_hold_the_answer() {
    let pair = pair("15s");
    let begun = Instant::now();
    let result = pair.probe(&["orphan"]);
    assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
    assert_eq!(result.structured()["exit_code"], 0, "{:#}", result.0);
    assert_eq!(result.structured()["timed_out"], false);
    assert!(result.stdout().contains("started"), "{:#}", result.0);
    assert_eq!(result.structured()["enforcement"]["killed_by"], "leftovers", "{:#}", result.0);
    processes::wait_until_gone(pair.scene.run.number, GONE);
}

#[test]
fn a_hundred_runs_with_orphans_leave_no_zombie() {
    let pair = pair("15s");
    let before = descriptors(&pair);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    pair.probe(&["orphan"]);
                }
            });
        }
    });
    processes::wait_until_gone(pair.scene.run.number, GONE);
    let up = pair.process("gloveport-helper").parent;
    // An answer leaves before its supervisor does: the last ones may be waiting to be reaped right now.
    processes::wait_until("no zombie is left", Duration::from_secs(5), || {
        processes::descendants(up).iter().all(|one| one.state != 'Z')
    });
    assert_no_more_descriptors(&pair, before);
}

#[test]
fn a_killed_helper_leaves_nothing_running() {
    let scene = Scene::new();
    let sleep = scene.probing("daemon", &["daemon", "20000"]);
    let mut helper = scene.helper(&[sleep]);
    let run = helper.call("daemon", &[]);
    let mut connection = helper.connect();
    connection.send(&gloveport_contract::packet::Request::Run(Box::new(run)));
    let uid = helper.scene.run.number;
    processes::wait_until("the tree has grown", Duration::from_secs(10), || processes::of(uid).len() >= 2);
    helper.kill();
    processes::wait_until_gone(uid, Duration::from_secs(2));
}

#[test]
fn a_killed_supervisor_leaves_nothing_running() {
    let pair = pair("20s");
    let call = pair.begin("probe", json!({"params": {"words": ["daemon", "20000"]}}));
    wait_until_started(&pair, 2);
    let helper = pair.process("gloveport-helper").pid;
    let program = processes::of(pair.scene.run.number).into_iter().find(|one| one.command.contains("daemon"));
    let mut supervisor = program.expect("the program").parent;
    // The grandchild has lost its parent; the program itself has the supervisor.
    if processes::read(supervisor).is_none_or(|one| one.uid == pair.scene.run.number) {
        supervisor = processes::descendants(helper).first().expect("a supervisor").pid;
    }
    assert_ne!(supervisor, helper, "a run has a supervisor of its own");
    let pid = rustix::process::Pid::from_raw(supervisor.cast_signed()).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killing the supervisor");
    processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(2));
    drop(call);
    assert_eq!(pair.probe(&["print", "still here"]).stdout(), "still here");
}

/// Fork bombs, each within its own limit of processes: alone, for they take the machine's attention.
mod alone {
    use super::*;

    fn dies_after_the_timeout(words: &[&str]) {
        let pair = pair("1s");
        let result = pair.probe(words);
        assert_eq!(result.structured()["timed_out"], true, "{:#}", result.0);
        processes::wait_until_gone(pair.scene.run.number, GONE);
        assert_eq!(pair.probe(&["print", "still here"]).stdout(), "still here");
    }

    #[test]
    fn a_fork_bomb_is_gone_after_the_timeout() {
        dies_after_the_timeout(&["bomb"]);
    }

    #[test]
    fn a_fork_bomb_of_sessions_is_gone_after_the_timeout() {
        dies_after_the_timeout(&["setsid-bomb"]);
    }

    #[test]
    fn a_chain_of_orphans_is_gone_when_its_first_link_is() {
        let pair = pair("5s");
        let begun = Instant::now();
        pair.probe(&["chain"]);
        assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
        processes::wait_until_gone(pair.scene.run.number, GONE);
    }
}
