//! The real MCP clients that `packaging/prerequisites.sh test` has prepared.

use crate::mcp::Endpoint;
use crate::programs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Much longer than any client needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A script of `tests/clients` and a Python with the library of `tests/clients/requirements-LIBRARY.txt`.
///
/// # Panics
/// Where it is not prepared.
pub fn python(library: &str, name: &str) -> Command {
    let python = programs::target().join("clients").join(library).join("bin/python");
    assert!(python.exists(), "{} is missing; packaging/prerequisites.sh test makes it", python.display());
    let mut command = Command::new(python);
    command.arg(script(name));
    command
}

/// The path of a script of `tests/clients`.
fn script(name: &str) -> PathBuf {
    programs::repository().join("tests/clients").join(name)
}

/// The Node of `tests/clients/package.json`, running one of the scripts among its modules.
///
/// # Panics
/// Where it is not prepared.
pub fn node(name: &str) -> Command {
    let place = programs::target().join("clients/node");
    let modules = place.join("node_modules");
    assert!(modules.exists(), "{} is missing; packaging/prerequisites.sh test makes it", modules.display());
    let mut command = Command::new(modules.join(".bin/node"));
    // Node looks for modules beside the script; `scripts` is a link to tests/clients.
    command.args(["--preserve-symlinks", "--preserve-symlinks-main"]).arg(place.join("scripts").join(name));
    command
}

/// Runs a client with the endpoint's URL and token, and further words; the JSON that it printed.
///
/// # Panics
/// With what it complained, where it fails.
pub fn run(client: Command, endpoint: &Endpoint, words: &[&str]) -> Value {
    let output = try_run(client, endpoint, words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "the client ended with {}:\n{printed}{complained}", output.status);
    serde_json::from_str(&printed).unwrap_or_else(|_| panic!("not JSON: {printed}{complained}"))
}

/// The same, where it may fail.
///
/// # Panics
/// Where it does not end.
pub fn try_run(mut client: Command, endpoint: &Endpoint, words: &[&str]) -> Output {
    let child = client
        .arg(endpoint.url())
        .arg(endpoint.token.as_deref().unwrap_or("-"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starting a client");
    let pid = Pid::from_child(&child);
    let (done, waiting) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let in_time = waiting.recv_timeout(PATIENCE) != Err(mpsc::RecvTimeoutError::Timeout);
        if !in_time {
            let _ = kill_process(pid, Signal::KILL);
        }
        in_time
    });
    let output = child.wait_with_output().expect("waiting for a client");
    drop(done);
    let in_time = watch.join().expect("the thread that watches");
    assert!(in_time, "the client did not end: {}", String::from_utf8_lossy(&output.stderr));
    output
}
