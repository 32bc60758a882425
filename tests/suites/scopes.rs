//! What a token or a local user may do: how often, and how much at once. The helper counts by itself.

use gloveport_contract::catalog::Risk;
use gloveport_contract::packet::{Caller, Event, Outcome, RefusalCode, Request, Run};
use gloveport_contract::token::{LocalUser, Scope, Token};
use gloveport_tests::{Finished, Helper, Scene, helper, programs};
use serde_json::{Value, json};
use std::process::Command;

const SECRET: &str = "gp_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

fn token(per_minute: Option<u32>, at_once: Option<u32>) -> Token {
    let token = helper::token("ci", SECRET, &["*"], Risk::Read);
    Token { scope: Scope { per_minute, at_once, ..token.scope }, ..token }
}

/// A helper that knows a token of that scope, and a local user of the same.
fn helper(token: Token) -> Helper {
    let scene = Scene::new();
    let actions = [scene.probing("hello", &["print", "hello"]), scene.probing("sleep", &["sleep", "20000"])];
    let mut prepared = scene.prepare(&actions);
    prepared.tokens.local_users.push(LocalUser { uid: 1000, scope: token.scope.clone() });
    prepared.tokens.tokens.push(token);
    prepared.start()
}

fn with_token(helper: &Helper, action: &str) -> Run {
    Run { token: Some(SECRET.into()), ..helper.call(action, &[]) }
}

fn as_local_user(helper: &Helper, action: &str) -> Run {
    let caller = Caller { via: "local".into(), uid: Some(1000), ..Caller::default() };
    Run { token: None, caller, ..helper.call(action, &[]) }
}

#[track_caller]
fn assert_refused_by(finished: &Finished, rule: &str) {
    match finished.events.as_slice() {
        [Event::Refused { code: RefusalCode::Scope, detail, receipt: Some(_) }] => {
            assert!(detail.contains(&format!("(rule: {rule})")), "{detail}");
        }
        other => panic!("not refused by {rule}: {other:?}"),
    }
}

#[test]
fn a_token_makes_as_many_calls_a_minute_as_it_may_and_others_go_on() {
    let helper = helper(token(Some(2), None));
    for _ in 0..2 {
        assert_eq!(helper.run(with_token(&helper, "hello")).outcome(), Some(&Outcome::Exited(0)));
        assert_eq!(helper.run(as_local_user(&helper, "hello")).outcome(), Some(&Outcome::Exited(0)));
    }
    assert_refused_by(&helper.run(with_token(&helper, "hello")), "per_minute");
    assert_refused_by(&helper.run(as_local_user(&helper, "hello")), "per_minute");
    // A scope without a rate is not counted.
    assert_eq!(helper.run(helper.call("hello", &[])).outcome(), Some(&Outcome::Exited(0)));
    let refused: Vec<Value> = helper.audit().into_iter().filter(|r| r["kind"] == "refused").collect();
    assert_eq!(refused.len(), 2, "{refused:#?}");
    assert_eq!((refused[0]["caller"].as_str(), refused[0]["rule"].as_str()), (Some("ci"), Some("scope")));
}

#[test]
fn a_token_has_as_many_runs_at_once_as_it_may_and_others_go_on() {
    let helper = helper(token(None, Some(1)));
    let mut sleeping = helper.connect();
    sleeping.send(&Request::Run(Box::new(with_token(&helper, "sleep"))));
    assert!(matches!(sleeping.receive(), Some((Event::Accepted { .. }, _))));
    assert_refused_by(&helper.run(with_token(&helper, "hello")), "at_once");
    assert_eq!(helper.run(as_local_user(&helper, "hello")).outcome(), Some(&Outcome::Exited(0)));
    assert_eq!(helper.run(helper.call("hello", &[])).outcome(), Some(&Outcome::Exited(0)));
    drop(sleeping);
    gloveport_tests::processes::wait_until("the place is free", std::time::Duration::from_secs(5), || {
        helper.run(with_token(&helper, "hello")).outcome() == Some(&Outcome::Exited(0))
    });
}

#[test]
fn a_client_is_told_the_rule_that_refused_it() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let pair = scene.pair(&[hello]);
    let added = Command::new(programs::built("gloveport"))
        .args(["token", "add", "--name", "ci", "--allow", "*", "--max-risk", "read", "--per-minute", "1"])
        .args(["--json", "--state"])
        .arg(&pair.state)
        .output()
        .expect("running gloveport token add");
    let token: Value = serde_json::from_slice(&added.stdout).expect("what token add prints");
    let limited = pair.with_token(token["token"].as_str().expect("a token"));
    gloveport_tests::processes::wait_until("the token counts", std::time::Duration::from_secs(5), || {
        limited.tools().contains(&"hello".to_owned())
    });
    let first = limited.call("hello", json!({}));
    assert_eq!(first.stdout(), "hello");
    let second = limited.call("hello", json!({}));
    assert!(second.is_error() && second.text().contains("(rule: per_minute)"), "{}", second.text());
    assert_eq!(pair.call("hello", json!({})).stdout(), "hello");
}
