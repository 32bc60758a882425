//! Unmodified clients: progress, a tool that does not exist, and a call that is given up. (That they list, call
//! and are refused with a wrong token, the suite `real_clients` shows; UFO has a suite of its own.)

use super::pair;
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{clients, processes, programs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Progress of three steps, the error of an unknown tool, and the end of a tree whose call was given up.
fn goes_the_whole_way(client: impl Fn() -> Command, mode: &[&str]) {
    let pair = pair();
    let said = clients::run(client(), &pair.endpoint, &[&["steps", "{}"], mode].concat());
    assert_eq!(said["structured"]["success"], true, "{said:#}");
    let progress: Vec<f64> =
        said["progress"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    assert!(progress.len() >= 3 && progress.windows(2).all(|pair| pair[0] < pair[1]), "{said:#}");
    assert!(said["unknown"].as_str().is_some_and(|error| error.contains("Unknown tool")), "{said:#}");

    let tree = json!({"params": {"words": ["daemon", "20000"]}}).to_string();
    let said = clients::run(client(), &pair.endpoint, &[&["probe", &tree], mode, &["1"]].concat());
    assert_eq!(said["cancelled"], true, "{said:#}");
    assert_eq!(said["tools"], json!(["fail", "late", "missing", "probe", "run_batch", "steps"]));
    processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(1));
}

#[test]
fn fastmcp() {
    goes_the_whole_way(|| clients::python("fastmcp", "fastmcp_http.py"), &[]);
}

#[test]
fn fastmcp_as_ufo_pins_it() {
    goes_the_whole_way(|| clients::python("fastmcp-ufo", "fastmcp_http.py"), &[]);
}

#[test]
fn the_official_python_sdk() {
    goes_the_whole_way(|| clients::python("mcp", "python_sdk_http.py"), &["auto"]);
}

#[test]
fn the_official_python_sdk_in_the_legacy_era() {
    goes_the_whole_way(|| clients::python("mcp", "python_sdk_http.py"), &["legacy"]);
}

#[test]
fn the_official_python_sdk_of_the_first_generation() {
    goes_the_whole_way(|| clients::python("mcp-legacy", "python_sdk_legacy_http.py"), &[]);
}

#[test]
fn the_typescript_sdk_of_the_first_generation() {
    goes_the_whole_way(|| clients::node("typescript_sdk_v1.mjs"), &[]);
}

#[test]
fn the_typescript_sdk() {
    goes_the_whole_way(|| clients::node("typescript_sdk_v2.mjs"), &["auto"]);
}

#[test]
fn the_typescript_sdk_in_the_legacy_era() {
    goes_the_whole_way(|| clients::node("typescript_sdk_v2.mjs"), &["legacy"]);
}

/// The inspector's command line.
fn inspector(endpoint: &Endpoint, words: &[&str]) -> Command {
    let place = programs::target().join("clients/node/node_modules/.bin");
    let mut command = Command::new(place.join("node"));
    command.arg(place.join("mcp-inspector")).arg("--cli").arg(endpoint.url()).args(["--transport", "http"]);
    if let Some(token) = &endpoint.token {
        command.arg("--header").arg(format!("Authorization: Bearer {token}"));
    }
    command.args(words).stdin(Stdio::null());
    command
}

fn inspect(endpoint: &Endpoint, words: &[&str]) -> Output {
    inspector(endpoint, words).output().expect("starting the inspector")
}

fn document(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}{output:?}"))
}

#[test]
fn the_inspector_s_command_line_in_both_eras() {
    let pair = pair();
    for era in ["legacy", "modern"] {
        let ask = |words: &[&str]| inspect(&pair, &[words, &["--protocol-era", era]].concat());
        let listed = document(&ask(&["--method", "tools/list"]));
        let names: Vec<&str> = listed["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names, ["fail", "late", "missing", "probe", "run_batch", "steps"], "{era}");
        let called = document(&ask(&["--method", "tools/call", "--tool-name", "fail"]));
        assert_eq!(called["structuredContent"]["exit_code"], 3, "{era}: {called:#}");
        let unknown = ask(&["--method", "tools/call", "--tool-name", "nope"]);
        assert!(!unknown.status.success(), "{era}: {unknown:?}");
    }
    let stranger = pair.with_token("gp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let refused = inspect(&stranger, &["--method", "tools/list"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("auth"), "{refused:?}");
}

#[test]
fn the_inspector_s_command_line_asks_for_progress_and_gives_up_when_it_is_interrupted() {
    let pair = pair();
    let tree = json!({"params": {"words": ["daemon", "20000"]}}).to_string();
    for era in ["legacy", "modern"] {
        // It prints no progress; that the answer comes in a stream with progress before it does no harm.
        let call = ["--method", "tools/call", "--protocol-era", era];
        let steps = ["--tool-name", "steps", "--tool-metadata", "progressToken=7"];
        let called = document(&inspect(&pair, &[&call[..], &steps].concat()));
        assert_eq!(called["structuredContent"]["success"], true, "{era}: {called:#}");

        // It has no way to cancel but Ctrl-C.
        let probe = ["--tool-name", "probe", "--tool-args-json", &tree];
        let mut waiting = inspector(&pair, &[&call[..], &probe].concat());
        let mut waiting = waiting.stdout(Stdio::null()).spawn().expect("starting the inspector");
        processes::wait_until("the call runs", Duration::from_secs(30), || {
            processes::of(pair.scene.run.number).len() >= 2
        });
        kill_process(Pid::from_child(&waiting), Signal::INT).expect("Ctrl-C");
        waiting.wait().expect("waiting for the inspector");
        processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(1));
    }
}
