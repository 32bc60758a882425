//! The real MCP clients that `packaging/prerequisites.sh test` has prepared.

use crate::mcp::Endpoint;
use crate::programs;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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
pub fn try_run(mut client: Command, endpoint: &Endpoint, words: &[&str]) -> Output {
    client
        .arg(endpoint.url())
        .arg(endpoint.token.as_deref().unwrap_or("-"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("starting a client")
}
