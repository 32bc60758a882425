//! The protocol on the real pair: as raw bytes, as both of its eras, and as unmodified clients speak it.

mod batch;
mod clients;
mod flight;
mod form;
mod legacy;
mod load;
mod loopback;
mod modern;
mod schema;
mod subscriptions;
mod tools;
mod wire;

use gloveport_tests::{Pair, Scene, programs};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// A pair with a tool for each way a call can go.
fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let step = |name: &str| json!({"name": name, "exec": [probe, "print", name]});
    let actions = [
        scene.any_probe(),
        scene.probing("fail", &["exit", "3"]),
        scene.exec("missing", &["/nonexistent/program"]),
        scene.action("steps", json!({"steps": [step("one"), step("two"), step("three")]})),
        scene.probing("late", &["print-sleep", "20000", "so far"]).with(json!({"timeout": "500ms"})),
    ];
    scene.pair(&actions)
}

/// Makes a further token as an operator does; what `gloveport token add --json` printed.
fn add_token(pair: &Pair, name: &str, words: &[&str]) -> Value {
    let mut command = Command::new(programs::built("gloveport"));
    command.args(["token", "add", "--json", "--name", name]).args(words);
    let output = with_state(pair, command).output().expect("starting gloveport");
    assert!(output.status.success(), "token add: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

/// Ends a token.
fn revoke_token(pair: &Pair, name: &str) {
    let mut command = Command::new(programs::built("gloveport"));
    command.args(["token", "revoke", name]);
    let output = with_state(pair, command).output().expect("starting gloveport");
    assert!(output.status.success(), "token revoke: {}", String::from_utf8_lossy(&output.stderr));
}

fn with_state(pair: &Pair, mut command: Command) -> Command {
    command.arg("--state").arg(&pair.state).stdin(Stdio::null());
    command
}
