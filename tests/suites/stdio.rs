//! `gloveport stdio`: what a client that starts a program gets.

use gloveport_tests::stdio::{self, Bridge};
use gloveport_tests::{Pair, Scene, clients, processes};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn pair() -> Pair {
    let scene = Scene::new();
    let say = scene.exec("say", &[&scene.probe(), "print", "{word}"]).with(json!({
        "arguments": "flat", "params": {"word": {"type": "string"}},
    }));
    let wait = scene.exec("wait", &["/usr/bin/sleep", "{seconds}"]).with(json!({
        "arguments": "flat", "params": {"seconds": {"type": "integer", "max": 600}}, "timeout": "600s",
    }));
    let pair = scene.pair(&[say, wait]);
    stdio::allow_root(&pair.scene);
    pair
}

fn client(pair: &Pair) -> Bridge {
    Bridge::start::<&str>(stdio::gloveport(&pair.scene), &[])
}

/// Writes bytes to a new bridge, closes its input, and returns what it printed.
fn printed(pair: &Pair, input: &[u8]) -> Vec<u8> {
    let mut child = stdio::gloveport(&pair.scene)
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gloveport");
    child.stdin.take().expect("a pipe").write_all(input).expect("writing");
    let output = child.wait_with_output().expect("its output");
    assert!(output.status.success(), "{}", output.status);
    output.stdout
}

fn sleeps(pair: &Pair) -> usize {
    processes::of(pair.scene.run.number).iter().filter(|one| one.command.contains("sleep")).count()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"smoke","version":"1"}}}"#;

#[test]
fn a_client_that_frames_with_content_length_is_answered_in_kind() {
    let pair = pair();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let framed = |message: &str| format!("Content-Length: {}\r\n\r\n{message}", message.len());
    let answer = printed(&pair, format!("{}{}", framed(INITIALIZE), framed(list)).as_bytes());
    let mut rest = String::from_utf8(answer).expect("text");
    let mut answers = Vec::new();
    while let Some((head, body)) = rest.split_once("\r\n\r\n") {
        let length: usize =
            head.strip_prefix("Content-Length: ").expect("a header").parse().expect("a length");
        answers.push(serde_json::from_str::<Value>(&body[..length]).expect("a message"));
        rest = body[length..].to_owned();
    }
    assert!(rest.is_empty(), "not protocol: {rest}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2024-11-05", "{answers:#?}");
    assert_eq!(answers[0]["result"]["capabilities"], json!({"tools": {}}));
    assert_eq!(answers[1]["id"], 2);
    assert!(answers[1]["result"]["tools"].as_array().is_some_and(|tools| tools.len() >= 2), "{answers:#?}");
}

#[test]
fn lines_are_answered_with_lines_and_nothing_else_stands_there() {
    let pair = pair();
    let input =
        format!("{INITIALIZE}\nnot json\n{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}\n\n[]\n");
    let answer = String::from_utf8(printed(&pair, input.as_bytes())).expect("text");
    let answers: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
    let code = |wanted: i64| answers.iter().any(|answer| answer["error"]["code"] == wanted);
    assert_eq!(answers.len(), 4, "{answer}");
    assert!(code(-32700) && code(-32600), "{answer}");
    assert!(answers.iter().any(|answer| answer["id"] == 2 && answer["result"] == json!({})), "{answer}");
}

