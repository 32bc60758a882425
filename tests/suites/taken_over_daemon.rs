//! What a taken-over daemon cannot do: the sentences of DESIGN.md's trust boundary, one test each.
//!
//! The test has the daemon's user and sends the helper well-formed packets. Malformed ones: `wire`.

use gloveport_contract::catalog::Risk;
use gloveport_contract::packet::{Argument, Event, Outcome, RefusalCode, Request, Run, Value};
use gloveport_tests::helper::{TOKEN, token};
use gloveport_tests::{Helper, Scene, fake_daemon, processes};
use serde_json::json;
use std::os::unix::fs::symlink;

/// A helper with an action of each kind.
fn helper() -> Helper {
    let scene = Scene::new();
    let actions = [
        scene.probing("hello", &["print", "hello"]),
        scene.exec("say", &[&scene.probe(), "print", "{word}"]).with(json!({
            "params": {"word": {"type": "string", "pattern": "[a-z]+"}},
        })),
        scene.probing("change", &["print", "changed"]).with(json!({"risk": "write"})),
        scene.probing("steps", &[]).with(json!({"exec": null, "steps": [
            {"name": "one", "exec": [scene.probe(), "print", "1"]},
            {"name": "two", "exec": [scene.probe(), "print", "2"]},
        ]})),
    ];
    scene.helper(&actions)
}

fn text(value: &str) -> Value {
    Value::from(value)
}

/// The refusal of a call; nothing may have been started.
fn refused(helper: &Helper, run: Run) -> RefusalCode {
    let finished = helper.run(run);
    assert!(!finished.ran(), "{finished:?}");
    assert_eq!(processes::of(helper.scene.run.number), []);
    let (code, detail) = finished.refused().unwrap_or_else(|| panic!("not refused: {finished:?}"));
    assert!(!detail.is_empty(), "a refusal says why");
    let last = helper.audit().pop().expect("a record");
    assert_eq!(last["kind"], "refused", "{last:#}");
    code
}

#[test]
fn an_honest_call_runs_and_ends_with_a_receipt() {
    let helper = helper();
    let finished = helper.run(helper.call("say", &[("word", text("hello"))]));
    assert_eq!(finished.stdout, "hello\n", "{finished:?}");
    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)));
    let Some(Event::Ended { receipt }) = finished.events.last() else { panic!("{finished:?}") };
    let records = helper.audit();
    let record = records.iter().find(|record| record["seq"] == receipt.seq).expect("the record");
    assert_eq!(record["kind"], "ended");
}

#[test]
fn it_cannot_run_what_the_catalogue_does_not_hold() {
    let helper = helper();
    let long = "x".repeat(64 * 1024);
    for name in ["nothing", "../../bin/sh", "/bin/sh", "hello\0", "Hello", "", long.as_str()] {
        let run = Run { action: name.into(), ..helper.call("hello", &[]) };
        assert_eq!(refused(&helper, run), RefusalCode::UnknownAction, "{:?}", name.get(..20));
    }
}

#[test]
fn it_cannot_change_what_was_rendered() {
    let helper = helper();
    let honest = helper.call("say", &[("word", text("hello"))]);
    let argv = honest.argv[0].clone();
    let word = |text: &str| text.as_bytes().to_vec();
    let changed = |at: usize, text: &str| {
        let mut argv = argv.clone();
        argv[at] = word(text);
        vec![argv]
    };
    let longer = vec![[argv.clone(), vec![word("more")]].concat()];
    let attempts = [
        changed(0, "/bin/sh"),
        changed(1, "exec2"),
        changed(2, "bye"),
        longer,
        vec![argv[..2].to_vec()],
        vec![Vec::new()],
        vec![argv.clone(), argv.clone()],
        Vec::new(),
    ];
    for argv in attempts {
        let run = Run { argv, ..honest.clone() };
        assert_eq!(refused(&helper, run.clone()), RefusalCode::Mismatch, "{:?}", run.argv);
    }
    // The order and the number of steps are the action's, too.
    let honest = helper.call("steps", &[]);
    for argv in [honest.argv.iter().rev().cloned().collect(), vec![honest.argv[1].clone()]] {
        assert_eq!(refused(&helper, Run { argv, ..honest.clone() }), RefusalCode::Mismatch);
    }
}

#[test]
fn it_cannot_name_a_user_an_environment_or_a_limit() {
    let helper = helper();
    for name in ["run_as", "uid", "user", "groups", "env", "PATH", "cwd", "timeout", "limits", "sandbox"] {
        let mut run = helper.call("hello", &[]);
        run.args.push(Argument { name: name.into(), value: text("root") });
        assert_eq!(refused(&helper, run), RefusalCode::Argument, "{name}");
    }
    let mut twice = helper.call("say", &[("word", text("hello"))]);
    twice.args.push(Argument { name: "word".into(), value: text("bye") });
    assert_eq!(refused(&helper, twice), RefusalCode::Argument);
}

#[test]
fn it_cannot_pass_a_value_that_the_action_does_not_take() {
    let helper = helper();
    let honest = helper.call("say", &[("word", text("hello"))]);
    let values = [
        text("UPPER"),
        text("-x"),
        text("a\nb"),
        text("a\0b"),
        Value::Text(vec![0xff, 0xfe]),
        Value::Integer(1),
        Value::Null,
        Value::List(Vec::new()),
    ];
    for value in values {
        let mut run =
            Run { args: vec![Argument { name: "word".into(), value: value.clone() }], ..honest.clone() };
        if let Value::Text(bytes) = &value {
            run.argv[0][2].clone_from(bytes);
        }
        assert_eq!(refused(&helper, run), RefusalCode::Argument, "{value:?}");
    }
}

