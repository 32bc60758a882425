//! How long a call lasts, what comes of it when it is cut off, and that it holds up no other.

use gloveport_tests::mcp::finish;
use gloveport_tests::{Pair, Scene, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

fn pair(keys: serde_json::Value) -> Pair {
    let scene = Scene::new();
    let probe = scene.any_probe().with(keys);
    scene.pair(&[probe])
}

#[test]
fn a_timeout_keeps_what_was_printed() {
    let pair = pair(json!({"timeout": "1s"}));
    let result = pair.probe(&["print-sleep", "20000", "so far"]);
    assert_eq!(result.structured()["timed_out"], true, "{:#}", result.0);
    assert_eq!(result.step(0)["status"], "timeout");
    assert_eq!(result.stdout(), "so far");
    assert!(result.text().contains("so far"), "{}", result.text());
}

#[test]
fn one_timeout_spans_all_steps() {
    let scene = Scene::new();
    let sleep = |name: &str| json!({"name": name, "exec": [scene.probe(), "sleep", "700"]});
    let steps = scene.action(
        "steps",
        json!({
            "steps": [sleep("one"), sleep("two"), sleep("three")], "timeout": "1s",
        }),
    );
    let pair = scene.pair(&[steps]);
    let result = pair.call("steps", json!({}));
    let status = |at: usize| result.step(at)["status"].as_str().unwrap_or_default().to_owned();
    assert_eq!([status(0), status(1), status(2)], ["success", "timeout", "skipped"], "{:#}", result.0);
}

#[test]
fn an_endless_reader_ends_at_its_timeout() {
    let scene = Scene::new();
    let log = scene.file("endless.log", "first line\n");
    let catalog = scene.linux_agent(&[]);
    let pair = scene.pair_of(&[&catalog]);
    let command = format!("tail -f {log}");
    let begun = Instant::now();
    let result = pair.call("execute_command", json!({"command": command, "timeout": 1}));
    assert_eq!(result.structured()["error"], "Timeout after 1s.", "{:#}", result.0);
    assert!(begun.elapsed() < Duration::from_secs(4), "took {:?}", begun.elapsed());
    processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(1));
}

#[test]
fn a_stopped_helper_delays_a_call_by_no_more_than_the_call_s_own_time() {
    let pair = pair(json!({"timeout": "3s"}));
    let helper = Pid::from_raw(pair.process("gloveport-helper").pid.cast_signed()).expect("a pid");
    kill_process(helper, Signal::STOP).expect("stopping the helper");
    let begun = Instant::now();
    let result = pair.probe(&["print", "hello"]);
    let took = begun.elapsed();
    kill_process(helper, Signal::CONT).expect("waking the helper");
    assert!(result.text().contains("did not answer in the time of the call"), "{:#}", result.0);
    assert!(took < Duration::from_secs(8), "took {took:?}");
    assert_eq!(pair.probe(&["print", "hello"]).stdout().trim_end(), "hello");
}

#[test]
fn the_limit_in_force_is_in_every_result() {
    let scene = Scene::new();
    let catalog = scene.linux_agent(&[]);
    let pair = scene.pair_of(&[&catalog]);
    for (asked, given) in [(5, 5000), (240, 120_000), (0, 1000)] {
        let result = pair.call("execute_command", json!({"command": "uname", "timeout": asked}));
        assert_eq!(result.0["_meta"]["gloveport/timeout_ms"], given, "{:#}", result.0);
    }
    let pair = self::pair(json!({"timeout": "7s"}));
    assert_eq!(pair.probe(&["print", "x"]).structured()["timeout_ms"], 7000);
}

#[test]
fn a_long_call_holds_up_no_other() {
    let pair = pair(json!({}));
    let long = pair.begin("probe", json!({"params": {"words": ["print-sleep", "3000", "done"]}}));
    processes::wait_until("the long call runs", Duration::from_secs(10), || {
        !processes::of(pair.scene.run.number).is_empty()
    });
    let begun = Instant::now();
    assert!(pair.tools().contains(&"probe".to_owned()));
    assert_eq!(pair.probe(&["print", "short"]).stdout(), "short");
    assert!(begun.elapsed() < Duration::from_millis(2500), "took {:?}", begun.elapsed());
    assert_eq!(finish(long).stdout(), "done");
}

#[test]
fn over_its_limit_of_runs_at_once_an_action_is_busy() {
    let pair = pair(json!({"concurrency": 2}));
    let sleep = || pair.begin("probe", json!({"params": {"words": ["sleep", "5000"]}}));
    let running = [sleep(), sleep()];
    processes::wait_until("both run", Duration::from_secs(10), || {
        processes::of(pair.scene.run.number).len() == 2
    });
    let third = pair.probe(&["print", "x"]);
    assert!(third.is_error(), "{:#}", third.0);
    assert!(third.text().to_lowercase().contains("busy"), "{}", third.text());
    drop(running);
    processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(2));
    assert_eq!(pair.probe(&["print", "free again"]).stdout(), "free again");
}

#[test]
fn a_stopped_helper_is_a_call_that_fails_in_time_and_not_a_stuck_daemon() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[hello]);
    let daemon = helper.daemon();
    assert_eq!(daemon.call("hello", json!({})).stdout(), "hello");
    helper.signal(Signal::STOP);
    let begun = Instant::now();
    let call = daemon.begin("hello", json!({}));
    assert!(daemon.tools().contains(&"hello".to_owned()), "what needs no helper is answered");
    helper.signal(Signal::CONT);
    assert_eq!(finish(call).stdout(), "hello");
    assert!(begun.elapsed() < Duration::from_secs(20), "took {:?}", begun.elapsed());
}

#[test]
fn without_a_helper_nothing_runs_and_the_answer_says_so() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let mut helper = scene.helper(&[hello]);
    let daemon = helper.daemon();
    helper.kill();
    let result = daemon.call("hello", json!({}));
    assert!(result.is_error(), "{:#}", result.0);
    assert!(result.text().contains("helper"), "{}", result.text());
}
