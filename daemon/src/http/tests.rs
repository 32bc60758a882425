#![forbid(unsafe_code)]
//! The router as a client sees it, without a helper: what is answered before anything runs.

use super::{AppState, Peer, router};
use crate::config::Config;
use crate::helper;
use crate::mcp::MODERN;
use crate::paths::Paths;
use crate::policy::Policy;
use crate::run::Runner;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use gloveport_contract::token::digest;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tower::ServiceExt;

/// A router and the directory that holds its tokens.
struct Server {
    router: Router,
    dir: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A server whose tokens are `gp_header` and `gp_path`, and `gp_argument` where keys are wanted.
fn server(name: &str, keys: bool) -> Server {
    let dir = std::env::temp_dir().join(format!("gloveport-http-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let token = |via: &str| {
        json!({"name": via, "id": via, "sha256": digest(&format!("gp_{via}")), "via": [via],
            "scope": {"allow": ["*"], "max_risk": "read"}})
    };
    let mut tokens = vec![token("header"), token("path")];
    tokens.extend(keys.then(|| token("argument")));
    std::fs::write(dir.join("tokens.json"), json!({"tokens": tokens}).to_string()).unwrap();
    let paths = Paths::for_state(&dir);
    let policy = Policy::new(paths.clone(), helper::Peer::SameUser);
    let runner = Runner::new(&paths, helper::Peer::SameUser, policy.clone());
    let config = Arc::new(Config { body_limit: 4096, ..Config::default() });
    Server { router: router(AppState::new(policy, runner, config)), dir }
}

/// A POST to `/mcp` that is right in everything; `headers` replaces, and an empty value takes away.
fn post(body: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let defaults = [
        ("host", "localhost:8010"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", "Bearer gp_header"),
    ];
    let mut request = Request::post("/mcp");
    for (name, value) in defaults {
        if !headers.iter().any(|(other, _)| *other == name) {
            request = request.header(name, value);
        }
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

async fn send(server: &Server, mut request: Request<Body>) -> Response<Body> {
    request.extensions_mut().insert(Peer::Tcp("127.0.0.1:9".parse().unwrap()));
    server.router.clone().oneshot(request).await.unwrap()
}

/// Status, headers and document of the answer.
async fn ask(server: &Server, request: Request<Body>) -> (u16, HeaderMap, Value) {
    let (parts, body) = send(server, request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), parts.headers, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Status and error code (0 for none) of a POST.
async fn outcome(server: &Server, body: &str, headers: &[(&str, &str)]) -> (u16, i64) {
    let (status, _, document) = ask(server, post(body, headers)).await;
    (status, document["error"]["code"].as_i64().unwrap_or(0))
}

fn request(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn modern(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(method, params)
}

#[tokio::test]
async fn each_fault_of_form_has_its_status() {
    let server = server("form", false);
    let ping = request("ping", json!({}));
    let long = format!("\"{}\"", "x".repeat(5000));
    for (headers, body, expected) in [
        (&[][..], ping.as_str(), (200, 0)),
        (&[("host", "")], &ping, (400, -32600)),
        (&[("host", "evil.example")], &ping, (403, -32600)),
        (&[("origin", "null")], &ping, (403, -32600)),
        (&[("authorization", "")], &ping, (401, -32600)),
        (&[("authorization", "Bearer gp_path")], &ping, (401, -32600)),
        (&[("content-type", "text/plain")], &ping, (415, -32600)),
        (&[("accept", "application/json")], &ping, (406, -32600)),
        (&[], &long, (413, -32600)),
        (&[], "[]", (400, -32600)),
        (&[], "{", (400, -32700)),
        (&[], r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, (400, -32600)),
        (&[("mcp-protocol-version", "not-a-version")], &ping, (400, -32022)),
        (&[("mcp-session-id", "dead")], &ping, (404, -32600)),
    ] {
        assert_eq!(outcome(&server, body, headers).await, expected, "{headers:?} {body:.60}");
    }
}

#[tokio::test]
async fn a_401_carries_a_challenge_and_a_405_the_method() {
    let server = server("challenge", false);
    let (_, headers, _) = ask(&server, post("{}", &[("authorization", "")])).await;
    assert_eq!(headers["www-authenticate"], "Bearer");
    for method in ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"] {
        let request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
        let (status, headers, _) = ask(&server, request.body(Body::empty()).unwrap()).await;
        assert_eq!((status, headers["allow"].to_str().unwrap()), (405, "POST"), "{method}");
    }
}

#[tokio::test]
async fn the_other_paths_are_what_they_should_be() {
    let server = server("paths", false);
    for (path, headers, expected) in [
        ("/mcp/", &[][..], 200),
        ("/mcp/t/gp_path", &[("authorization", "")], 200),
        ("/mcp/t/gp_path/", &[("authorization", "")], 200),
        ("/mcp/t/gp_header", &[("authorization", "")], 401),
        ("/mcp?token=gp_path", &[("authorization", "")], 401),
        ("/healthz", &[("authorization", "")], 200),
        ("/.well-known/oauth-protected-resource", &[("authorization", "")], 404),
        ("/.well-known/oauth-authorization-server/mcp", &[("authorization", "")], 404),
    ] {
        let mut request = post(&request("ping", json!({})), headers);
        *request.uri_mut() = path.parse().unwrap();
        assert_eq!(ask(&server, request).await.0, expected, "{path}");
    }
}

#[tokio::test]
async fn a_notification_gets_202_and_nothing_else() {
    let server = server("notification", false);
    for method in ["notifications/initialized", "notifications/cancelled", "anything"] {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 9}}).to_string();
        for headers in [&[][..], &[("mcp-protocol-version", MODERN)]] {
            let response = send(&server, post(&body, headers)).await;
            assert_eq!(response.status(), StatusCode::ACCEPTED);
            assert!(!response.headers().contains_key("content-type"));
            assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
        }
    }
}

#[tokio::test]
async fn initialize_negotiates_and_opens_a_session_of_its_caller() {
    let server = server("initialize", false);
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        (MODERN, "2025-11-25"),
        ("2030-01-01", "2025-11-25"),
    ] {
        let body = request("initialize", json!({"protocolVersion": asked, "capabilities": {}}));
        let (status, headers, answer) = ask(&server, post(&body, &[("mcp-session-id", "stale")])).await;
        assert_eq!((status, answer["result"]["protocolVersion"].as_str()), (200, Some(given)), "{asked}");
        let session = headers["mcp-session-id"].to_str().unwrap();
        let ping = request("ping", json!({}));
        assert_eq!(outcome(&server, &ping, &[("mcp-session-id", session)]).await, (200, 0));
        let mut foreign = post(&ping, &[("mcp-session-id", session), ("authorization", "")]);
        *foreign.uri_mut() = "/mcp/t/gp_path".parse().unwrap();
        assert_eq!(ask(&server, foreign).await.0, 404);
        for expected in [204, 404] {
            let mut end = post("", &[("mcp-session-id", session)]);
            *end.method_mut() = axum::http::Method::DELETE;
            assert_eq!(ask(&server, end).await.0, expected);
        }
    }
    assert_eq!(outcome(&server, &request("initialize", json!({})), &[]).await, (200, -32602));
}

#[tokio::test]
async fn a_modern_request_is_answered_by_the_status_table() {
    let server = server("modern", false);
    for (method, params, name, expected) in [
        ("server/discover", json!({}), "", (200, 0)),
        ("tools/list", json!({}), "", (200, 0)),
        ("tools/list", json!({"cursor": "nonsense"}), "", (200, -32602)),
        ("tools/call", json!({"name": "x", "arguments": []}), "x", (200, -32602)),
        ("tools/call", json!({"name": "x"}), "y", (400, -32020)),
        ("tools/call", json!({"name": "x"}), "", (400, -32020)),
        ("ping", json!({}), "", (404, -32601)),
        ("initialize", json!({}), "", (404, -32601)),
        ("subscriptions/listen", json!({}), "", (200, -32602)),
    ] {
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method), ("mcp-name", name)];
        assert_eq!(
            outcome(&server, &modern(method, params.clone()), &headers).await,
            expected,
            "{method} {params}"
        );
    }
    assert_eq!(outcome(&server, &modern("tools/list", json!({})), &[]).await, (400, -32020));
    assert_eq!(outcome(&server, &request("server/discover", json!({})), &[]).await, (400, -32602));
}

