//! UFO's LinuxAgent, unmodified: fastmcp 2.11.3, a client for each call, against the packaged catalogue.

use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Pair, Scene, clients, processes};
use serde_json::{Value, json};
use std::time::Duration;

/// The packaged catalogue, with a few programs whose end is known.
fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let closed = scene.file("closed", "not a program");
    let rules = [
        json!({"name": "probe", "exec": probe, "any": true}),
        json!({"name": "missing", "exec": "/nonexistent/program", "any": true}),
        json!({"name": "closed", "exec": closed, "any": true}),
    ];
    let catalog = scene.linux_agent(&rules);
    scene.pair_of(&[&catalog])
}

/// What UFO gets: one answer for each call.
fn drive(endpoint: &Endpoint, calls: &Value) -> Vec<Value> {
    let said = clients::run(clients::python("fastmcp-ufo", "ufo.py"), endpoint, &[&calls.to_string()]);
    said["results"].as_array().cloned().unwrap_or_default()
}

fn commands(endpoint: &Endpoint, commands: &[&str]) -> Vec<Value> {
    let calls: Vec<Value> =
        commands.iter().map(|command| json!(["execute_command", {"command": command}])).collect();
    let answers = drive(endpoint, &json!(calls));
    for (answer, command) in answers.iter().zip(commands) {
        assert_eq!(answer["status"], "success", "{command}: {answer:#}");
    }
    answers.into_iter().map(|answer| answer["result"].clone()).collect()
}

