//! Tools as agents like them: described, bounded, in order, and only those that the caller may call.

use super::pair;
use gloveport_tests::action::Action;
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};

fn listed(pair: &Pair, token: &str) -> Vec<String> {
    pair.with_token(token).tools()
}

fn with_risk(scene: &Scene, name: &str, risk: &str) -> Action {
    scene.exec(name, &["/usr/bin/true"]).with(json!({"risk": risk}))
}

fn tool(pair: &Pair, name: &str) -> Value {
    let tools = pair.ask("tools/list", json!({}))["result"]["tools"].clone();
    let found = tools.as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == name));
    found.cloned().unwrap_or_else(|| panic!("{name} is not listed"))
}

#[test]
fn every_page_continues_the_one_before_in_the_order_of_names() {
    let scene = Scene::new();
    let actions: Vec<_> = (0..450).map(|n| scene.exec(&format!("tool-{n:03}"), &["/usr/bin/true"])).collect();
    let pair = scene.pair(&actions);
    let (mut names, mut cursor, mut pages) = (Vec::new(), None::<Value>, 0);
    loop {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let page = pair.ask("tools/list", params)["result"].clone();
        let tools = page["tools"].as_array().expect("tools").clone();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()));
        pages += 1;
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    let mut expected: Vec<String> = (0..450).map(|n| format!("tool-{n:03}")).collect();
    expected.insert(0, "run_batch".to_owned());
    assert_eq!(names, expected);
    assert_eq!(pages, 3);
}

#[test]
fn a_token_sees_what_it_may_call_and_nothing_else() {
    let scene = Scene::new();
    let actions = [("disk_free", "read"), ("disk_clean", "write"), ("net_reset", "dangerous")];
    let actions = actions.map(|(name, risk)| with_risk(&scene, name, risk));
    let pair = scene.pair(&actions);
    let token = |name: &str, words: &[&str]| {
        pair.add_token(name, words)["token"].as_str().expect("a token").to_owned()
    };
    let all = token("all", &["--max-risk", "dangerous"]);
    assert_eq!(listed(&pair, &all), ["disk_clean", "disk_free", "net_reset", "run_batch"]);
    let reader = token("reader", &[]);
    assert_eq!(listed(&pair, &reader), ["disk_free", "run_batch"]);
    let disks = token("disks", &["--allow", "disk_*", "--max-risk", "write"]);
    assert_eq!(listed(&pair, &disks), ["disk_clean", "disk_free"]);
    let refused = pair.with_token(&disks).call("net_reset", json!({}));
    assert!(refused.is_error() && refused.text().contains("(rule: allow)"), "{:#}", refused.0);
    let refused =
        pair.with_token(&disks).call("run_batch", json!({"commands": [{"tool_name": "disk_free"}]}));
    assert!(refused.is_error(), "{:#}", refused.0);
}

#[test]
fn annotations_follow_the_risk() {
    let scene = Scene::new();
    let page = scene.action(
        "page",
        json!({"builtin": "http_get", "builtin_config": {"url_prefixes": ["http://127.0.0.1:1/"]},
            "params": {"url": {"type": "string", "max_length": 100}}}),
    );
    let [look, change, wipe] = [("look", "read"), ("change", "write"), ("wipe", "dangerous")]
        .map(|(name, risk)| with_risk(&scene, name, risk));
    let pair = scene.pair(&[look, change, wipe, page]);
    for (name, read_only, destructive, idempotent, open) in [
        ("look", true, false, true, false),
        ("change", false, false, false, false),
        ("wipe", false, true, false, false),
        ("page", true, false, true, true),
    ] {
        let tool = tool(&pair, name);
        assert_eq!(
            tool["annotations"],
            json!({"title": tool["title"], "readOnlyHint": read_only, "destructiveHint": destructive,
                "idempotentHint": idempotent, "openWorldHint": open}),
            "{name}"
        );
    }
}

