//! Revision 2026-07-28 on the wire: the ladder of checks, what is gone, and what every result says of itself.

use super::pair;
use super::wire::{ACCEPTED, EMPTY, JSON, Outcome, RESULT, check, legacy, notification, with};
use gloveport_tests::Pair;
use gloveport_tests::http::Request;
use gloveport_tests::mcp::VERSION;
use serde_json::{Value, json};

const BAD_ENVELOPE: Outcome = (400, JSON, -32602);
const MISMATCH: Outcome = (400, JSON, -32020);
const UNSUPPORTED: Outcome = (400, JSON, -32022);
const NO_METHOD: Outcome = (404, JSON, -32601);
/// After dispatch an error of the parameters goes with 200, as clients expect of a result.
const BAD_PARAMS: Outcome = (200, JSON, -32602);

/// A request with all headers, and with that `_meta`.
fn with_meta(pair: &Pair, meta: Value) -> Request {
    let request = legacy(pair, json!(1), "tools/list", json!({"_meta": meta}));
    request.header("MCP-Protocol-Version", VERSION).header("Mcp-Method", "tools/list")
}

#[test]
fn the_first_rung_of_the_ladder_that_fails_decides() {
    let pair = pair();
    let list = || pair.request("tools/list", json!({}));
    let call = || pair.request("tools/call", json!({"name": "fail"}));
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let newer = json!({version: "2030-01-01", capabilities: {}});
    check(
        &pair,
        [
            ("a list", list(), RESULT),
            ("a call", call(), RESULT),
            ("no _meta", with_meta(&pair, Value::Null), BAD_ENVELOPE),
            ("no version", with_meta(&pair, json!({capabilities: {}})), BAD_ENVELOPE),
            ("no capabilities", with_meta(&pair, json!({version: VERSION})), BAD_ENVELOPE),
            ("no version header", list().without("MCP-Protocol-Version"), MISMATCH),
            ("another version header", with(list(), "MCP-Protocol-Version", "2025-11-25"), MISMATCH),
            ("two version headers", list().header("MCP-Protocol-Version", VERSION), MISMATCH),
            ("no method header", list().without("Mcp-Method"), MISMATCH),
            ("another method header", with(list(), "Mcp-Method", "tools/call"), MISMATCH),
            ("the method in capitals", with(list(), "Mcp-Method", "TOOLS/LIST"), MISMATCH),
            ("no name header", call().without("Mcp-Name"), MISMATCH),
            ("another name header", with(call(), "Mcp-Name", "probe"), MISMATCH),
            ("the name in base64", with(call(), "Mcp-Name", "=?base64?ZmFpbA==?="), RESULT),
            ("another name in base64", with(call(), "Mcp-Name", "=?base64?cHJvYmU=?="), MISMATCH),
            ("bad base64", with(call(), "Mcp-Name", "=?base64?ZmFpbA?="), MISMATCH),
            (
                "a newer version",
                with(with_meta(&pair, newer), "MCP-Protocol-Version", "2030-01-01"),
                UNSUPPORTED,
            ),
            ("an old session", list().header("Mcp-Session-Id", "gone"), RESULT),
            ("an old event id", list().header("Last-Event-ID", "7"), RESULT),
        ],
    );
    let request = pair.request("tools/list", json!({}));
    let newer = json!({version: "2030-01-01", capabilities: {}});
    let refused = pair.send(&with(with_meta(&pair, newer), "MCP-Protocol-Version", "2030-01-01"));
    let data = refused.messages()[0]["error"]["data"].clone();
    assert_eq!(data, json!({"supported": [VERSION], "requested": "2030-01-01"}));
    assert_eq!(pair.send(&request).header("mcp-session-id"), None);
}

#[test]
fn what_the_revision_has_removed_is_unknown() {
    let pair = pair();
    let removed = [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/list",
        "prompts/list",
        "completion/complete",
        "tasks/get",
        "no/such/method",
    ];
    check(&pair, removed.map(|method| (method, pair.request(method, json!({})), NO_METHOD)));
    let cancelled = notification(&pair, "notifications/cancelled", json!({"requestId": 1}));
    let cancelled = cancelled.header("MCP-Protocol-Version", VERSION);
    check(&pair, [("a cancellation, which is a closed stream here", cancelled, ACCEPTED)]);
    let get = Request::new("GET", "/mcp").header("MCP-Protocol-Version", VERSION);
    check(&pair, [("GET", get, (405, EMPTY, 0))]);
}

#[test]
fn parameters_of_a_call_have_one_form() {
    let pair = pair();
    let call = |params: Value| pair.request("tools/call", params);
    check(
        &pair,
        [
            ("an unknown tool", call(json!({"name": "nope", "arguments": {}})), BAD_PARAMS),
            ("no name", call(json!({})), BAD_PARAMS),
            ("arguments in a list", call(json!({"name": "fail", "arguments": []})), BAD_PARAMS),
            ("arguments as a text", call(json!({"name": "fail", "arguments": "{}"})), BAD_PARAMS),
            (
                "a token with a fraction",
                {
                    let request = legacy(
                        &pair,
                        json!(1),
                        "tools/call",
                        json!({"name": "fail", "_meta": {
                            "io.modelcontextprotocol/protocolVersion": VERSION,
                            "io.modelcontextprotocol/clientCapabilities": {},
                            "progressToken": 1.5,
                        }}),
                    );
                    let request = request.header("MCP-Protocol-Version", VERSION);
                    request.header("Mcp-Method", "tools/call").header("Mcp-Name", "fail")
                },
                BAD_PARAMS,
            ),
            ("arguments left out", call(json!({"name": "fail"})), RESULT),
            ("arguments null", call(json!({"name": "fail", "arguments": null})), RESULT),
            ("a cursor that no page gave", pair.request("tools/list", json!({"cursor": "x"})), BAD_PARAMS),
            ("an empty cursor", pair.request("tools/list", json!({"cursor": ""})), RESULT),
        ],
    );
}

#[test]
fn every_result_says_how_it_is_to_be_read_and_who_gave_it() {
    let pair = pair();
    let discovered = pair.ask("server/discover", json!({}))["result"].clone();
    assert_eq!(discovered["supportedVersions"], json!([VERSION]));
    assert_eq!(discovered["capabilities"], json!({"tools": {"listChanged": true}}), "only what exists");
    let listed = pair.ask("tools/list", json!({}))["result"].clone();
    for kept in [&discovered, &listed] {
        assert!(kept["ttlMs"].as_u64().is_some(), "{kept:#}");
        assert_eq!(kept["cacheScope"], "private", "what is listed depends on the token");
    }
    let called = pair.call("fail", json!({})).0;
    for result in [&discovered, &listed, &called] {
        assert_eq!(result["resultType"], "complete", "{result:#}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "gloveport");
    }
}
