//! What a person is given to paste into a client, and what is said when a client cannot connect.

use gloveport_tests::mcp::Endpoint;
use gloveport_tests::pair::Pair;
use gloveport_tests::scene::Scene;
use serde_json::{Value, json};
use std::process::Output;

fn pair() -> Pair {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    scene.pair(&[hello])
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// `gloveport client-config NAME` for the pair.
fn settings(pair: &Pair, client: &str) -> String {
    let url = format!("http://{}{}", pair.endpoint.address, pair.endpoint.path);
    let token = pair.endpoint.token.clone().unwrap_or_default();
    let output = pair.gloveport(&["client-config", client, "--url", &url, "--token", &token]);
    assert!(output.status.success(), "{client}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_known_client_gets_settings_that_name_this_daemon() {
    let pair = pair();
    let port = pair.endpoint.address.rsplit(':').next().unwrap_or_default();
    for client in ["claude-desktop", "claude-code", "cursor", "vscode", "codex", "ufo", "goose", "json"] {
        let text = settings(&pair, client);
        // Claude Desktop starts a program; that one finds the daemon by its state.
        assert!(text.contains(port) || text.contains("stdio"), "{client}: {text}");
    }
    let unknown = pair.gloveport(&["client-config", "emacs"]);
    assert_eq!(unknown.status.code(), Some(64), "{}", said(&unknown));
    assert!(said(&unknown).contains("claude-desktop"), "{}", said(&unknown));
}

#[test]
fn every_known_client_gets_settings_that_lead_to_other_hosts() {
    let pair = pair();
    for client in ["claude-desktop", "claude-code", "cursor", "vscode", "codex", "ufo", "goose", "json"] {
        let output = pair.gloveport(&["client-config", client, "--host", "web1", "--host", "ops@db1:2222"]);
        assert!(output.status.success(), "{client}: {}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: String = text.chars().filter(|c| !c.is_whitespace() && !"\",[]".contains(*c)).collect();
        assert!(words.contains("stdio--hostweb1--hostops@db1:2222"), "{client}: {text}");
        assert!(!text.contains("PASTE") && !text.contains("--state"), "{client}: {text}");
    }
    let no_host = pair.gloveport(&["client-config", "json", "--host=-oProxyCommand=id"]);
    assert_eq!(no_host.status.code(), Some(64), "{}", said(&no_host));
}

#[test]
fn the_settings_are_enough_to_call() {
    let pair = pair();
    let text = settings(&pair, "json");
    let parsed: Value = serde_json::from_str(&text).expect("JSON");
    let server = &parsed["mcpServers"]["gloveport"];
    let token = server["headers"]["Authorization"].as_str().and_then(|value| value.strip_prefix("Bearer "));
    let endpoint = Endpoint::of(server["url"].as_str().expect("a URL"), token);
    assert_eq!(endpoint.call("hello", json!({})).stdout(), "hello");
}

#[test]
fn doctor_goes_the_way_of_a_client_and_names_the_step_that_fails() {
    let pair = pair();
    let url = format!("http://{}{}", pair.endpoint.address, pair.endpoint.path);
    let added = pair.add_token("second", &[]);
    let doctor = |url: &str, token: &str| {
        pair.gloveport_with(&[("GLOVEPORT_TOKEN", token)], &["doctor", "--client", url])
    };
    let fine = doctor(&url, added["token"].as_str().unwrap_or_default());
    assert_eq!(fine.status.code(), Some(0), "{}", said(&fine));
    for (url, token, step) in
        [(url.as_str(), "gp_wrong", "FAIL  token"), ("http://127.0.0.1:1/mcp", "gp_wrong", "FAIL  connect")]
    {
        let failed = doctor(url, token);
        assert_eq!(failed.status.code(), Some(2), "{}", said(&failed));
        assert!(said(&failed).contains(step) && said(&failed).contains("→"), "{}", said(&failed));
    }
}
