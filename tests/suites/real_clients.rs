//! Unmodified MCP clients list the tools and call them, over HTTP with a bearer token.

use gloveport_tests::{Pair, Scene, clients};
use serde_json::{Value, json};
use std::process::Command;

fn pair() -> Pair {
    let scene = Scene::new();
    let disk = scene.exec("disk_usage", &["/usr/bin/df", "-h", "/"]);
    let say = scene.exec("say", &[&scene.probe(), "print", "{word}"]).with(json!({
        "params": {"word": {"type": "string"}},
    }));
    scene.pair(&[disk, say])
}

/// The client lists both tools, and `df -h` runs on this machine.
fn lists_and_calls(client: impl Fn() -> Command, words: &[&str]) -> Value {
    let pair = pair();
    let df = [&["disk_usage", "{}"], words].concat();
    let said = clients::run(client(), &pair.endpoint, &df);
    for tool in ["disk_usage", "say"] {
        assert!(said["tools"].as_array().is_some_and(|tools| tools.contains(&json!(tool))), "{said:#}");
    }
    assert_eq!(said["error"], false, "{said:#}");
    let step = &said["structured"]["steps"][0];
    assert!(step["stdout"].as_str().is_some_and(|text| text.starts_with("Filesystem")), "{said:#}");
    assert!(said["text"].as_str().is_some_and(|text| text.contains("Filesystem")), "{said:#}");

    let hello = [&["say", r#"{"params": {"word": "Grüße, 世界"}}"#], words].concat();
    let said = clients::run(client(), &pair.endpoint, &hello);
    assert_eq!(said["structured"]["steps"][0]["stdout"], "Grüße, 世界\n", "{said:#}");

    let stranger = pair.with_token("gp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let output = clients::try_run(client(), &stranger, &df);
    assert!(!output.status.success(), "a wrong token was accepted");
    said
}

#[test]
fn fastmcp() {
    lists_and_calls(|| clients::python("fastmcp", "fastmcp_http.py"), &[]);
}

#[test]
fn fastmcp_as_ufo_pins_it() {
    lists_and_calls(|| clients::python("fastmcp-ufo", "fastmcp_http.py"), &[]);
}

#[test]
fn the_official_python_sdk() {
    let said = lists_and_calls(|| clients::python("mcp", "python_sdk_http.py"), &[]);
    assert_eq!(said["protocol"], "2026-07-28");
}

#[test]
fn the_official_python_sdk_in_the_legacy_era() {
    let said = lists_and_calls(|| clients::python("mcp", "python_sdk_http.py"), &["legacy"]);
    assert_eq!(said["protocol"], "2025-11-25");
    assert_eq!(said["server"], "gloveport");
}

#[test]
fn the_official_python_sdk_of_the_first_generation() {
    let said = lists_and_calls(|| clients::python("mcp-legacy", "python_sdk_legacy_http.py"), &[]);
    assert_eq!(said["server"], "gloveport");
}

#[test]
fn the_typescript_sdk_of_the_first_generation() {
    lists_and_calls(|| clients::node("typescript_sdk_v1.mjs"), &[]);
}

#[test]
fn the_typescript_sdk() {
    lists_and_calls(|| clients::node("typescript_sdk_v2.mjs"), &[]);
    let said = lists_and_calls(|| clients::node("typescript_sdk_v2.mjs"), &["auto"]);
    assert_eq!(said["protocol"], "2026-07-28");
}
