//! A person says yes first. The daemon cannot say it, cannot use it for anything else, and cannot do without.

mod binding;
mod clients;
mod people;

use gloveport_contract::packet::{Event, Outcome, RefusalCode, Request};
use gloveport_tests::{Connection, Helper, Scene, fake_daemon, processes, programs};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

fn helper() -> Helper {
    let scene = Scene::new();
    let held = json!({"approval": "required"});
    let actions = [
        scene.probing("hello", &["print", "hello"]),
        scene.probing("restart", &["print", "restarted"]).with(held.clone()),
        scene.probing("impatient", &["print", "never"]).with(json!({
            "approval": "required", "approval_timeout": "300ms",
        })),
    ];
    scene.helper(&actions)
}

fn pending(helper: &Helper) -> PathBuf {
    helper.scene.state().join("pending")
}

/// A call that waits, and its id.
fn waiting(helper: &Helper, action: &str) -> (Connection, String) {
    let mut connection = helper.connect();
    connection.send(&Request::Run(Box::new(helper.call(action, &[]))));
    match connection.receive() {
        Some((Event::AwaitingApproval { id, .. }, _)) => (connection, id),
        other => panic!("it does not wait: {other:?}"),
    }
}

fn shown(helper: &Helper, id: &str) -> Value {
    let text = fs::read(pending(helper).join(format!("{id}.json"))).expect("what waits");
    serde_json::from_slice(&text).expect("JSON")
}

/// Puts a decision where the helper looks for it, as root does.
fn decide(helper: &Helper, id: &str, decision: &Value) {
    let new = pending(helper).join(format!(".{id}"));
    fs::write(&new, decision.to_string()).expect("writing a decision");
    fs::rename(new, pending(helper).join(format!("{id}.decision"))).expect("renaming a decision");
}

fn yes(helper: &Helper, id: &str) -> Value {
    json!({"answer": "approve", "digest": shown(helper, id)["digest"], "by": "tester", "reason": ""})
}

