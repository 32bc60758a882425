//! The audit chain over several files, and what happens to it while the helper runs.

use gloveport_contract::packet::{Outcome, Request, Scalar, Value};
use gloveport_contract::volume;
use gloveport_tests::{Helper, Scene, processes, programs};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn helper(words: &[&str]) -> Helper {
    let scene = Scene::new();
    let text = scene.action(
        "print",
        json!({
            "params": {"words": {"type": "list", "items": {"type": "string", "max_length": 4000}}},
            "exec": [scene.probe(), "print", "{words}"],
        }),
    );
    let sleep = scene.probing("sleep", &["sleep", "1500"]);
    let mut preparation = scene.prepare(&[text, sleep]);
    preparation.words = words.iter().map(|&word| word.to_owned()).collect();
    preparation.start()
}

/// A run whose records take some 60 KB.
fn run(helper: &Helper) {
    let words = vec![Scalar::Text(b"x".repeat(4000)); 4];
    let finished = helper.run(helper.call("print", &[("words", Value::List(words))]));
    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
}

fn log(helper: &Helper) -> PathBuf {
    helper.scene.state().join("audit.jsonl")
}

/// The names of the full files.
fn full(helper: &Helper) -> Vec<String> {
    let entries = fs::read_dir(helper.scene.state()).expect("the state directory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut full: Vec<String> = names.filter(|name| volume::first(name).is_some()).collect();
    full.sort();
    full
}

/// What `gloveport audit verify --json` says.
fn verify(helper: &Helper) -> serde_json::Value {
    let words = ["audit", "verify", "--json"];
    serde_json::from_str(&gloveport(helper, &words)).expect("JSON")
}

fn gloveport(helper: &Helper, words: &[&str]) -> String {
    let mut command = Command::new(programs::built("gloveport"));
    let output = command.arg("--state").arg(helper.scene.state()).args(words).output().expect("gloveport");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn assert_whole(helper: &Helper) {
    let report = verify(helper);
    assert_eq!(report["ok"], true, "{report:#}");
}

/// Asserts that a fault of this kind is named, in this file.
fn assert_found(helper: &Helper, kind: &str, file: Option<&str>) {
    let report = verify(helper);
    let faults = report["faults"].as_array().expect("faults");
    let found = faults.iter().any(|fault| fault["kind"] == kind && fault["file"].as_str() == file);
    assert!(found, "no {kind} in {file:?}: {report:#}");
}

#[test]
fn a_full_file_stays_under_a_name_of_its_own_and_the_chain_goes_on() {
    let mut helper = helper(&["--audit-rotate", "1"]);
    for _ in 0..200 {
        run(&helper);
        if full(&helper).len() >= 2 {
            break;
        }
    }
    let names = full(&helper);
    assert_eq!(names.len(), 2, "{}", helper.log());
    assert_eq!(names[0], volume::name(1));
    processes::wait_until("the next file is begun", SOON, || !helper.audit().is_empty());
    assert_eq!(helper.audit()[0]["kind"], "rotated", "{:?}", helper.audit()[0]);
    helper.kill();
    helper.restart();
    run(&helper);
    let report = verify(&helper);
    assert_eq!(report["ok"], true, "{report:#}");
    let shown = gloveport(&helper, &["audit", "tail", "-n", "100000", "--json"]);
    assert_eq!(report["records"], shown.lines().count());
    assert!(shown.starts_with(r#"{"seq":1,"#));

    let [first, second] = [0, 1].map(|at| helper.scene.state().join(&names[at]));
    let text = fs::read_to_string(&first).expect("a full file");
    fs::write(&first, text.replacen("exited", "EXITED", 1)).expect("changing it");
    assert_found(&helper, "changed", Some(&names[0]));
    fs::write(&first, &text).expect("putting it right");
    assert_whole(&helper);

    let away = helper.scene.root.join("away");
    fs::rename(&second, &away).expect("moving it away");
    assert_found(&helper, "removed", Some(&names[1]));
    fs::rename(&away, &second).expect("bringing it back");
    let other = volume::name(9_999_999);
    fs::rename(&second, helper.scene.state().join(&other)).expect("renaming it");
    assert_found(&helper, "misnamed", Some(&other));
    fs::rename(helper.scene.state().join(&other), &second).expect("naming it right");
    assert_whole(&helper);
}

#[test]
fn a_log_that_is_moved_away_is_begun_anew_and_says_so() {
    let helper = helper(&[]);
    run(&helper);
    let moved = helper.scene.root.join("moved");
    fs::rename(log(&helper), &moved).expect("moving the log");
    run(&helper);
    let records = helper.audit();
    assert_eq!(records[0]["kind"], "gap", "{records:?}");
    let reason = records[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("audit.jsonl was moved or removed while the helper ran"), "{reason}");
    assert_found(&helper, "not_the_beginning", None);
    fs::copy(&moved, helper.scene.state().join(volume::name(1))).expect("bringing it back");
    assert_whole(&helper);
}

#[test]
fn a_log_that_is_removed_during_a_run_is_begun_anew_by_its_end() {
    let helper = helper(&[]);
    let mut connection = helper.connect();
    connection.send(&Request::Run(Box::new(helper.call("sleep", &[]))));
    processes::wait_until("it runs", SOON, || !processes::of(helper.scene.run.number).is_empty());
    let head = helper.scene.state().join("audit.head");
    fs::remove_file(log(&helper)).expect("removing the log");
    fs::remove_file(&head).expect("removing the head");
    assert_eq!(connection.finish().outcome(), Some(&Outcome::Exited(0)));
    processes::wait_until("both are there again", SOON, || head.exists() && helper.audit().len() >= 2);
    let kinds: Vec<_> = helper.audit().iter().map(|record| record["kind"].clone()).collect();
    assert!(kinds.starts_with(&["gap".into(), "gap".into()]), "{kinds:?}");
    run(&helper);
    assert_found(&helper, "not_the_beginning", None);
    assert_eq!(verify(&helper)["faults"].as_array().map(Vec::len), Some(1));
}

#[test]
fn nothing_runs_while_something_else_stands_in_the_place_of_the_log() {
    let helper = helper(&[]);
    run(&helper);
    // At one stroke: where nothing stands for a moment, the helper begins anew.
    let [moved, another] = ["moved", "another"].map(|name| helper.scene.root.join(name));
    fs::hard_link(log(&helper), &moved).expect("keeping the log");
    fs::write(&another, "something else\n").expect("writing");
    fs::rename(&another, log(&helper)).expect("replacing the log");
    let mut connection = helper.connect();
    let request = Request::Run(Box::new(helper.call("sleep", &[])));
    // The connection may be closed before it is sent.
    let _ = connection.send_bytes(&request.encode().expect("a packet"));
    let finished = connection.finish();
    assert!(finished.events.is_empty(), "{finished:?}");
    assert!(helper.log().contains("is another file than the one that the helper writes"), "{}", helper.log());
    assert_eq!(fs::read_to_string(log(&helper)).expect("the file"), "something else\n");
    fs::rename(&moved, log(&helper)).expect("putting it back");
    run(&helper);
    assert_whole(&helper);
}
