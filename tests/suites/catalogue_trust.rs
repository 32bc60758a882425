//! A catalogue that was changed, signed by a stranger or for something else runs nothing, and each call says so.

use gloveport_contract::packet::{Event, RefusalCode, Request};
use gloveport_tests::helper::{Helper, Preparation};
use gloveport_tests::signing::{self, Key};
use gloveport_tests::{Scene, processes};
use serde_json::json;
use std::fs;
use std::time::Duration;

fn prepared() -> Preparation {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let preparation = scene.prepare(&[hello]);
    preparation.write();
    preparation
}

/// Each call is refused with the reason, by the helper as by the daemon.
fn assert_runs_nothing(helper: &Helper, reason: &str) {
    let mut connection = helper.connect();
    connection.send(&Request::Status { page: 0 });
    let Some((Event::StatusReply { digest, reason: told, .. }, _)) = connection.receive() else {
        panic!("no status")
    };
    assert_eq!(digest, None);
    let told = told.expect("the reason");
    assert!(told.contains(reason), "{told}");

    for _ in 0..2 {
        let finished = helper.run(helper.call("hello", &[]));
        let (code, detail) = finished.refused().expect("a refusal");
        assert_eq!(code, RefusalCode::NoCatalog);
        assert!(detail.contains(reason), "{detail}");
        assert!(!finished.ran());
    }
    // A client of the daemon learns it, on every call.
    let daemon = helper.daemon();
    for _ in 0..2 {
        let answer = daemon.ask("tools/call", json!({"name": "hello", "arguments": {}})).to_string();
        assert!(answer.contains(reason), "{answer}");
    }
}

#[test]
fn changed_by_one_byte() {
    let preparation = prepared();
    let file = preparation.catalog_file();
    let text = fs::read_to_string(&file).expect("the catalogue");
    fs::write(&file, text.replace("An action of a test.", "An action of a tesT.")).expect("writing");
    assert_runs_nothing(&preparation.start_as_it_is(), "signature");
}

#[test]
fn signed_by_an_unknown_key() {
    let preparation = prepared();
    let stranger = Key::make(&preparation.scene.root, "strangers-key");
    stranger.sign(signing::NAMESPACE, &preparation.catalog_file());
    assert_runs_nothing(&preparation.start_as_it_is(), "trusted_signers");
}

#[test]
fn signed_for_another_namespace() {
    let preparation = prepared();
    preparation.key.sign("file", &preparation.catalog_file());
    assert_runs_nothing(&preparation.start_as_it_is(), "another purpose");
}

#[test]
fn without_a_signature() {
    let preparation = prepared();
    fs::remove_file(preparation.scene.state().join("catalog.json.sig")).expect("removing");
    assert_runs_nothing(&preparation.start_as_it_is(), "catalog.json.sig");
}

#[test]
fn a_fresh_host_without_any_catalogue_runs_nothing() {
    let preparation = prepared();
    fs::remove_file(preparation.catalog_file()).expect("removing");
    assert_runs_nothing(&preparation.start_as_it_is(), "catalog");
}

#[test]
fn a_broken_reload_keeps_the_catalogue_that_was_in_force() {
    let preparation = prepared();
    let file = preparation.catalog_file();
    let helper = preparation.start_as_it_is();
    let text = fs::read_to_string(&file).expect("the catalogue");
    fs::write(&file, text.replace("hello", "howdy")).expect("writing");
    helper.signal(rustix::process::Signal::HUP);

    processes::wait_until("the reload is refused", Duration::from_secs(10), || {
        let mut connection = helper.connect();
        connection.send(&Request::Status { page: 0 });
        let Some((Event::StatusReply { digest, reason, .. }, _)) = connection.receive() else {
            return false;
        };
        digest == Some(helper.digest) && reason.is_some_and(|reason| reason.contains("signature"))
    });
    assert_eq!(helper.run(helper.call("hello", &[])).stdout, "hello\n");
}
