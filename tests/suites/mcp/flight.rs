//! Calls in flight: progress, cancellation, and callers who all send the same id.

use super::pair;
use super::wire::{ACCEPTED, STREAM, check, legacy, notification, with};
use gloveport_tests::http::{self, Request, Response};
use gloveport_tests::mcp::{VERSION, finish};
use gloveport_tests::{Pair, processes};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::Duration;

/// How soon nothing of a cancelled run may be left.
const AT_ONCE: Duration = Duration::from_secs(1);

fn sleeping(milliseconds: u32, word: &str) -> Value {
    json!({"name": "probe", "arguments": {"params": {"words": ["print-sleep", milliseconds.to_string(), word]}}})
}

/// A tree that a KILL of the first process alone would leave behind.
fn tree() -> Value {
    json!({"name": "probe", "arguments": {"params": {"words": ["daemon", "20000"]}}})
}

fn wait_for_runs(pair: &Pair, processes: usize) {
    processes::wait_until("the calls run", Duration::from_secs(10), || {
        processes::of(pair.scene.run.number).len() >= processes
    });
}

fn open(pair: &Pair, request: &Request) -> TcpStream {
    request.open(&pair.address).expect("a connection")
}

fn answer(mut stream: TcpStream) -> Response {
    http::read(&mut stream).expect("an answer")
}

fn stdout(response: &Response) -> String {
    let answer = response.messages().pop().expect("an answer");
    answer["result"]["structuredContent"]["steps"][0]["stdout"].as_str().unwrap_or_default().trim().to_owned()
}

/// A session of the older revisions, and requests in it. All of them have the id 1.
struct Session<'a> {
    pair: &'a Pair,
    id: String,
    authorization: String,
}

impl<'a> Session<'a> {
    fn open(pair: &'a Pair, token: &str) -> Self {
        let authorization = format!("Bearer {token}");
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        let request = legacy(pair, json!(1), "initialize", params);
        let response = pair.send(&with(request, "Authorization", &authorization));
        let id = response.header("mcp-session-id").expect("a session").to_owned();
        Self { pair, id, authorization }
    }

    fn own(pair: &'a Pair) -> Self {
        Self::open(pair, pair.token.as_deref().expect("a token"))
    }

    fn within(&self, request: Request) -> Request {
        with(request, "Authorization", &self.authorization).header("Mcp-Session-Id", &self.id)
    }

    fn call(&self, params: Value) -> TcpStream {
        open(self.pair, &self.within(legacy(self.pair, json!(1), "tools/call", params)))
    }

    fn cancel(&self, id: Value) {
        let request = notification(self.pair, "notifications/cancelled", json!({"requestId": id}));
        check(self.pair, [("a cancellation", self.within(request), ACCEPTED)]);
    }
}