#[test]
fn it_cannot_choose_a_directory_outside_the_action() {
    let scene = Scene::new();
    let inside = scene.own_directory("inside");
    let outside = scene.own_directory("outside");
    symlink(&outside, format!("{inside}/link")).expect("a link");
    let roots = json!([inside]);
    let action = scene.probing("where", &["state"]).with(json!({
        "params": {"cwd": {"type": "path", "roots": roots, "optional": true}},
        "cwd": {"param": "cwd", "roots": roots},
    }));
    let helper = scene.helper(&[action]);
    let there = |path: &str| {
        let mut run = helper.call("where", &[]);
        run.args.push(Argument { name: "cwd".into(), value: text(path) });
        run
    };
    let finished = helper.run(there(&inside));
    assert!(finished.stdout.contains(&format!("\"cwd\": \"{inside}\"")), "{finished:?}");
    let lexical =
        ["/", "/etc", &outside, &format!("{inside}-evil"), &format!("{inside}/../outside"), "inside", "."];
    for path in lexical {
        assert_eq!(refused(&helper, there(path)), RefusalCode::Argument, "{path}");
    }
    // What only the file system shows is found by the child, as the other user, before anything runs.
    for path in [format!("{inside}/link"), format!("{inside}/missing")] {
        let finished = helper.run(there(&path));
        assert_eq!(finished.stdout, "", "{path}");
        assert!(matches!(finished.outcome(), Some(Outcome::NotStarted { .. })), "{path}: {finished:?}");
    }
}

#[test]
fn it_cannot_exceed_the_scope_of_a_token() {
    let scene = Scene::new();
    let actions = [
        scene.probing("disk_usage", &["print", "disk"]),
        scene.probing("disk_wipe", &["print", "wiped"]).with(json!({"risk": "dangerous"})),
        scene.probing("uptime", &["print", "up"]),
    ];
    let mut preparation = scene.prepare(&actions);
    let (disks, old) = (TOKEN.replace('A', "B"), TOKEN.replace('A', "C"));
    preparation.tokens.tokens.push(token("disks", &disks, &["disk_*"], Risk::Read));
    let mut expired = token("old", &old, &["*"], Risk::Dangerous);
    expired.scope.expires = Some(1_000_000_000);
    preparation.tokens.tokens.push(expired);
    let helper = preparation.start();

    let with = |action: &str, token: Option<&str>| Run {
        token: token.map(str::to_owned),
        ..helper.call(action, &[])
    };
    assert_eq!(helper.run(with("disk_usage", Some(&disks))).stdout, "disk\n");
    let unknown = TOKEN.replace('A', "D");
    for (action, token) in [
        ("uptime", Some(disks.as_str())),
        ("disk_wipe", Some(disks.as_str())),
        ("disk_usage", Some(old.as_str())),
        ("disk_usage", Some(unknown.as_str())),
        ("disk_usage", Some("")),
        ("disk_usage", None),
    ] {
        assert_eq!(refused(&helper, with(action, token)), RefusalCode::Scope, "{action} {token:?}");
    }
    // A token is no part of any record.
    let records = format!("{:?}", helper.audit());
    assert!(!records.contains(&disks) && !records.contains(TOKEN), "{records}");
}

#[test]
fn it_cannot_act_on_another_catalogue() {
    let helper = helper();
    let mut run = helper.call("hello", &[]);
    run.digest[0] ^= 1;
    assert_eq!(refused(&helper, run), RefusalCode::Stale);
}

#[test]
fn it_cannot_promise_content_to_an_action_that_takes_none() {
    let helper = helper();
    let mut run = helper.call("hello", &[]);
    run.content = Some(gloveport_contract::packet::Content { length: 1, sha256: [0; 32] });
    assert_eq!(refused(&helper, run), RefusalCode::Argument);
}

#[test]
fn any_other_user_gets_nothing_at_all() {
    let helper = helper();
    let daemon = helper.scene.daemon.number;
    let strangers = [helper.scene.run.number, 65534, daemon + 100_000];
    for stranger in strangers {
        let closed = fake_daemon::connect_as(&helper.socket(), stranger, stranger);
        assert!(closed.is_err(), "user {stranger} got past the socket's mode");
        // With the daemon's group the mode lets them connect; the kernel's word on who they are does not.
        for request in [Request::Status { page: 0 }, Request::Run(Box::new(helper.call("hello", &[])))] {
            let mut connection =
                fake_daemon::connect_as(&helper.socket(), stranger, daemon).expect("the group may connect");
            // The helper may have closed already.
            let _ = connection.send_bytes(&request.encode().expect("a packet"));
            assert!(connection.receive().is_none(), "user {stranger} got an answer");
        }
    }
    assert_eq!(processes::of(helper.scene.run.number), []);
}

#[test]
fn root_may_ask_for_the_status_and_nothing_else() {
    let helper = helper();
    let mut connection = fake_daemon::connect_as(&helper.socket(), 0, 0).expect("root connects");
    connection.send(&Request::Status { page: 0 });
    let Some((Event::StatusReply { digest, .. }, _)) = connection.receive() else { panic!("no status") };
    assert_eq!(digest, Some(helper.digest));

    let mut connection = fake_daemon::connect_as(&helper.socket(), 0, 0).expect("root connects");
    connection.send(&Request::Run(Box::new(helper.call("hello", &[]))));
    assert!(!connection.finish().ran());
    assert_eq!(helper.run(helper.call("hello", &[])).stdout, "hello\n");
}
