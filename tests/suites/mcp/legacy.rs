//! The revisions with `initialize`, on the wire: negotiation, sessions, and errors that go with 200.

use super::pair;
use super::wire::{ACCEPTED, EMPTY, JSON, Outcome, RESULT, body, check, legacy, notification, with};
use gloveport_tests::Pair;
use gloveport_tests::http::{Request, Response};
use serde_json::{Value, json};

const NO_METHOD: Outcome = (200, JSON, -32601);
const BAD_PARAMS: Outcome = (200, JSON, -32602);
const NO_SESSION: Outcome = (404, JSON, -32600);
const UNSUPPORTED: Outcome = (400, JSON, -32022);
const ENDED: Outcome = (204, EMPTY, 0);

fn initialize(pair: &Pair, version: &str) -> Request {
    let client = json!({"name": "gloveport-tests", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    legacy(pair, json!(1), "initialize", params)
}

fn session(response: &Response) -> String {
    response.header("mcp-session-id").expect("a session").to_owned()
}

fn call(pair: &Pair, params: Value) -> Request {
    legacy(pair, json!(1), "tools/call", params)
}

#[test]
fn initialize_echoes_a_known_version_and_offers_the_newest_for_any_other() {
    let pair = pair();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2030-01-01", "2025-11-25"),
        ("junk", "2025-11-25"),
    ] {
        let result = pair.send(&initialize(&pair, asked)).messages()[0]["result"].clone();
        assert_eq!(result["protocolVersion"], given, "{asked}");
        assert_eq!(result["capabilities"], json!({"tools": {}}), "only what exists");
        assert_eq!(result["serverInfo"]["name"], "gloveport");
    }
    check(&pair, [("no version", legacy(&pair, json!(1), "initialize", json!({})), BAD_PARAMS)]);
}

#[test]
fn a_call_is_served_without_a_session_and_at_any_time() {
    let pair = pair();
    let version =
        |value: &str| with(legacy(&pair, json!(1), "tools/list", json!({})), "MCP-Protocol-Version", value);
    check(
        &pair,
        [
            ("ping before initialize", legacy(&pair, json!(1), "ping", json!({})), RESULT),
            ("no version header", legacy(&pair, json!(1), "tools/list", json!({})), RESULT),
            ("an older version", version("2024-11-05"), RESULT),
            ("an unknown version", version("1900-01-01"), UNSUPPORTED),
            ("no version at all", version("not-a-version"), UNSUPPORTED),
            ("an id of 0", legacy(&pair, json!(0), "ping", json!({})), RESULT),
            ("an id that is a text", legacy(&pair, json!("a"), "ping", json!({})), RESULT),
        ],
    );
    let refused = pair.send(&version("1900-01-01")).messages()[0]["error"]["data"].clone();
    assert!(
        refused["supported"].as_array().is_some_and(|all| all.contains(&json!("2025-11-25"))),
        "{refused}"
    );
    let echoed = pair.send(&legacy(&pair, json!("a"), "ping", json!({})));
    assert_eq!(echoed.messages(), [json!({"jsonrpc": "2.0", "id": "a", "result": {}})]);
}

#[test]
fn errors_of_the_protocol_go_with_200() {
    let pair = pair();
    check(
        &pair,
        [
            ("an unknown method", legacy(&pair, json!(1), "no/such/method", json!({})), NO_METHOD),
            ("resources", legacy(&pair, json!(1), "resources/list", json!({})), NO_METHOD),
            ("prompts", legacy(&pair, json!(1), "prompts/list", json!({})), NO_METHOD),
            ("an unknown tool", call(&pair, json!({"name": "nope"})), BAD_PARAMS),
            ("no name", call(&pair, json!({"arguments": {}})), BAD_PARAMS),
            ("arguments in a list", call(&pair, json!({"name": "fail", "arguments": []})), BAD_PARAMS),
            ("arguments as a text", call(&pair, json!({"name": "fail", "arguments": "{}"})), BAD_PARAMS),
            ("arguments null", call(&pair, json!({"name": "fail", "arguments": null})), RESULT),
            (
                "a cursor that no page gave",
                legacy(&pair, json!(1), "tools/list", json!({"cursor": "x"})),
                BAD_PARAMS,
            ),
        ],
    );
    let missing = pair.send(&call(&pair, json!({"name": "probe", "arguments": null})));
    let result = missing.messages()[0]["result"].clone();
    assert_eq!(result["isError"], true, "a missing argument is for the model to see: {result:#}");
}

#[test]
fn a_session_is_its_caller_s_and_ends_when_it_is_told_to() {
    let pair = pair();
    let opened = session(&pair.send(&initialize(&pair, "2025-11-25")));
    let ping = |id: &str| legacy(&pair, json!(1), "ping", json!({})).header("Mcp-Session-Id", id);
    let delete = |id: &str| {
        let request = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", id);
        request.header("Authorization", &format!("Bearer {}", pair.token.clone().unwrap()))
    };
    let stranger = pair.add_token("stranger", &[]);
    let stranger = format!("Bearer {}", stranger["token"].as_str().expect("a token"));
    check(
        &pair,
        [
            ("the session", ping(&opened), RESULT),
            ("somebody else's", with(ping(&opened), "Authorization", &stranger), NO_SESSION),
            ("somebody else ends it", with(delete(&opened), "Authorization", &stranger), NO_SESSION),
            ("an id that never was", ping("dead"), NO_SESSION),
            ("two ids", ping(&opened).header("Mcp-Session-Id", &opened), NO_SESSION),
            (
                "a notification",
                notification(&pair, "notifications/initialized", json!({})).header("Mcp-Session-Id", &opened),
                ACCEPTED,
            ),
            ("its end", delete(&opened), ENDED),
            ("its second end", delete(&opened), NO_SESSION),
            ("a call after it", ping(&opened), NO_SESSION),
        ],
    );
    let stale = pair.send(&initialize(&pair, "2025-11-25").header("Mcp-Session-Id", &opened));
    assert_eq!(stale.status, 200, "a stale id begins anew");
    assert_ne!(session(&stale), opened);
}

#[test]
fn both_eras_are_served_side_by_side() {
    let pair = pair();
    let modern = pair.ask("tools/list", json!({}))["result"]["tools"].clone();
    let legacy = pair.send(&legacy(&pair, json!(1), "tools/list", json!({})));
    assert_eq!(legacy.messages()[0]["result"]["tools"], modern);
    let claimed = body(&pair, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string());
    check(&pair, [("without parameters", claimed, RESULT)]);
}