#[track_caller]
fn assert_refused(mut connection: Connection, part: &str) {
    let finished = connection.finish();
    assert!(!finished.ran(), "{finished:?}");
    match finished.refused() {
        Some((RefusalCode::Approval, detail)) => assert!(detail.contains(part), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_approved_call_runs_once_and_what_was_shown_is_what_ran() {
    let helper = helper();
    let (mut connection, id) = waiting(&helper, "restart");
    let shown = shown(&helper, &id);
    assert_eq!(shown["argv"], json!([[helper.scene.probe(), "print", "restarted"]]));
    assert_eq!((&shown["caller"], &shown["caller_proof"]), (&json!("all"), &json!("token")));
    decide(&helper, &id, &yes(&helper, &id));
    let finished = connection.finish();
    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
    assert_eq!(finished.stdout.trim(), "restarted");
    assert_eq!(fs::read_dir(pending(&helper)).expect("pending").count(), 0);
    let kinds: Vec<Value> = helper.audit().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds[1..], [json!("awaiting_approval"), json!("decided"), json!("accepted"), json!("ended")]);
    let records = helper.audit();
    assert_eq!(records[2]["decided_by"], "tester");
    assert!(records[1..].iter().all(|record| record["run"] == json!(id)), "{records:#?}");
    // What needs no approval does not wait.
    assert_eq!(helper.run(helper.call("hello", &[])).outcome(), Some(&Outcome::Exited(0)));
}

#[test]
fn a_no_is_told_with_its_reason() {
    let helper = helper();
    let (connection, id) = waiting(&helper, "restart");
    let no = json!({"answer": "deny", "digest": shown(&helper, &id)["digest"], "by": "tester", "reason": "not today"});
    decide(&helper, &id, &no);
    assert_refused(connection, "a person said no: not today");
}

#[test]
fn the_daemon_can_neither_see_nor_write_decisions() {
    let helper = helper();
    let (connection, id) = waiting(&helper, "restart");
    // The directory is closed to it, and a file of its own would not count.
    let daemon = helper.scene.daemon.number;
    let directory = pending(&helper);
    let daemon_reaches = std::thread::spawn(move || {
        let (user, group) = (rustix::process::Uid::from_raw(daemon), rustix::process::Gid::from_raw(daemon));
        rustix::thread::set_thread_groups(&[]).expect("setgroups");
        rustix::thread::set_thread_res_gid(group, group, group).expect("setresgid");
        rustix::thread::set_thread_res_uid(user, user, user).expect("setresuid");
        fs::read_dir(&directory).is_ok() || fs::write(directory.join("x"), "").is_ok()
    });
    assert!(!daemon_reaches.join().expect("the daemon's thread"));
    let file = pending(&helper).join(format!(".{id}"));
    fs::write(&file, yes(&helper, &id).to_string()).expect("writing");
    chown(&file, Some(daemon), None).expect("chown");
    fs::rename(file, pending(&helper).join(format!("{id}.decision"))).expect("renaming");
    assert_refused(connection, "belongs to");
}

#[test]
fn a_yes_counts_for_one_call_only() {
    let helper = helper();
    let (mut first, id) = waiting(&helper, "restart");
    let approved = yes(&helper, &id);
    decide(&helper, &id, &approved);
    assert_eq!(first.finish().outcome(), Some(&Outcome::Exited(0)));
    // The same call again, and the old yes under its id.
    let (second, id) = waiting(&helper, "restart");
    decide(&helper, &id, &approved);
    assert_refused(second, "digest of something else");
}

#[test]
fn another_catalogue_voids_what_waits() {
    let helper = helper();
    let (connection, id) = waiting(&helper, "restart");
    let approved = yes(&helper, &id);
    helper.signal(Signal::HUP);
    processes::wait_until("the catalogue is loaded again", SOON, || {
        helper.audit().iter().any(|record| record["kind"] == "reloaded")
    });
    decide(&helper, &id, &approved);
    assert_refused(connection, "another catalogue");
}

#[test]
fn nobody_there_is_a_no_and_a_call_that_is_given_up_waits_no_longer() {
    let helper = helper();
    let (connection, _) = waiting(&helper, "impatient");
    assert_refused(connection, "nobody has decided in time");
    let (connection, id) = waiting(&helper, "restart");
    drop(connection);
    processes::wait_until("it waits no longer", SOON, || {
        !pending(&helper).join(format!("{id}.json")).exists()
    });
    let reasons: Vec<Value> = helper.audit().iter().map(|record| record["reason"].clone()).collect();
    assert!(reasons.contains(&json!("the call was given up while it waited")), "{reasons:?}");
}

#[test]
fn a_token_that_is_revoked_while_its_call_waits_runs_nothing() {
    let helper = helper();
    let (mut connection, id) = waiting(&helper, "restart");
    let tokens = helper.scene.state().join("tokens.json");
    fs::write(&tokens, "{}").expect("writing tokens.json");
    decide(&helper, &id, &yes(&helper, &id));
    let finished = connection.finish();
    assert!(matches!(finished.refused(), Some((RefusalCode::Scope, _))), "{finished:?}");
}

#[test]
fn calls_that_wait_take_no_slot_of_the_runs_and_are_bounded() {
    let helper = helper();
    let waiting: Vec<_> = (0..8).map(|_| waiting(&helper, "restart")).collect();
    // As many as the action has runs at once.
    let mut more = helper.connect();
    more.send(&Request::Run(Box::new(helper.call("restart", &[]))));
    assert!(matches!(more.receive(), Some((Event::Busy, _))));
    assert_eq!(helper.run(helper.call("hello", &[])).outcome(), Some(&Outcome::Exited(0)));
    assert!(fake_daemon::connects(&helper.socket(), helper.scene.daemon.number));
    drop(waiting);
}

#[test]
fn people_decide_at_the_command_line_and_the_client_is_told() {
    let scene = Scene::new();
    let restart = scene.probing("restart", &["print", "restarted"]).with(json!({"approval": "required"}));
    let pair = scene.pair(&[restart]);
    let gloveport = |words: &[&str]| -> Output {
        let mut command = Command::new(programs::built("gloveport"));
        command.args(words).arg("--state").arg(&pair.state).output().expect("running gloveport")
    };
    let listed = || -> Vec<Value> {
        serde_json::from_slice(&gloveport(&["pending", "--json"]).stdout).expect("a list")
    };
    for (words, expected) in
        [(vec!["approve"], "restarted"), (vec!["deny", "--reason", "not today"], "not today")]
    {
        let (result, id) = std::thread::scope(|scope| {
            let call = scope.spawn(|| pair.call("restart", json!({})));
            let mut id = String::new();
            processes::wait_until("the call waits", SOON, || {
                id = listed().first().and_then(|call| call["id"].as_str()).unwrap_or_default().to_owned();
                !id.is_empty()
            });
            let words: Vec<&str> = words.iter().copied().chain([id.as_str()]).collect();
            let said = gloveport(&words);
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
            (call.join().expect("the call"), id)
        });
        assert!(result.text().contains(expected), "{}", result.text());
        // It is over: there is nothing left to decide.
        assert_eq!(gloveport(&["approve", &id]).status.code(), Some(1));
    }
    assert!(listed().is_empty());
}