#[test]
fn progress_comes_to_who_asked_for_it_under_the_token_as_it_was_given() {
    let pair = pair();
    for token in [json!(0), json!(7), json!("a"), json!("")] {
        let params = json!({"name": "steps", "_meta": {"progressToken": token}});
        let old = pair.send(&legacy(&pair, json!(1), "tools/call", params.clone()));
        let new = {
            let mut request = params;
            request["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(VERSION);
            request["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            let request = legacy(&pair, json!(1), "tools/call", request);
            let request = request.header("MCP-Protocol-Version", VERSION);
            pair.send(&request.header("Mcp-Method", "tools/call").header("Mcp-Name", "steps"))
        };
        for response in [old, new] {
            assert_eq!(response.header("content-type"), Some(STREAM), "{response:?}");
            assert_eq!(response.header("x-accel-buffering"), Some("no"));
            assert!(response.header("cache-control").is_some_and(|value| value.contains("no-cache")));
            let mut messages = response.messages();
            let result = messages.pop().expect("a result");
            assert_eq!(result["result"]["structuredContent"]["success"], true, "{result:#}");
            assert!(messages.len() >= 3, "{messages:#?}");
            let mut last = 0;
            for message in messages {
                assert_eq!(message["method"], "notifications/progress");
                assert_eq!(message["params"]["progressToken"], token);
                let progress = message["params"]["progress"].as_u64().expect("a number");
                assert!(progress > last, "{progress} after {last}");
                last = progress;
            }
        }
    }
    let silent = pair.send(&legacy(&pair, json!(1), "tools/call", json!({"name": "steps"})));
    assert_eq!(silent.header("content-type"), Some("application/json"));
}

#[test]
fn a_closed_stream_ends_the_run_in_both_eras() {
    let pair = pair();
    let modern = pair.begin("probe", tree()["arguments"].clone());
    wait_for_runs(&pair, 2);
    drop(modern);
    processes::wait_until_gone(pair.scene.run.number, AT_ONCE);

    let old = open(&pair, &legacy(&pair, json!(1), "tools/call", tree()));
    wait_for_runs(&pair, 2);
    drop(old);
    processes::wait_until_gone(pair.scene.run.number, AT_ONCE);
}

#[test]
fn a_cancellation_in_a_session_ends_the_run_and_nothing_answers_it() {
    let pair = pair();
    let session = Session::own(&pair);
    let call = session.call(tree());
    wait_for_runs(&pair, 2);
    session.cancel(json!(1));
    processes::wait_until_gone(pair.scene.run.number, AT_ONCE);
    let response = answer(call);
    assert_eq!(response.messages(), [] as [Value; 0], "{response:?}");

    session.cancel(json!(1));
    session.cancel(json!("never"));
    let next = session.call(sleeping(100, "after a late cancellation"));
    assert_eq!(stdout(&answer(next)), "after a late cancellation");
}

#[test]
fn a_cancellation_meets_nobody_else_s_request_of_the_same_id() {
    let pair = pair();
    let other_token = pair.add_token("other", &["--max-risk", "dangerous"]);
    let (one, two) = (Session::own(&pair), Session::own(&pair));
    let other = Session::open(&pair, other_token["token"].as_str().expect("a token"));
    let cancelled = one.call(sleeping(20_000, "one"));
    let kept = [(two.call(sleeping(1500, "two")), "two"), (other.call(sleeping(1500, "other")), "other")];
    let outside = open(&pair, &legacy(&pair, json!(1), "tools/call", sleeping(1500, "outside")));
    wait_for_runs(&pair, 4);
    one.cancel(json!(1));
    // Outside a session nobody can say whose request is meant: nobody's is.
    let stray = notification(&pair, "notifications/cancelled", json!({"requestId": 1}));
    check(&pair, [("a cancellation outside of a session", stray, ACCEPTED)]);
    for (call, word) in kept {
        assert_eq!(stdout(&answer(call)), word);
    }
    assert_eq!(stdout(&answer(outside)), "outside");
    assert!(answer(cancelled).messages().is_empty());
    processes::wait_until_gone(pair.scene.run.number, AT_ONCE);
}

#[test]
fn every_caller_gets_the_answer_to_its_own_request_though_all_have_the_id_1() {
    let pair = pair();
    let words: Vec<String> = (0..6).map(|n| format!("word {n}")).collect();
    let old: Vec<TcpStream> = words
        .iter()
        .map(|word| open(&pair, &legacy(&pair, json!(1), "tools/call", sleeping(300, word))))
        .collect();
    for (call, word) in old.into_iter().zip(&words) {
        assert_eq!(&stdout(&answer(call)), word);
    }
    // The other way round, so that the first to be sent is the last to end.
    let session = Session::own(&pair);
    let calls = [600, 300, 0].map(|time| (session.call(sleeping(time, &time.to_string())), time));
    for (call, time) in calls {
        assert_eq!(stdout(&answer(call)), time.to_string());
    }
    let new = [400, 0]
        .map(|time| (pair.begin("probe", sleeping(time, &time.to_string())["arguments"].clone()), time));
    for (call, time) in new {
        assert_eq!(finish(call).stdout(), time.to_string());
    }
}

#[test]
fn ending_a_session_ends_what_runs_in_it() {
    let pair = pair();
    let session = Session::own(&pair);
    let call = session.call(tree());
    wait_for_runs(&pair, 2);
    let end = session.within(Request::new("DELETE", "/mcp"));
    assert_eq!(pair.send(&end).status, 204);
    processes::wait_until_gone(pair.scene.run.number, AT_ONCE);
    assert!(answer(call).messages().is_empty());
}

#[test]
fn a_silent_call_becomes_a_stream_that_is_kept_alive_and_ends_with_its_result() {
    let pair = pair();
    // The first comment makes it a stream; the next one comes within the time after which proxies close it.
    let mut reader = BufReader::new(open(&pair, &pair.request("tools/call", sleeping(90_000, "at last"))));
    let mut text = String::new();
    while text.matches(": keep-alive\n\n").count() < 2 {
        assert!(reader.read_line(&mut text).expect("a stream") > 0, "the stream ended: {text}");
    }
    assert!(text.to_lowercase().contains(&format!("content-type: {STREAM}")), "{text}");
    drop(reader);
    processes::wait_until_gone(pair.scene.run.number, AT_ONCE);

    let response = pair.send(&pair.request("tools/call", sleeping(5600, "at last")));
    assert_eq!(response.header("content-type"), Some(STREAM));
    assert_eq!(stdout(&response), "at last");
}
