//! What is no proper request is refused with the right status, content type and error code, before anything
//! of it is obeyed.

use super::pair;
use super::wire::{
    ACCEPTED, EMPTY, INVALID, JSON, Outcome, PARSE, RESULT, STREAM, body, check, legacy, notification, with,
};
use gloveport_tests::http::Request;
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Pair, processes};
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

const FORBIDDEN: Outcome = (403, JSON, -32600);
const UNAUTHORIZED: Outcome = (401, JSON, -32600);
const NOT_ACCEPTABLE: Outcome = (406, JSON, -32600);
const UNSUPPORTED_TYPE: Outcome = (415, JSON, -32600);
const NOT_ALLOWED: Outcome = (405, EMPTY, 0);

fn ping(pair: &Pair) -> Request {
    legacy(pair, json!(1), "ping", json!({}))
}

/// How many runs the helper has begun.
fn runs(pair: &Pair) -> usize {
    let chain = std::fs::read_to_string(pair.state.join("audit.jsonl")).unwrap_or_default();
    chain.lines().filter(|line| line.contains(r#""kind":"accepted""#)).count()
}

#[test]
fn host_and_origin_are_checked_first() {
    let pair = pair();
    let port = pair.address.rsplit(':').next().expect("a port");
    let host = |value: &str| ping(&pair).header("Host", value);
    let origin = |value: &str| ping(&pair).header("Origin", value);
    let target = |target: &str| {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        body(&Endpoint { path: target.to_owned(), ..pair.endpoint.clone() }, message)
    };
    check(
        &pair,
        [
            ("localhost without a port", host("localhost"), RESULT),
            ("localhost with any port", host("localhost:1"), RESULT),
            ("LOCALHOST", host("LOCALHOST"), RESULT),
            ("IPv6", host(&format!("[::1]:{port}")), RESULT),
            ("a foreign host", host("evil.example"), FORBIDDEN),
            (
                "a foreign host before anything is parsed",
                with(host("evil.example"), "Accept", "x"),
                FORBIDDEN,
            ),
            ("a foreign host before the token", host("evil.example").without("Authorization"), FORBIDDEN),
            ("a prefix", host("localhost.evil.example"), FORBIDDEN),
            ("a public name of the loopback address", host("127.0.0.1.nip.io"), FORBIDDEN),
            ("user information", host("localhost@evil.example"), FORBIDDEN),
            ("two hosts", host("localhost").header("Host", "localhost"), (400, JSON, -32600)),
            ("an absolute target", target("http://localhost/mcp"), RESULT),
            ("a foreign absolute target", target("http://evil.example/mcp"), FORBIDDEN),
            ("a local origin", origin(&format!("http://localhost:{port}")), RESULT),
            ("a local origin by address", origin("http://127.0.0.1"), RESULT),
            ("a local IPv6 origin", origin("http://[::1]:99"), RESULT),
            ("origin null", origin("null"), FORBIDDEN),
            ("a foreign origin", origin("http://evil.example"), FORBIDDEN),
            ("an origin's prefix", origin("http://localhost.evil.example"), FORBIDDEN),
            ("user information in an origin", origin("http://127.0.0.1@evil.example"), FORBIDDEN),
            ("two origins", origin("http://localhost").header("Origin", "http://localhost"), FORBIDDEN),
            ("a page elsewhere", ping(&pair).header("Sec-Fetch-Site", "cross-site"), FORBIDDEN),
            ("a page of this server", ping(&pair).header("Sec-Fetch-Site", "same-origin"), RESULT),
        ],
    );
}

#[test]
fn a_token_comes_in_one_header_or_as_a_capability_and_never_in_the_query() {
    let pair = pair();
    let token = pair.token.clone().expect("a token");
    let capability = pair.add_token("capability", &["--via", "path"]);
    let secret = capability["token"].as_str().expect("a token");
    let bearer = |value: &str| with(ping(&pair), "Authorization", value);
    let path = |path: &str| {
        legacy(
            &Endpoint { path: path.into(), token: None, ..pair.endpoint.clone() },
            json!(1),
            "ping",
            json!({}),
        )
    };
    check(
        &pair,
        [
            ("the scheme's case", bearer(&format!("bEARER {token}")), RESULT),
            ("no token", path("/mcp"), UNAUTHORIZED),
            ("a wrong token", bearer("Bearer gp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), UNAUTHORIZED),
            ("another scheme", bearer(&format!("Basic {token}")), UNAUTHORIZED),
            ("two headers", ping(&pair).header("Authorization", &format!("Bearer {token}")), UNAUTHORIZED),
            ("in the query", path(&format!("/mcp?token={token}")), UNAUTHORIZED),
            ("a capability", path(&format!("/mcp/t/{secret}")), RESULT),
            ("a capability and a slash", path(&format!("/mcp/t/{secret}/")), RESULT),
            ("a capability as a bearer", bearer(&format!("Bearer {secret}")), UNAUTHORIZED),
            ("a bearer as a capability", path(&format!("/mcp/t/{token}")), UNAUTHORIZED),
            (
                "the path with a slash",
                path("/mcp/").header("Authorization", &format!("Bearer {token}")),
                RESULT,
            ),
        ],
    );
    let refused = pair.send(&path("/mcp"));
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{refused:?}");
    for well_known in
        ["oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"]
    {
        let response = pair.send(&Request::new("GET", &format!("/.well-known/{well_known}")));
        assert_eq!(response.status, 404, "{well_known}");
    }
}

#[test]
fn post_is_the_only_method_with_and_without_a_token() {
    let pair = pair();
    for method in ["GET", "HEAD", "PUT", "PATCH", "OPTIONS", "DELETE"] {
        let bare = Request::new(method, "/mcp").header("Accept", STREAM);
        let known = bare.clone().header("Authorization", &format!("Bearer {}", pair.token.clone().unwrap()));
        check(&pair, [(method, bare.clone(), NOT_ALLOWED), (method, known, NOT_ALLOWED)]);
        assert_eq!(pair.send(&bare).header("allow"), Some("POST"), "{method}");
    }
}

#[test]
fn content_type_and_accept_are_what_the_protocol_asks_for() {
    let pair = pair();
    let kind = |value: &str| with(ping(&pair), "Content-Type", value);
    let accept = |value: &str| with(ping(&pair), "Accept", value);
    check(
        &pair,
        [
            ("parameters", kind("Application/JSON; charset=utf-8"), RESULT),
            ("no content type", ping(&pair).without("Content-Type"), UNSUPPORTED_TYPE),
            ("text", kind("text/plain"), UNSUPPORTED_TYPE),
            ("a form", kind("application/x-www-form-urlencoded"), UNSUPPORTED_TYPE),
            ("no Accept", ping(&pair).without("Accept"), NOT_ACCEPTABLE),
            ("JSON alone", accept("application/json"), NOT_ACCEPTABLE),
            ("a stream alone", accept("text/event-stream"), NOT_ACCEPTABLE),
            ("the other order", accept("text/event-stream, application/json"), RESULT),
            ("two lines", accept("text/event-stream").header("Accept", "application/json"), RESULT),
            ("everything", accept("*/*"), RESULT),
            ("weights", accept("application/json;q=0.1, text/event-stream;q=0.5"), RESULT),
            ("a weight of nothing", accept("application/json, text/event-stream;q=0"), NOT_ACCEPTABLE),
        ],
    );
}

#[test]
fn a_body_is_one_message() {
    let pair = pair();
    let raw = |text: &str| body(&pair, text);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail","arguments":{}}}"#;
    check(
        &pair,
        [
            ("nothing", raw(""), PARSE),
            ("half an object", raw("{"), PARSE),
            (
                "no UTF-8",
                body(&pair, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\x97\"}".as_slice()),
                PARSE,
            ),
            ("a byte order mark", raw("\u{feff}{}"), PARSE),
            ("two documents", raw(&format!("{call}{call}")), PARSE),
            ("a lone surrogate", raw(r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#), PARSE),
            ("an empty batch", raw("[]"), INVALID),
            ("a batch", raw(&format!("[{call},{call}]")), INVALID),
            ("no method", raw(r#"{"jsonrpc":"2.0","id":1}"#), INVALID),
            ("a response", raw(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), INVALID),
            ("another version", raw(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), INVALID),
            ("id null", raw(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#), INVALID),
            ("id 1.5", raw(r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#), INVALID),
            ("parameters in a list", raw(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#), INVALID),
            ("a notification", notification(&pair, "notifications/initialized", json!({})), ACCEPTED),
            ("an unknown notification", notification(&pair, "notifications/x", json!({})), ACCEPTED),
        ],
    );
    assert_eq!(runs(&pair), 0, "something of a refused body ran");
}

#[test]
fn a_key_that_stands_twice_is_refused_and_case_makes_another_key() {
    let pair = pair();
    let raw = |rest: &str| body(&pair, format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#));
    let params = |params: &str| raw(&format!(r#""method":"tools/call","params":{{{params}}}"#));
    check(
        &pair,
        [
            ("method", raw(r#""method":"ping","method":"tools/list""#), INVALID),
            ("name", params(r#""name":"fail","name":"probe""#), INVALID),
            ("name, escaped", params(r#""name":"fail","n\u0061me":"probe""#), INVALID),
            ("an argument", params(r#""name":"fail","arguments":{"a":1,"a":2}"#), INVALID),
        ],
    );
    assert_eq!(runs(&pair), 0, "something of a refused body ran");
    check(&pair, [("Name beside name", params(r#""name":"fail","Name":"probe""#), RESULT)]);
    assert_eq!(runs(&pair), 1);
}

#[test]
fn deep_nesting_is_refused_and_harms_nobody() {
    let pair = pair();
    let nested = |depth: usize| {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let params = format!(r#"{{"name":"fail","arguments":{{"x":{deep}}}}}"#);
        body(&pair, format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
    };
    check(
        &pair,
        [
            ("200 deep", nested(200), PARSE),
            ("100,000 deep", nested(100_000), PARSE),
            ("what comes after", ping(&pair), RESULT),
        ],
    );
}

#[test]
fn a_long_body_is_refused_while_it_comes_in() {
    let pair = pair();
    let daemon = pair.process("gloveportd").pid;
    let before = processes::resident(daemon);
    let long = vec![b'x'; 8 << 20];
    let chunked = |bytes: &[u8]| {
        let mut coded = Vec::new();
        for chunk in bytes.chunks(1 << 16) {
            write!(coded, "{:x}\r\n", chunk.len()).expect("writing into memory");
            coded.extend_from_slice(chunk);
            coded.extend_from_slice(b"\r\n");
        }
        coded.extend_from_slice(b"0\r\n\r\n");
        body(&pair, coded).header("Transfer-Encoding", "chunked")
    };
    let short = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.as_bytes();
    check(
        &pair,
        [
            ("8 MiB", body(&pair, long.clone()), (413, JSON, -32600)),
            ("8 MiB of unknown length", chunked(&long), (413, JSON, -32600)),
            ("a short body in chunks", chunked(short), RESULT),
        ],
    );
    // Nothing of these comes: they are refused by their length, long before a body is given up waiting for.
    let begun = Instant::now();
    let declared = |length: &str| body(&pair, "").header("Content-Length", length);
    let expecting = declared("10000000000").header("Expect", "100-continue");
    check(
        &pair,
        [
            ("10 GB are declared", declared("10000000000"), (413, JSON, -32600)),
            ("10 GB are declared, and waited with", expecting, (413, JSON, -32600)),
        ],
    );
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let grown = processes::resident(daemon).saturating_sub(before);
    assert!(grown < 8 * 1024, "the daemon grew by {grown} KiB");
}
