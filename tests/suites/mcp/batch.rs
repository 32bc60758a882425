//! `run_batch`: several commands in one submission, as UFO's dispatcher sends them.

use super::pair;
use gloveport_tests::{Pair, processes};
use serde_json::{Value, json};
use std::time::Duration;

fn print(word: &str, id: &str) -> Value {
    json!({"tool_name": "probe", "parameters": {"params": {"words": ["print", word]}}, "tool_type": "action",
        "call_id": id})
}

fn run(pair: &Pair, arguments: Value) -> Vec<Value> {
    let result = pair.call("run_batch", arguments);
    assert!(!result.is_error(), "{:#}", result.0);
    result.structured()["results"].as_array().cloned().expect("results")
}

fn statuses(results: &[Value]) -> Vec<&str> {
    results.iter().filter_map(|result| result["status"].as_str()).collect()
}

#[test]
fn results_come_in_order_with_their_ids_and_an_exit_code_is_an_answer() {
    let pair = pair();
    let commands = json!([
        print("first", "a"),
        {"tool_name": "fail", "parameters": null, "call_id": "b"},
        {"tool_name": "missing", "call_id": "c"},
        {"tool_name": "nope", "call_id": "d"},
        {"tool_name": "run_batch", "parameters": {"commands": []}},
        {"tool_name": "late"},
        print("last", "g"),
    ]);
    let results = run(&pair, json!({"commands": commands}));
    assert_eq!(
        statuses(&results),
        ["success", "success", "failure", "failure", "failure", "failure", "success"],
        "{results:#?}"
    );
    let ids: Vec<&Value> = results.iter().map(|result| &result["call_id"]).collect();
    assert_eq!(json!(ids), json!(["a", "b", "c", "d", null, null, "g"]));
    assert_eq!(results[0]["result"]["steps"][0]["stdout"], "first\n");
    assert_eq!(results[1]["result"]["exit_code"], 3);
    assert_eq!(results[1]["error"], Value::Null);
    for (at, told) in [(2, "/nonexistent/program"), (3, "Unknown tool"), (4, "batch"), (5, "Timeout")] {
        assert!(results[at]["error"].as_str().is_some_and(|error| error.contains(told)), "{:#}", results[at]);
    }
}

#[test]
fn the_rest_is_skipped_after_a_failure_where_that_is_asked_for() {
    let pair = pair();
    let commands = json!([print("one", "1"), {"tool_name": "missing"}, print("three", "3")]);
    let results = run(&pair, json!({"commands": commands, "stop_on_failure": true}));
    assert_eq!(statuses(&results), ["success", "failure", "skipped"], "{results:#?}");
    assert_eq!(results[2]["call_id"], "3");
    let results = run(&pair, json!({"commands": commands, "stop_on_failure": false}));
    assert_eq!(statuses(&results), ["success", "failure", "success"], "{results:#?}");
}

#[test]
fn each_command_is_under_its_own_scope_and_in_the_audit_chain() {
    let pair = pair();
    let added = pair.add_token("narrow", &["--allow", "run_batch", "--allow", "fail"]);
    let narrow = pair.with_token(added["token"].as_str().expect("a token"));
    let commands = json!([{"tool_name": "fail"}, print("x", "2")]);
    let result = narrow.call("run_batch", json!({"commands": commands}));
    let results = result.structured()["results"].as_array().cloned().expect("results");
    assert_eq!(statuses(&results), ["success", "failure"], "{results:#?}");

    let of = |kind: &str, action: &str| {
        let chain = std::fs::read_to_string(pair.state.join("audit.jsonl")).expect("an audit chain");
        let records = chain.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.filter(|record| record["kind"] == kind && record["action"] == action).count()
    };
    assert_eq!((of("accepted", "fail"), of("ended", "fail")), (1, 1));
    assert_eq!(of("accepted", "probe"), 0);
    // What the daemon refuses itself is recorded beside the answer, not before it.
    processes::wait_until("the refusal is recorded", Duration::from_secs(5), || of("noted", "probe") == 1);
}

#[test]
fn a_batch_ends_with_its_stream() {
    let pair = pair();
    let sleep = json!({"tool_name": "probe", "parameters": {"params": {"words": ["sleep", "20000"]}}});
    let batch = pair.begin("run_batch", json!({"commands": [sleep, sleep]}));
    let user = pair.scene.run.number;
    processes::wait_until("the first runs", Duration::from_secs(10), || !processes::of(user).is_empty());
    drop(batch);
    processes::wait_until_gone(user, Duration::from_secs(1));
    // The second must not begin in the place of the first.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(processes::of(user), []);
}

#[test]
fn what_is_no_batch_is_an_error_that_says_how_to_call() {
    let pair = pair();
    let too_many: Vec<Value> = (0..65).map(|_| json!({"tool_name": "fail"})).collect();
    for arguments in
        [json!({}), json!({"commands": []}), json!({"commands": [5]}), json!({"commands": too_many})]
    {
        let result = pair.call("run_batch", arguments);
        assert!(result.is_error() && result.text().contains("Call `run_batch` with"), "{:#}", result.0);
    }
}
