//! The official conformance suite of the protocol, for both eras, through a capability path (it can send no
//! header). The tools it asks for are real actions as far as an action can be one; what a server of tools
//! alone does not have is in `tests/clients/conformance-REVISION.yml`, with a reason for each line.

use gloveport_tests::{Pair, Scene, programs};
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The suite's fixture tools.
fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let step = |word: &str| json!({"name": word, "exec": [probe, "print", word]});
    let actions = [
        scene.probing("test_simple_text", &["print", "This is a simple text response for testing."]),
        scene.exec("test_error_handling", &["/nonexistent/program"]),
        scene.action("test_tool_with_progress", json!({"steps": [step("one"), step("two"), step("three")]})),
        scene.probing("test_trigger_tool_change", &["print", "an operator adds a token"]),
    ];
    scene.pair(&actions)
}

/// The operator, who changes what may be called whenever the suite asks for a changed list of tools.
fn be_the_operator(pair: &Pair, over: &AtomicBool) {
    let mut answered = 0;
    while !over.load(Ordering::Relaxed) {
        let chain = fs::read_to_string(pair.state.join("audit.jsonl")).unwrap_or_default();
        let begun =
            |line: &&str| line.contains("test_trigger_tool_change") && line.contains(r#""kind":"accepted""#);
        let asked = chain.lines().filter(begun).count();
        while answered < asked {
            answered += 1;
            pair.add_token(&format!("change-{answered}"), &[]);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn conforms(revision: &str) {
    let pair = pair();
    let capability = pair.add_token("conformance", &["--via", "path"]);
    let binaries = programs::target().join("clients/node/node_modules/.bin");
    let known = programs::repository().join(format!("tests/clients/conformance-{revision}.yml"));
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| be_the_operator(&pair, &over));
        let output = Command::new(binaries.join("node"))
            .arg(binaries.join("conformance"))
            .args(["server", "--url", capability["url"].as_str().expect("a URL")])
            .args(["--requirements", revision, "--expected-failures"])
            .arg(known)
            .current_dir(&pair.scene.root)
            .stdin(Stdio::null())
            .output();
        over.store(true, Ordering::Relaxed);
        output.expect("starting the conformance suite")
    });
    let text = String::from_utf8_lossy(&output.stdout);
    let summary = text.split_once("=== SUMMARY ===").map_or(&*text, |(_, summary)| summary);
    eprintln!("{revision}: {summary}");
    assert!(output.status.success(), "{revision}: {summary}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn revision_2025_11_25() {
    conforms("2025-11-25");
}

#[test]
fn revision_2026_07_28() {
    conforms("2026-07-28");
}