#[test]
fn a_tool_states_its_bounds_and_says_how_it_is_called_right() {
    let scene = Scene::new();
    let log = scene.exec("read_log", &["/usr/bin/echo", "{unit}", "{lines}"]).with(json!({
        "title": "Read a log", "description": "Lines of a unit's log.", "timeout": "7s", "max_output": "4KiB",
        "params": {
            "unit": {"type": "string", "pattern": "[a-z]+", "max_length": 20, "description": "The unit."},
            "lines": {"type": "integer", "min": 1, "max": 500, "default": 50},
        },
        "filters": ["match", "tail"],
    }));
    let pair = scene.pair(&[log]);
    let tool = tool(&pair, "read_log");
    assert_eq!(tool["title"], "Read a log");
    for stated in ["Lines of a unit's log.", "7s", "4096 bytes"] {
        assert!(tool["description"].as_str().is_some_and(|text| text.contains(stated)), "{stated}: {tool:#}");
    }
    let params = &tool["inputSchema"]["properties"]["params"];
    assert_eq!(params["required"], json!(["unit"]));
    assert_eq!(params["properties"]["lines"]["maximum"], 500);
    assert_eq!(params["properties"]["lines"]["default"], 50);
    assert_eq!(tool["outputSchema"]["type"], "object");

    for (arguments, told) in [
        (json!({"params": {"unit": "sshd", "lines": 501}}), "lines"),
        (json!({"params": {"unit": "SSHD"}}), "unit"),
        (json!({"params": {}}), "unit"),
        (json!({"params": {"unit": "sshd", "more": 1}}), "more"),
        (json!({"unit": "sshd"}), "put it into `params`"),
        (json!({"params": {"unit": "sshd"}, "head": 1}), "head"),
        (json!({"params": {"unit": "sshd"}, "tail": 0}), "tail"),
    ] {
        let result = pair.call("read_log", arguments.clone());
        assert!(result.is_error(), "{arguments}: {:#}", result.0);
        assert!(result.text().contains(told), "{arguments}: {}", result.text());
        assert!(result.text().contains("Call `read_log` with"), "{arguments}: {}", result.text());
        assert!(result.structured().is_null());
    }
    assert_eq!(pair.call("read_log", json!({"params": {"unit": "sshd"}})).stdout(), "sshd 50");
}

#[test]
fn a_failed_run_is_an_error_without_structure_and_an_exit_code_is_an_answer() {
    let pair = pair();
    let missing = pair.call("missing", json!({}));
    assert!(missing.is_error() && missing.structured().is_null(), "{:#}", missing.0);
    let failed = pair.call("fail", json!({}));
    assert!(!failed.is_error(), "{:#}", failed.0);
    assert_eq!(failed.structured()["exit_code"], 3);
    let late = pair.call("late", json!({}));
    assert!(late.is_error() && late.text().contains("Timeout after"), "{:#}", late.0);
    assert_eq!(late.stdout(), "so far", "what was printed until then counts");
}

#[test]
fn without_a_token_only_tools_that_take_one_as_an_argument_are_seen() {
    let scene = Scene::new();
    let catalog = scene.linux_agent(&[]);
    let pair = scene.pair_of(&[&catalog]);
    let keyless = Endpoint { token: None, ..pair.endpoint.clone() };
    assert_eq!(
        keyless.send(&keyless.request("tools/list", json!({}))).status,
        401,
        "no such token exists yet"
    );
    let added = pair.add_token("ufo", &["--via", "argument", "--max-risk", "dangerous"]);
    let secret = added["token"].as_str().expect("a token");
    assert_eq!(keyless.tools(), ["execute_command", "get_system_info"]);
    let call = |key: Value| keyless.call("execute_command", json!({"command": "echo hi", "api_key": key}));
    assert_eq!(call(json!(secret)).structured()["stdout"], "hi\n");
    for wrong in [json!("gp_wrong"), json!(null), json!("")] {
        let result = call(wrong.clone());
        let error = result.structured()["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.starts_with("Invalid API key"), "{wrong}: {:#}", result.0);
    }
    let chain = std::fs::read_to_string(pair.state.join("audit.jsonl")).expect("an audit chain");
    assert!(!chain.contains(secret), "the key stands in the audit chain");
}