#[test]
fn it_lists_the_two_tools_as_it_needs_them() {
    let pair = pair();
    let said = clients::run(clients::python("fastmcp-ufo", "ufo.py"), &pair.endpoint, &["[]"]);
    let tools = &said["tools"];
    let execute = &tools["execute_command"];
    assert_eq!(execute["schema"]["required"], json!(["command"]), "{execute:#}");
    for parameter in ["command", "timeout", "cwd", "api_key"] {
        assert!(execute["schema"]["properties"][parameter].is_object(), "{parameter}: {execute:#}");
    }
    assert!(execute["description"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(tools["get_system_info"].is_object(), "{tools:#}");
}

/// The capability path of a token made for it.
fn by_path(pair: &Pair) -> Endpoint {
    let token = pair.add_token("ufo-path", &["--via", "path"])["token"].as_str().expect("a token").to_owned();
    Endpoint { path: format!("/mcp/t/{token}"), token: None, ..pair.endpoint.clone() }
}

#[test]
fn the_capability_path_works_without_any_header() {
    let pair = pair();
    let endpoint = by_path(&pair);
    let calls = json!([["execute_command", {"command": "uname -s", "timeout": 30, "cwd": "/tmp"}]]);
    assert_eq!(drive(&endpoint, &calls)[0]["result"]["stdout"], "Linux\n");

    // The path is a secret: it is in no log and in no record.
    let secret = endpoint.path.rsplit('/').next().expect("a token");
    let audit = std::fs::read_to_string(pair.state.join("audit.jsonl")).expect("the audit chain");
    assert!(!audit.contains(secret) && !pair.log().contains(secret));

    let wrong = Endpoint { path: "/mcp/t/gp_wrong".into(), ..endpoint };
    let client = clients::python("fastmcp-ufo", "ufo.py");
    assert!(!clients::try_run(client, &wrong, &["[]"]).status.success(), "a wrong path was accepted");
}

#[test]
fn the_key_as_an_argument_works_without_any_header() {
    let pair = pair();
    let open = Endpoint { token: None, ..pair.endpoint.clone() };
    let client = || clients::python("fastmcp-ufo", "ufo.py");
    assert!(!clients::try_run(client(), &open, &["[]"]).status.success(), "no token was made for arguments");

    let token = pair.add_token("ufo-argument", &["--via", "argument"])["token"].clone();
    let call = |key: Value| json!(["execute_command", {"command": "uname -s", "api_key": key}]);
    let calls = json!([
        call(token.clone()),
        call(json!("gp_wrong")),
        ["execute_command", {"command": "uname -s"}],
        ["get_system_info", {"api_key": token}],
    ]);
    let said = clients::run(client(), &open, &[&calls.to_string()]);
    let mut tools: Vec<&String> = said["tools"].as_object().expect("tools").keys().collect();
    tools.sort();
    assert_eq!(tools, ["execute_command", "get_system_info"], "only these take a key");

    let answers = &said["results"];
    assert_eq!(answers[0]["result"]["stdout"], "Linux\n", "{answers:#}");
    for wrong in [1, 2] {
        assert_eq!(answers[wrong]["result"]["success"], false, "{answers:#}");
        assert!(
            answers[wrong]["result"]["error"].as_str().is_some_and(|text| !text.is_empty()),
            "{answers:#}"
        );
        assert_eq!(answers[wrong]["result"]["stdout"], Value::Null, "{answers:#}");
    }
    assert!(answers[3]["result"]["uname"].is_string(), "{answers:#}");
}

#[test]
fn a_working_directory_must_exist() {
    let pair = pair();
    let at = |cwd: &str| json!(["execute_command", {"command": "pwd", "cwd": cwd}]);
    let answers =
        drive(&pair.endpoint, &json!([at("/etc"), at("/nonexistent"), at("etc"), at("/etc/hostname")]));
    assert_eq!(answers[0]["result"]["stdout"], "/etc\n", "{:#}", answers[0]);
    for answer in &answers[1..] {
        assert_eq!(answer["result"]["success"], false, "{answer:#}");
        assert!(answer["result"]["error"].as_str().is_some_and(|text| text.contains("cwd")), "{answer:#}");
    }
}

#[test]
fn exit_codes_are_those_of_a_shell() {
    let pair = pair();
    let cases = [
        ("echo hello", 0),
        ("test 1 = 2", 1),
        ("ls /nonexistent", 2),
        ("probe exit 42", 42),
        ("closed", 126),
        ("missing", 127),
        ("probe signal 9", 137),
        ("probe signal 15", 143),
    ];
    let results = commands(&pair.endpoint, &cases.map(|(command, _)| command));
    for ((command, code), result) in cases.iter().zip(&results) {
        assert_eq!(result["exit_code"], *code, "{command}: {result:#}");
        assert_eq!(result["success"], *code == 0, "{command}: {result:#}");
    }
    assert_eq!(results[0]["stdout"], "hello\n");
    assert!(results[2]["stderr"].as_str().is_some_and(|text| text.contains("No such file")));
    assert_eq!(results[5]["error"], "Command not found: missing");
}

#[test]
fn a_refusal_is_a_result_that_says_why() {
    let pair = pair();
    let results = commands(&pair.endpoint, &["rm -rf /", "top -b -n 1 | head -n 10"]);
    for result in results {
        assert_eq!(result["success"], false, "{result:#}");
        assert!(
            result["error"].as_str().is_some_and(|text| text.contains("blocked by policy")),
            "{result:#}"
        );
    }
}

#[test]
fn a_sleeper_ends_at_its_timeout() {
    let pair = pair();
    let sleeper =
        |timeout: Value| json!(["execute_command", {"command": "probe sleep 20000", "timeout": timeout}]);
    let answers = drive(&pair.endpoint, &json!([sleeper(json!(1)), sleeper(json!(-5)), sleeper(json!(0))]));
    for answer in answers {
        let result = &answer["result"];
        assert_eq!(result["success"], false, "{answer:#}");
        assert_eq!(result["error"], "Timeout after 1s.", "{answer:#}");
        // fastmcp's own six requests around a call take their time on a loaded machine.
        assert!(answer["seconds"].as_f64().is_some_and(|seconds| seconds < 4.0), "{answer:#}");
    }
    processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(1));
}

#[test]
fn invalid_bytes_and_other_scripts_arrive() {
    let pair = pair();
    let results =
        commands(&pair.endpoint, &["probe bytes 61fffe62", "echo Grüße 世界 🦀", "probe complain ошибка"]);
    assert_eq!(results[0]["stdout"], "a\u{fffd}\u{fffd}b");
    assert_eq!(results[1]["stdout"], "Grüße 世界 🦀\n");
    assert_eq!(results[2]["stderr"], "ошибка\n");
}

#[test]
fn system_information_has_its_four_parts() {
    let pair = pair();
    let answers = drive(&pair.endpoint, &json!([["get_system_info", {}]]));
    let info = &answers[0]["result"];
    for (part, text) in
        [("uname", "Linux"), ("uptime", "load average"), ("memory", "Mem:"), ("disk", "Filesystem")]
    {
        assert!(info[part].as_str().is_some_and(|said| said.contains(text)), "{part}: {info:#}");
    }
}

#[test]
fn an_unknown_tool_is_a_failure_and_no_crash() {
    let pair = pair();
    let answers =
        drive(&pair.endpoint, &json!([["no_such_tool", {}], ["execute_command", {"command": "echo ok"}]]));
    assert_eq!(answers[0]["status"], "failure");
    assert_eq!(answers[1]["result"]["stdout"], "ok\n");
}

#[test]
fn one_conversation_chooses_branches_and_recovers() {
    // Each command is chosen from the answer before: the next file from a listing, a branch on an exit code, a
    // second try after an error.
    let scene = Scene::new();
    scene.file("2024.log", "ok\nERROR disk full\n");
    scene.file("2023.log", "ok\n");
    let root = scene.root.display().to_string();
    let catalog = scene.linux_agent(&[]);
    let pair = scene.pair_of(&[&catalog]);
    let run = |command: String| commands(&pair.endpoint, &[&command]).remove(0);

    let listing = run(format!("find {root} -maxdepth 1 -name 20*.log"));
    let listing = listing["stdout"].as_str().expect("a listing").to_owned();
    let newest = listing.lines().max().expect("a log");
    assert!(newest.ends_with("2024.log"), "{listing}");

    let found = run(format!("grep -n ERROR {newest}"));
    assert_eq!(found["exit_code"], 0, "{found:#}");
    let line = found["stdout"].as_str().and_then(|text| text.split(':').next()).expect("a line").to_owned();
    let context = run(format!("head -n {line} {newest}"));
    assert!(
        context["stdout"].as_str().is_some_and(|text| text.ends_with("ERROR disk full\n")),
        "{context:#}"
    );

    let oldest = listing.lines().min().expect("a log");
    assert_eq!(run(format!("grep -c ERROR {oldest}"))["exit_code"], 1);
    let failed = run(format!("cat {root}/2025.log"));
    assert_eq!(failed["success"], false);
    let blocked = run(format!("cat {newest} | wc -l"));
    assert!(blocked["error"].as_str().is_some_and(|text| text.contains("pipe")), "{blocked:#}");
    let retried = run(format!("wc -l {newest}"));
    assert!(retried["stdout"].as_str().is_some_and(|text| text.starts_with('2')), "{retried:#}");
}
