//! A yes is bound to what runs: given about anything else it counts for nothing. That each part of a call is in
//! the digest, one by one, is shown beside it (`helper/src/supervisor/approval.rs`).

use super::{SOON, assert_refused, decide, pending, shown, yes};
use gloveport_contract::packet::{Argument, Content, Event, Outcome, Request, Run, Value};
use gloveport_contract::plan;
use gloveport_tests::action::Action;
use gloveport_tests::{Connection, Helper, Scene, processes};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;

const HELD: &str = "required";

/// What an honest daemon sends for a call with content.
fn with_content(helper: &Helper, action: &str, args: &[(&str, Value)], bytes: &[u8]) -> Run {
    let args: Vec<Argument> =
        args.iter().map(|(name, value)| Argument { name: (*name).into(), value: value.clone() }).collect();
    let content = Content { length: bytes.len() as u64, sha256: hmac_sha256::Hash::hash(bytes) };
    let declared = helper.catalog.action(action).expect("an action of the catalogue");
    let plan = plan::plan(declared, &args, Some(&content)).expect("a call that the catalogue allows");
    let argv = plan.steps.iter().map(|step| step.argv.clone()).collect();
    Run {
        content: Some(content),
        argv,
        args: args.clone(),
        action: action.into(),
        ..helper.call("hello", &[])
    }
}

/// Sends a call that waits; its connection and its id.
fn begun(helper: &Helper, run: Run) -> (Connection, String) {
    let mut connection = helper.connect();
    connection.send(&Request::Run(Box::new(run)));
    match connection.receive() {
        Some((Event::AwaitingApproval { id, .. }, _)) => (connection, id),
        other => panic!("it does not wait: {other:?}"),
    }
}

/// Writes files below a place, once somebody has said yes.
fn held_write(scene: &Scene, place: &str) -> Action {
    scene.action(
        "write",
        json!({
            "risk": "write", "approval": HELD, "builtin": "write_file",
            "builtin_config": {"write": [format!("{place}/**")]},
            "params": {
                "path": {"type": "path", "roots": [place]},
                "content": {"type": "content", "max_length": 1000},
            },
        }),
    )
}

#[test]
fn a_yes_for_another_action_argument_content_or_script_is_void() {
    let scene = Scene::new();
    let place = scene.own_directory("place");
    let interpreter = "/bin/sh";
    let script = |name: &str, body: &str| {
        let sha256 = gloveport_contract::catalog::hex(&hmac_sha256::Hash::hash(body.as_bytes()));
        let script = json!({"file": "s.sh", "interpreter": interpreter, "body": body, "sha256": sha256});
        scene.action(name, json!({"script": script, "allow_interpreter": true, "approval": HELD}))
    };
    let say = |name: &str| {
        scene.probing(name, &["print", "{word}"]).with(json!({
            "params": {"word": {"type": "string"}}, "approval": HELD,
        }))
    };
    let write = held_write(&scene, &place);
    let actions = [
        scene.probing("hello", &["print", "hello"]),
        say("say"),
        say("say_again"),
        write,
        script("one_script", "echo one\n"),
        script("other_script", "echo two\n"),
    ];
    let helper = scene.helper(&actions);
    let word = |word: &str| vec![("word", Value::Text(word.into()))];
    let path = || vec![("path", Value::Text(format!("{place}/file").into_bytes()))];
    let calls: [(&str, Run, Run); 4] = [
        ("action", helper.call("say", &word("a")), helper.call("say_again", &word("a"))),
        ("argument", helper.call("say", &word("a")), helper.call("say", &word("b"))),
        (
            "content",
            with_content(&helper, "write", &path(), b"one"),
            with_content(&helper, "write", &path(), b"two"),
        ),
        ("script", helper.call("one_script", &[]), helper.call("other_script", &[])),
    ];
    for (part, seen, sent) in calls {
        let (first, id) = begun(&helper, seen);
        let approved = yes(&helper, &id);
        let (second, other) = begun(&helper, sent);
        assert_ne!(approved["digest"], shown(&helper, &other)["digest"], "{part}");
        decide(&helper, &other, &approved);
        assert_refused(second, "digest of something else");
        drop(first);
        processes::wait_until("nothing waits", SOON, || {
            fs::read_dir(pending(&helper)).expect("pending").next().is_none()
        });
    }
    assert!(!fs::exists(format!("{place}/file")).expect("looking"));
}

#[test]
fn content_that_is_not_what_was_approved_is_not_written() {
    let scene = Scene::new();
    let place = scene.own_directory("place");
    let file = format!("{place}/file");
    let write = held_write(&scene, &place);
    let hello = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[hello, write]);
    let approved = b"approved text";
    // The same length, another text; less of it; the text itself.
    for (sent, is_written) in [(&b"another text!"[..], false), (b"approved", false), (approved, true)] {
        let args = [("path", Value::Text(file.clone().into_bytes()))];
        let (mut connection, id) = begun(&helper, with_content(&helper, "write", &args, approved));
        let content = shown(&helper, &id)["content"].clone();
        assert_eq!(content["length"], approved.len(), "{content}");
        decide(&helper, &id, &yes(&helper, &id));
        // Its output is held, and not read: it has to have somewhere to go.
        let mut pipes = loop {
            match connection.receive() {
                Some((Event::StepStarted { .. }, descriptors)) => break descriptors,
                Some(_) => {}
                None => panic!("it did not start"),
            }
        };
        File::from(pipes.remove(2)).write_all(sent).expect("writing the content");
        let finished = connection.finish();
        let exited = |code| {
            let is_it = |event: &Event| matches!(event, Event::StepEnded { outcome: Outcome::Exited(exit), .. } if *exit == code);
            finished.events.iter().any(is_it)
        };
        assert!(if is_written { exited(0) } else { exited(1) }, "{finished:?}");
        assert_eq!(fs::read(&file).ok().as_deref(), is_written.then_some(&approved[..]));
    }
}
