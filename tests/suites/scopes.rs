//! What a token or a local user may do: how often, and how much at once. The helper counts by itself.

use gloveport_contract::catalog::Risk;
use gloveport_contract::packet::{Caller, Event, Outcome, RefusalCode, Request, Run};
use gloveport_contract::token::{LocalUser, Scope, Token};
use gloveport_tests::uid::Uid;
use gloveport_tests::{Finished, Helper, Pair, Scene, helper, programs};
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECRET: &str = "gp_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

fn token(per_minute: Option<u32>, at_once: Option<u32>) -> Token {
    let token = helper::token("ci", SECRET, &["*"], Risk::Read);
    Token { scope: Scope { per_minute, at_once, ..token.scope }, ..token }
}

/// A helper that knows a token of that scope, and a local user of the same.
fn helper(token: Token) -> Helper {
    let scene = Scene::new();
    let actions = [
        scene.probing("hello", &["print", "hello"]),
        scene.probing("sleep", &["sleep", "20000"]),
        scene.probing("write", &["print", "written"]).with(json!({"risk": "write"})),
    ];
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
    gloveport_tests::processes::wait_until("the place is free", Duration::from_secs(5), || {
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
    gloveport_tests::processes::wait_until("the token counts", Duration::from_secs(5), || {
        limited.tools().contains(&"hello".to_owned())
    });
    let first = limited.call("hello", json!({}));
    assert_eq!(first.stdout(), "hello");
    let second = limited.call("hello", json!({}));
    assert!(second.is_error() && second.text().contains("(rule: per_minute)"), "{}", second.text());
    assert_eq!(pair.call("hello", json!({})).stdout(), "hello");
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// Hours of the day that are not now: they begin two hours from now.
fn other_hours() -> String {
    let hour = |ahead: u64| (now() / 3600 + ahead) % 24;
    format!("{:02}:00-{:02}:00", hour(2), hour(3))
}

#[test]
fn the_helper_refuses_by_each_rule_of_a_scope_whatever_the_daemon_has_let_through() {
    let scope = |change: fn(&mut Scope)| {
        let mut token = token(None, None);
        change(&mut token.scope);
        token
    };
    for (rule, token) in [
        ("allow", scope(|scope| scope.allow = vec!["hell".into(), "?ello_again".into()])),
        ("max_risk", scope(|_| {})),
        ("expires", scope(|scope| scope.expires = Some(now() - 1))),
        ("hours", scope(|scope| scope.hours = Some(other_hours()))),
    ] {
        let helper = helper(token);
        let action = if rule == "max_risk" { "write" } else { "hello" };
        assert_refused_by(&helper.run(with_token(&helper, action)), rule);
        assert_refused_by(&helper.run(as_local_user(&helper, action)), rule);
        assert_eq!(helper.run(helper.call(action, &[])).outcome(), Some(&Outcome::Exited(0)), "{rule}");
    }
    // What fits all of them runs.
    let helper = helper(scope(|scope| {
        *scope = Scope {
            allow: vec!["hel*".into()],
            max_risk: Risk::Write,
            expires: Some(now() + 3600),
            hours: Some("00:00-23:59".into()),
            per_minute: Some(100),
            at_once: Some(4),
        }
    }));
    let run = || helper.run(with_token(&helper, "hello"));
    // But for the last minute of a day.
    gloveport_tests::processes::wait_until("it runs", Duration::from_secs(90), || {
        run().outcome() == Some(&Outcome::Exited(0))
    });
}

fn pair_of_services() -> Pair {
    let scene = Scene::new();
    let status = scene.probing("service_status", &["print", "active"]);
    let restart = scene.probing("service_restart", &["print", "restarted"]).with(json!({"risk": "write"}));
    let disk = scene.probing("disk", &["print", "full"]);
    scene.pair(&[status, restart, disk])
}

#[test]
fn a_token_sees_and_calls_what_its_scope_allows_and_a_refusal_names_the_rule() {
    let pair = pair_of_services();
    let ci = pair.add_token("ci", &["--allow", "service_*", "--max-risk", "read", "--expires", "30d"]);
    let ci = pair.with_token(ci["token"].as_str().expect("a token"));
    assert_eq!(ci.tools(), ["service_status"]);
    assert_eq!(ci.call("service_status", json!({})).stdout(), "active");
    for (action, rule) in [("disk", "allow"), ("service_restart", "max_risk")] {
        let refused = ci.call(action, json!({}));
        assert!(refused.is_error(), "{action}");
        assert!(refused.text().contains(&format!("(rule: {rule})")), "{}", refused.text());
    }
    let night = pair.add_token("night", &["--hours", &other_hours()]);
    let night = pair.with_token(night["token"].as_str().expect("a token"));
    assert_eq!(night.tools(), Vec::<String>::new());
    assert!(night.call("disk", json!({})).text().contains("(rule: hours)"));
    // A token whose time is over is none.
    let short = pair.add_token("short", &["--expires", "1s"]);
    let short = pair.with_token(short["token"].as_str().expect("a token"));
    let status = || short.send(&short.request("tools/list", json!({}))).status;
    gloveport_tests::processes::wait_until("it is over", Duration::from_secs(10), || status() == 401);
}

#[test]
fn a_local_user_is_known_by_the_kernel_and_has_a_scope_too() {
    let pair = pair_of_services();
    let held = [Uid::take(), Uid::take()];
    let [user, stranger] = held.each_ref().map(|uid| uid.number);
    let allowed = pair.gloveport(&["token", "allow-user", &user.to_string(), "--allow", "service_*"]);
    assert!(allowed.status.success(), "{}", text(&allowed));
    let call = |uid, action: &str| pair.gloveport_as(uid, &["call", action]);
    assert_eq!(text(&call(user, "service_status")).trim(), "active");
    assert!(text(&call(user, "disk")).contains("(rule: allow)"));
    assert!(text(&call(user, "service_restart")).contains("(rule: max_risk)"));
    assert!(text(&call(stranger, "service_status")).contains("allow-user"));
    assert!(pair.gloveport(&["token", "deny-user", &user.to_string()]).status.success());
    assert!(text(&call(user, "service_status")).contains("allow-user"), "it counts at once");
}

#[test]
fn a_scope_that_can_match_nothing_is_refused_when_it_is_written() {
    let pair = pair_of_services();
    for pattern in ["", " ", "service status", "service_[ab]", "é*", &"a".repeat(65)] {
        for words in [&["token", "add", "--name", "ci"][..], &["token", "allow-user", "daemon"]] {
            let refused = pair.gloveport(&[words, &["--allow", pattern]].concat());
            assert_eq!(refused.status.code(), Some(64), "{pattern}: {}", text(&refused));
            assert!(text(&refused).contains("matches no action"), "{}", text(&refused));
        }
    }
    let listed = text(&pair.gloveport(&["token", "list"]));
    assert!(!listed.contains("ci") && !listed.contains("daemon"), "{listed}");
}

#[test]
fn a_user_whom_actions_run_as_is_not_let_in() {
    let pair = pair_of_services();
    let run_as = pair.scene.run.number.to_string();
    let refused = pair.gloveport(&["token", "allow-user", &run_as]);
    assert_eq!(refused.status.code(), Some(64), "{}", text(&refused));
    assert!(text(&refused).contains(&format!("actions run as {run_as}")), "{}", text(&refused));
    let other = Uid::take();
    assert!(pair.gloveport(&["token", "allow-user", &other.number.to_string()]).status.success());
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}
