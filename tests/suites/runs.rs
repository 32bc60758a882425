//! Runs as those see them who are not waiting for the answer: a client that comes back, one that wants to know
//! how far its run is, and people at the host.

use gloveport_contract::packet::{Event, Request};
use gloveport_tests::mcp::{ToolResult, finish};
use gloveport_tests::uid::Uid;
use gloveport_tests::{Pair, Scene, clients, processes};
use serde_json::{Value, json};
use std::process::Output;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(15);

/// A pair with a long action that outlives its connection, one that does not, and another caller.
struct Stage {
    pair: Pair,
    other: gloveport_tests::mcp::Endpoint,
}

impl Stage {
    fn new(keep: &str) -> Self {
        let scene = Scene::new();
        let words = json!({"params": {"time": {"type": "integer", "min": 0, "max": 20000}}});
        let probe = scene.probe();
        let exec = |secret: &str| json!({"exec": [probe, "print-sleep", "{time}", secret]});
        let finish = json!({"on_disconnect": "finish", "keep_result": keep});
        let backup = scene.action("backup", words.clone()).with(exec("password=hunter2")).with(finish);
        let check = scene.action("check", words).with(exec("checking"));
        let pair = scene.pair(&[backup, check]);
        let other = pair.add_token("other", &["--allow", "*", "--max-risk", "dangerous"]);
        let other = pair.with_token(other["token"].as_str().expect("a token"));
        Self { pair, other }
    }

    /// Begins a call and goes away when it runs; the id of its run.
    fn begin_and_leave(&self, action: &str, time: u32) -> String {
        let begun = self.pair.begin(action, json!({"params": {"time": time}}));
        let id = self.running();
        drop(begun);
        id
    }

    /// The id of the newest run of this pair's own caller, once it runs.
    fn running(&self) -> String {
        let mut id = String::new();
        processes::wait_until("the run goes on", SOON, || {
            let runs = self.mine();
            let newest = runs.iter().rfind(|run| run["state"] == "running" && run["bytes"] != 0);
            id = newest.and_then(|run| run["run"].as_str()).unwrap_or_default().to_owned();
            !id.is_empty()
        });
        id
    }

    fn mine(&self) -> Vec<Value> {
        let listed = self.pair.call("run_result", json!({}));
        listed.structured()["runs"].as_array().cloned().unwrap_or_default()
    }