#[test]
fn what_no_client_should_send_is_answered_with_its_code_and_harms_nobody() {
    let pair = pair();
    let client = client(&pair);
    let call =
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"say","arguments":{"word":"x"}}}"#;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let arguments = format!(r#"{{"word":{}}}"#, deep(100_000));
    let rows = [
        ("no JSON", "{".to_owned(), -32700),
        ("a line that is too long", "x".repeat(5 << 20), -32700),
        ("an empty batch", "[]".to_owned(), -32600),
        ("a batch", format!("[{call},{call}]"), -32600),
        ("no method", r#"{"jsonrpc":"2.0","id":7}"#.to_owned(), -32600),
        ("id null", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), -32600),
        ("a key twice", call.replace(r#""word":"x""#, r#""word":"x","word":"y""#), -32600),
        ("deep nesting", call.replace(r#"{"word":"x"}"#, &arguments), -32700),
    ];
    for (what, line, code) in rows {
        client.send_raw(line.as_bytes());
        let answer = client.next_message();
        assert_eq!(answer["error"]["code"], code, "{what}: {answer:#}");
        assert_eq!(client.call("say", json!({"word": "after it"})).stdout(), "after it", "{what}");
    }
    client.send_raw(format!("\u{feff}{call}").as_bytes());
    let answer = client.next_message();
    assert_eq!(answer["result"]["isError"], false, "a byte order mark is passed over: {answer:#}");
    let chain = std::fs::read_to_string(pair.state.join("audit.jsonl")).expect("the audit chain");
    let runs = chain.lines().filter(|line| line.contains(r#""kind":"accepted""#)).count();
    assert_eq!(runs, 9, "something of a refused message ran");
}

#[test]
fn one_long_call_holds_up_nothing_else() {
    let pair = pair();
    let client = client(&pair);
    let slow = client.begin_call("wait", json!({"seconds": 300}));
    processes::wait_until("the long call runs", SOON, || sleeps(&pair) == 1);
    assert!(client.tools().contains_key("say"));
    assert_eq!(client.call("say", json!({"word": "meanwhile"})).stdout(), "meanwhile");
    assert_eq!(client.answer_within(slow, Duration::ZERO), None);
}

#[test]
fn a_client_that_closes_its_end_leaves_nothing_running() {
    let pair = pair();
    let mut client = client(&pair);
    client.begin_call("wait", json!({"seconds": 300}));
    processes::wait_until("the long call runs", SOON, || sleeps(&pair) == 1);
    let (status, took) = client.close();
    assert!(status.success() && took < Duration::from_secs(5), "{status} after {took:?}");
    processes::wait_until("the program has ended", SOON, || sleeps(&pair) == 0);
}

#[test]
fn a_user_who_is_not_allowed_is_told_the_way_out() {
    let scene = Scene::new();
    let say = scene.exec("say", &[&scene.probe(), "print", "hello"]);
    let pair = scene.pair(&[say]);
    let client = client(&pair);
    let refused = client.ask("tools/list", json!({}));
    let text = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("gloveport token allow-user"), "{refused:#}");
}

/// Runs a client that starts the bridge itself.
fn lists_and_calls(mut client: Command) -> Value {
    let pair = pair();
    let bridge = stdio::gloveport(&pair.scene);
    client
        .args(["say", r#"{"word": "Grüße, 世界"}"#])
        .arg(bridge.get_program())
        .args(bridge.get_args())
        .arg("stdio");
    client.env_remove("GLOVEPORT_URL").env_remove("GLOVEPORT_TOKEN");
    let output = client.stdin(Stdio::null()).output().expect("starting a client");
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    let said: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("not JSON: {complained}"));
    assert!(said["tools"].as_array().is_some_and(|tools| tools.contains(&json!("wait"))), "{said:#}");
    assert_eq!(said["structured"]["steps"][0]["stdout"], "Grüße, 世界\n", "{said:#}");
    said
}

#[test]
fn the_official_python_sdk_starts_it() {
    lists_and_calls(clients::python("mcp", "python_sdk_stdio.py"));
}

#[test]
fn fastmcp_starts_it() {
    lists_and_calls(clients::python("fastmcp", "fastmcp_stdio.py"));
}

#[test]
fn the_typescript_sdks_start_it() {
    lists_and_calls(clients::node("typescript_sdk_v1_stdio.mjs"));
    lists_and_calls(clients::node("typescript_sdk_v2_stdio.mjs"));
}
