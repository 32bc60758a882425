//! The real MCP clients that `packaging/prerequisites.sh test` has prepared.

use crate::mcp::Endpoint;
use crate::programs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A Python with the client library of `tests/clients/requirements-NAME.txt`.
///
/// # Panics
/// Where it is not prepared.
pub fn python(name: &str) -> Command {
    let python = programs::target().join("clients").join(name).join("bin/python");
    assert!(python.exists(), "{} is missing; packaging/prerequisites.sh test makes it", python.display());
    Command::new(python)
}

/// A script of `tests/clients`.
pub fn script(name: &str) -> PathBuf {
    programs::repository().join("tests/clients").join(name)
}

/// Runs a client's script with the endpoint's URL and token, and further words; what it printed.
///
/// # Panics
/// With what it complained, where it fails.
pub fn run(library: &str, name: &str, endpoint: &Endpoint, words: &[&str]) -> String {
    let output = try_run(library, name, endpoint, words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{name} with {library}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// The same, where it may fail.
pub fn try_run(library: &str, name: &str, endpoint: &Endpoint, words: &[&str]) -> Output {
    python(library)
        .arg(script(name))
        .arg(endpoint.url())
        .arg(endpoint.token.as_deref().unwrap_or("-"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("starting a client")
}
