//! What a client sees of a call that waits for a person, and that nothing it answers is an approval.

use super::SOON;
use gloveport_tests::{Pair, Scene, clients, processes};
use serde_json::{Value, json};
use std::process::Command;

/// A pair whose action `restart` needs an approval.
pub fn pair() -> Pair {
    let scene = Scene::new();
    let restart = scene.probing("restart", &["print", "restarted"]).with(json!({"approval": "required"}));
    scene.pair(&[restart])
}

/// The calls that wait.
pub fn listed(pair: &Pair) -> Vec<Value> {
    let output = pair.gloveport(&["pending", "--json"]);
    serde_json::from_slice(&output.stdout).expect("a list")
}

/// The id of the one call that waits.
pub fn waiting(pair: &Pair) -> String {
    let mut id = String::new();
    processes::wait_until("a call waits", SOON, || {
        id = listed(pair).first().and_then(|call| call["id"].as_str()).unwrap_or_default().to_owned();
        !id.is_empty()
    });
    id
}

/// Runs a client that calls `restart` and answers what it is asked; meanwhile `meanwhile` happens at the host.
fn call(pair: &Pair, client: Command, words: &[&str], meanwhile: impl FnOnce()) -> Value {
    let words = [&["restart"], words].concat();
    std::thread::scope(|scope| {
        let said = scope.spawn(|| clients::run(client, &pair.endpoint, &words));
        meanwhile();
        said.join().expect("the client")
    })
}

fn accepted(pair: &Pair) -> usize {
    let output = pair.gloveport(&["audit", "tail", "--json", "-n", "100"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.contains(r#""kind":"accepted""#)).count()
}

#[track_caller]
fn assert_asked(pair: &Pair, said: &Value) {
    let question = said["asked"][0].as_str().unwrap_or_default();
    for part in ["restart", "gloveport approve", &pair.scene.probe(), "\"restarted\"", "approves nothing"] {
        assert!(question.contains(part), "{part}: {said:#}");
    }
    assert_eq!(said["asked"].as_array().map(Vec::len), Some(1), "{said:#}");
}

/// The three generations: each client says yes to what it is asked, and still waits for the host.
fn says_yes_and_still_waits(client: impl Fn() -> Command, words: &[&str]) {
    let pair = pair();
    let words = [&["accept"], words].concat();
    let mut id = String::new();
    let said = call(&pair, client(), &words, || {
        id = waiting(&pair);
        // Its answer has come by now, and time for it to count for something.
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert_eq!((listed(&pair).len(), accepted(&pair)), (1, 0), "an answer of the client was an approval");
        assert!(pair.gloveport(&["approve", &id]).status.success());
    });
    assert_asked(&pair, &said);
    assert!(
        said["error"] == false && said["text"].as_str().is_some_and(|text| text.contains("restarted")),
        "{said:#}"
    );
    let told = said["progress"][0].as_str().unwrap_or_default();
    assert!(
        told.starts_with("waiting for approval at the host") && told.contains(&format!("approve {id}")),
        "{said:#}"
    );
    assert_eq!(accepted(&pair), 1);
}

#[test]
fn a_modern_client_is_asked_before_its_call_waits_and_cannot_approve() {
    says_yes_and_still_waits(|| clients::python("mcp", "python_sdk_approval.py"), &["2026-07-28"]);
}

#[test]
fn a_client_with_a_session_is_asked_while_its_call_waits_and_cannot_approve() {
    says_yes_and_still_waits(|| clients::python("mcp", "python_sdk_approval.py"), &["legacy"]);
    says_yes_and_still_waits(|| clients::python("mcp-legacy", "python_sdk_legacy_approval.py"), &[]);
}

#[test]
fn a_client_whose_user_declines_withdraws_its_call_and_nobody_is_asked_any_more() {
    for (library, script, mode) in [
        ("mcp", "python_sdk_approval.py", Some("2026-07-28")),
        ("mcp", "python_sdk_approval.py", Some("legacy")),
        ("mcp-legacy", "python_sdk_legacy_approval.py", None),
    ] {
        let pair = pair();
        let words: Vec<&str> = ["decline"].into_iter().chain(mode).collect();
        let said = call(&pair, clients::python(library, script), &words, || {});
        assert_asked(&pair, &said);
        assert_eq!(said["error"], true, "{said:#}");
        let text = said["text"].as_str().unwrap_or_default();
        assert!(
            text.contains("withdrawn at the client") || text.contains("the client's user ended"),
            "{said:#}"
        );
        assert_eq!((listed(&pair).len(), accepted(&pair)), (0, 0));
    }
}

#[test]
fn a_client_that_shows_no_forms_is_told_by_progress_alone() {
    let pair = pair();
    let said = std::thread::scope(|scope| {
        let client = clients::python("mcp", "python_sdk_http.py");
        let said = scope.spawn(|| clients::run(client, &pair.endpoint, &["restart", "{}"]));
        assert!(pair.gloveport(&["approve", &waiting(&pair)]).status.success());
        said.join().expect("the client")
    });
    assert_eq!(said["structured"]["steps"][0]["stdout"], "restarted\n", "{said:#}");
    assert!(said["progress"].as_array().is_some_and(|seen| seen.len() >= 2), "{said:#}");
}