#[tokio::test]
async fn discovery_says_what_is_served() {
    let server = server("discover", false);
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")];
    let (_, _, answer) = ask(&server, post(&modern("server/discover", json!({})), &headers)).await;
    let result = &answer["result"];
    assert_eq!(result["supportedVersions"], json!([MODERN]));
    assert_eq!(result["capabilities"], json!({"tools": {"listChanged": true}}));
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "gloveport");
}

#[tokio::test]
async fn without_a_catalogue_every_call_says_so() {
    let server = server("catalog", false);
    let call = request("tools/call", json!({"name": "disk", "arguments": {}}));
    let (status, _, answer) = ask(&server, post(&call, &[])).await;
    assert_eq!((status, &answer["result"]["isError"]), (200, &json!(true)));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("No catalogue is in force: "), "{text}");
}

#[tokio::test]
async fn where_keys_are_arguments_a_client_without_token_may_begin() {
    let server = server("keys", true);
    for (method, params) in [
        ("initialize", json!({"protocolVersion": "2025-11-25"})),
        ("tools/list", json!({})),
        ("ping", json!({})),
    ] {
        assert_eq!(outcome(&server, &request(method, params), &[("authorization", "")]).await, (200, 0));
    }
    let wrong = [("authorization", "Bearer nothing")];
    assert_eq!(outcome(&server, &request("ping", json!({})), &wrong).await.0, 401);
}

#[tokio::test]
async fn a_listener_is_acknowledged_first() {
    let server = server("listen", false);
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "subscriptions/listen")];
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let response = send(&server, post(&modern("subscriptions/listen", wanted), &headers)).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = response.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    let text = std::str::from_utf8(&first).unwrap();
    let message: Value = serde_json::from_str(text.split_once("data: ").unwrap().1.trim_end()).unwrap();
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(message["params"]["notifications"], json!({"toolsListChanged": true}));
}