    fn result(&self, id: &str) -> ToolResult {
        self.pair.call("run_result", json!({"run": id, "wait": 20}))
    }

    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.pair.state.join("audit.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn ended(&self, id: &str) -> Value {
        let is_it = |record: &&Value| record["kind"] == "ended" && record["run"] == id;
        self.audit().iter().find(is_it).cloned().unwrap_or_default()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[test]
fn a_client_that_comes_back_fetches_the_result_of_its_run_and_nobody_else_does() {
    let stage = Stage::new("10m");
    let id = stage.begin_and_leave("backup", 3000);
    let mut result = stage.result(&id);
    assert_eq!(result.structured()["action"], "backup", "{:#}", result.0);
    assert_eq!((result.stdout().as_str(), result.is_error()), ("password=[redacted]", false));
    let kept = &result.0["_meta"]["gloveport/run"];
    assert!(kept["kept_for_s"].as_u64().is_some_and(|left| (500..=600).contains(&left)), "{kept:#}");
    // It stays, and is what the chain has a receipt for.
    result = stage.result(&id);
    assert_eq!(result.structured()["audit"]["seq"], stage.ended(&id)["seq"]);
    // Neither the id nor anything else gives it to another token.
    let refused = stage.other.call("run_result", json!({"run": id}));
    assert!(refused.is_error() && refused.text().contains("you have no run"), "{}", refused.text());
    assert_eq!(stage.other.call("run_result", json!({})).structured()["runs"], json!([]));
    assert!(stage.other.call("end_run", json!({"run": id})).is_error());
    // Nor does the token itself when it is no longer one.
    let gone = stage.pair.add_token("gone", &["--allow", "*"]);
    let gone_endpoint = stage.pair.with_token(gone["token"].as_str().expect("a token"));
    assert_eq!(gone_endpoint.call("run_result", json!({})).structured()["runs"], json!([]));
    assert!(stage.pair.gloveport(&["token", "revoke", "gone"]).status.success());
    assert_eq!(gone_endpoint.send(&gone_endpoint.request("tools/list", json!({}))).status, 401);
}

#[test]
fn a_run_that_ends_with_its_connection_leaves_no_result() {
    let stage = Stage::new("10m");
    let id = stage.begin_and_leave("check", 20_000);
    processes::wait_until("the run has ended", SOON, || stage.ended(&id)["killed_by"] == "cancelled");
    processes::wait_until("it is forgotten", SOON, || stage.mine().is_empty());
    assert!(stage.pair.call("run_result", json!({"run": id})).is_error());
}

#[test]
fn output_so_far_is_read_while_a_run_goes_on_and_is_redacted() {
    let stage = Stage::new("10m");
    let begun = stage.pair.begin("backup", json!({"params": {"time": 20_000}}));
    let id = stage.running();
    let so_far = stage.pair.call("run_result", json!({"run": id}));
    let seen = so_far.structured();
    assert_eq!(
        (&seen["state"], &seen["stdout"]),
        (&json!("running"), &json!("password=[redacted]\n")),
        "{seen:#}"
    );
    assert_eq!((&seen["bytes"], &seen["action"]), (&json!(17), &json!("backup")), "{seen:#}");
    assert!(so_far.text().contains("17 bytes of output so far"), "{}", so_far.text());
    // Also of a run that ends with its connection; of somebody else's never.
    let checking = stage.pair.begin("check", json!({"params": {"time": 20_000}}));
    processes::wait_until("both run", SOON, || {
        stage.mine().iter().filter(|run| run["bytes"] != 0).count() == 2
    });
    let check = stage.mine().iter().find(|run| run["action"] == "check").cloned().expect("the other run");
    let so_far = stage.pair.call("run_result", json!({"run": check["run"]}));
    assert_eq!(so_far.structured()["stdout"], "checking\n", "{:#}", so_far.0);
    assert!(stage.other.call("run_result", json!({"run": check["run"]})).is_error());
    drop(checking);
    assert!(!stage.pair.call("end_run", json!({"run": id})).is_error());
    assert!(finish(begun).is_error());
}

#[test]
fn a_caller_ends_its_own_run_and_the_record_says_who() {
    let stage = Stage::new("10m");
    let id = stage.begin_and_leave("backup", 20_000);
    assert!(stage.other.call("end_run", json!({"run": id})).is_error());
    assert_eq!(processes::of(stage.pair.scene.run.number).len(), 1, "another caller has ended it");
    let ending = stage.pair.call("end_run", json!({"run": id}));
    assert!(!ending.is_error(), "{}", ending.text());
    let result = stage.result(&id);
    assert!(result.is_error() && result.text().contains("Ended by its caller ("), "{}", result.text());
    assert_eq!(result.step(0)["status"], "cancelled", "{:#}", result.0);
    assert_eq!(result.stdout(), "password=[redacted]", "what it had printed is there");
    let record = stage.ended(&id);
    assert_eq!(record["killed_by"], "cancelled");
    assert!(record["reason"].as_str().is_some_and(|why| why.starts_with("its caller (")), "{record:#}");
    processes::wait_until_gone(stage.pair.scene.run.number, SOON);
    // It is over: nothing is left to end.
    assert!(stage.pair.call("end_run", json!({"run": id})).is_error());
}

#[test]
fn people_at_the_host_see_the_runs_and_end_them_and_the_record_says_who() {
    let stage = Stage::new("10m");
    let begun = stage.pair.begin("check", json!({"params": {"time": 20_000}}));
    let id = stage.running();
    let shown = text(&stage.pair.gloveport(&["status"]));
    let line = shown.lines().find(|line| line.starts_with(&id)).unwrap_or_else(|| panic!("{shown}"));
    for part in ["check", "running", " s ", "  9"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let told = stage.pair.gloveport(&["status", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!((&told["runs"][0]["run"], &told["runs"][0]["action"]), (&json!(id), &json!("check")));

    for wrong in ["../x", "1-1", ""] {
        let refused = stage.pair.gloveport(&["status", "--end", wrong]);
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    }
    let ended = stage.pair.gloveport_with(&[("SUDO_USER", "ada")], &["status", "--end", &id]);
    assert!(ended.status.success(), "{}", text(&ended));
    let result = finish(begun);
    assert!(result.is_error() && result.text().contains("Ended by ada, at the host,"), "{}", result.text());
    assert_eq!(stage.ended(&id)["reason"], "ada, at the host, ended the run");
    processes::wait_until_gone(stage.pair.scene.run.number, SOON);
}

#[test]
fn a_local_user_sees_and_ends_their_own_runs_and_nobody_else_sees_any() {
    let stage = Stage::new("10m");
    let held = [Uid::take(), Uid::take()];
    let [user, stranger] = held.each_ref().map(|uid| uid.number);
    let allowed = stage.pair.gloveport(&["token", "allow-user", &user.to_string()]);
    assert!(allowed.status.success(), "{}", text(&allowed));
    let begun = stage.pair.begin("backup", json!({"params": {"time": 20_000}}));
    let others = stage.running();
    std::thread::scope(|scope| {
        let call = scope
            .spawn(|| stage.pair.gloveport_as(user, &["call", "backup", r#"{"params": {"time": 20000}}"#]));
        let runs = |uid| -> Vec<Value> {
            let told = stage.pair.gloveport_as(uid, &["status", "--json"]);
            let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
            told["runs"].as_array().cloned().unwrap_or_default()
        };
        processes::wait_until("the user's run goes on", SOON, || {
            runs(user).iter().any(|run| run["state"] == "running")
        });
        let seen = runs(user);
        assert_eq!(seen.len(), 1, "{seen:#?}");
        let own = seen[0]["run"].as_str().expect("an id").to_owned();
        assert!(runs(stranger).is_empty());
        let end = |uid, id: &str| stage.pair.gloveport_as(uid, &["status", "--end", id]).status.code();
        assert_eq!(
            (end(user, &others), end(stranger, &own), end(stranger, &others)),
            (Some(1), Some(1), Some(1))
        );
        assert_eq!(end(user, &own), Some(0));
        let said = call.join().expect("the call");
        assert!(!said.status.success(), "{}", text(&said));
        assert!(stage.ended(&own)["reason"].as_str().is_some_and(|reason| reason.ends_with("ended the run")));
    });
    assert!(stage.pair.gloveport(&["status", "--end", &others]).status.success());
    assert!(finish(begun).is_error());
    // TCP has no such place, with a token or without.
    let request = gloveport_tests::http::Request::new("GET", "/runs");
    let request =
        request.header("Authorization", &format!("Bearer {}", stage.pair.token.clone().expect("a token")));
    assert_eq!(stage.pair.send(&request).status, 404);
}

#[test]
fn status_by_a_user_who_may_not_ask_the_helper_says_so() {
    let stage = Stage::new("10m");
    let stranger = Uid::take();
    let said = text(&stage.pair.gloveport_as(stranger.number, &["status"]));
    assert!(said.contains("cannot be asked by this user") && said.contains("sudo"), "{said}");
    assert!(!said.contains("not running"), "{said}");
    let told = stage.pair.gloveport_as(stranger.number, &["status", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(told["helper"]["running"], Value::Null, "{told:#}");
    assert!(text(&stage.pair.gloveport(&["status"])).contains("helper        running"));
}

#[test]
fn what_is_kept_has_an_end_and_a_bound() {
    let stage = Stage::new("5s");
    let first = stage.pair.call("backup", json!({"params": {"time": 0}}));
    let id = stage.mine()[0]["run"].as_str().expect("an id").to_owned();
    assert_eq!(stage.result(&id).stdout(), first.stdout());
    processes::wait_until("its time is over", SOON, || stage.mine().is_empty());
    assert!(stage.pair.call("run_result", json!({"run": id})).text().contains("no longer kept"));

    let stage = Stage::new("10m");
    for _ in 0..18 {
        stage.pair.call("backup", json!({"params": {"time": 0}}));
    }
    let kept = stage.mine();
    assert_eq!(kept.len(), 16, "{kept:#?}");
    assert!(kept.iter().all(|run| run["state"] == "finished" && run["kept_for_s"].is_u64()), "{kept:#?}");
}

#[test]
fn the_tools_are_there_where_a_run_can_outlive_its_connection_and_for_who_may_start_one() {
    let stage = Stage::new("10m");
    assert_eq!(stage.pair.tools(), ["backup", "check", "end_run", "run_batch", "run_result"]);
    let narrow = stage.pair.add_token("narrow", &["--allow", "check", "--allow", "run_result"]);
    let narrow = stage.pair.with_token(narrow["token"].as_str().expect("a token"));
    assert_eq!(narrow.tools(), ["check"]);
    let asked = narrow.ask("tools/call", json!({"name": "run_result", "arguments": {}}));
    assert_eq!(asked["error"]["code"], -32602, "{asked:#}");
    let narrow = stage.pair.add_token("backup", &["--allow", "backup"]);
    let narrow = stage.pair.with_token(narrow["token"].as_str().expect("a token"));
    assert_eq!(narrow.tools(), ["backup", "end_run", "run_result"]);
    let plain = Pair::with_probe();
    assert_eq!(plain.tools(), ["probe", "run_batch"]);
    assert!(plain.ask("tools/call", json!({"name": "run_result", "arguments": {}}))["error"].is_object());
}

#[test]
fn progress_tells_a_client_how_long_and_how_much() {
    let stage = Stage::new("10m");
    let words = ["check", r#"{"params": {"time": 7000}}"#, "auto"];
    let client = clients::python("mcp", "python_sdk_http.py");
    let said = clients::run(client, &stage.pair.endpoint, &words);
    let told: Vec<&str> =
        said["messages"].as_array().expect("messages").iter().filter_map(Value::as_str).collect();
    assert!(told[0].starts_with("accepted as run "), "{told:?}");
    assert!(told.iter().any(|text| text.ends_with(" s, 9 bytes of output so far")), "{told:?}");
    // Silent for more than five seconds: a sign of life all the same.
    let seconds = |text: &&str| text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
    assert!(told.iter().filter_map(seconds).any(|seconds| seconds >= 5), "{told:?}");
}

#[test]
fn a_revoked_token_starts_nothing_more_and_what_it_has_started_goes_on() {
    let stage = Stage::new("10m");
    let begun = stage.other.begin("check", json!({"params": {"time": 3000}}));
    processes::wait_until("the run goes on", SOON, || !processes::of(stage.pair.scene.run.number).is_empty());
    assert!(stage.pair.gloveport(&["token", "revoke", "other"]).status.success());
    let refused = stage.other.send(&stage.other.request("tools/list", json!({})));
    assert_eq!(refused.status, 401);
    // Ending it is a decision of its own: `gloveport status --end`.
    let result = finish(begun);
    assert_eq!((result.is_error(), result.stdout().as_str()), (false, "checking"));
}

#[test]
fn a_daemon_can_end_the_run_of_its_connection_and_no_other() {
    let scene = Scene::new();
    let sleep = scene.probing("sleep", &["sleep", "20000"]).with(json!({"on_disconnect": "finish"}));
    let helper = scene.helper(&[sleep]);
    let end = Request::End { by: "somebody".into() };
    let begin = || {
        let mut connection = helper.connect();
        connection.send(&Request::Run(Box::new(helper.call("sleep", &[]))));
        while !matches!(connection.receive(), Some((Event::StepStarted { .. }, _))) {}
        connection
    };
    let (mut first, second) = (begin(), begin());
    // First on a connection it means nothing.
    let mut stray = helper.connect();
    stray.send(&end);
    assert!(stray.receive().is_none());
    first.send(&end);
    let events = first.finish().events;
    assert!(matches!(events.last(), Some(Event::Ended { .. })), "{events:?}");
    processes::wait_until("one runs", SOON, || processes::of(helper.scene.run.number).len() == 1);
    let kind = |kind: &str| -> Vec<Value> {
        helper.audit().into_iter().filter(|record| record["kind"] == kind).collect()
    };
    assert_eq!(kind("ended")[0]["reason"], "somebody ended the run");
    assert_eq!(kind("malformed").len(), 1, "{:#?}", helper.audit());
    // Any other second packet ends it too, and is no word of anybody's.
    let mut second = second;
    second.send_bytes(b"junk").expect("sending");
    second.finish();
    assert_eq!((kind("ended").len(), kind("malformed").len()), (2, 2), "{:#?}", helper.audit());
    assert_eq!(kind("ended")[1]["reason"], Value::Null);
}
