//! The attack book (docs/attack-book.md), under its own headings: what other suites do not try already.
//!
//! Each test shows both halves: what is refused, and that the same thing works where it may.

mod argv_env_paths;
mod book;
mod files_cwd;
mod identity;
mod resources;
mod sandbox_escapes;
mod socket_and_protocol;

use gloveport_contract::catalog::Catalog;
use gloveport_contract::packet::{Event, Outcome, RefusalCode, Request};
use gloveport_tests::{Finished, Helper};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// What the probe prints when it is run outside of any sandbox, by root.
fn outside(helper: &Helper, words: &[&str]) -> String {
    let output = Command::new(helper.scene.probe()).args(words).stdin(Stdio::null()).output();
    String::from_utf8_lossy(&output.expect("starting the probe").stdout).trim().to_owned()
}

/// What an action without parameters prints.
fn printed(helper: &Helper, action: &str) -> String {
    let finished = helper.run(helper.call(action, &[]));
    assert!(finished.outcome().is_some(), "{action}: {finished:?}");
    finished.stdout.trim().to_owned()
}

/// What a program was given, of an action that runs the probe's `state`.
fn state(helper: &Helper, action: &str) -> Value {
    let text = printed(helper, action);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

/// That an action cannot run on this host, for this reason.
fn assert_unsupported(helper: &Helper, action: &str, reason: &str) {
    let finished = helper.run(helper.call(action, &[]));
    assert!(!finished.ran(), "{action}: {finished:?}");
    let (code, detail) = finished.refused().unwrap_or_else(|| panic!("{action}: {finished:?}"));
    assert_eq!(code, RefusalCode::Unsupported, "{action}: {detail}");
    assert!(detail.contains(reason), "{action}: {detail}");
}

/// That a program ended by itself, successfully.
fn assert_ran(finished: &Finished) {
    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
}

/// Whether a call of an action that prints `hello` is answered with that; a helper that has no slot free, or
/// cannot accept, does not.
fn serves(helper: &Helper) -> bool {
    let call = Request::Run(Box::new(helper.call("hello", &[]))).encode().expect("a packet");
    let mut connection = helper.connect();
    connection.send_bytes(&call).is_ok() && connection.finish().stdout == "hello\n"
}

/// What ended a step beside itself.
fn killed_by(finished: &Finished) -> Option<&str> {
    finished.events.iter().find_map(|event| match event {
        Event::StepEnded { killed_by, .. } => killed_by.as_deref(),
        _ => None,
    })
}

/// What keeps an action from being part of any catalogue.
fn mistake(action: Value) -> Option<String> {
    let catalog = json!({"format": 1, "actions": [action]});
    match serde_json::from_value::<Catalog>(catalog) {
        Ok(catalog) => catalog.check().err().map(|problem| problem.to_string()),
        Err(error) => Some(error.to_string()),
    }
}
