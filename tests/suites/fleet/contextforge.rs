//! ContextForge's gateway, `mcp-contextforge-gateway` of PyPI: hosts are registered with it, each with its token.

use super::{Gateway, Host, failures_are_apart, free_port, load_is_borne, start, tokens_are_apart};
use gloveport_tests::http::Request;
use gloveport_tests::programs;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// It turns the line below into one in the middle.
const NAMES: [&str; 2] = ["web-say", "db-say"];
/// What it wants to have secrets for. They protect nothing here: it ends with the test.
const SECRETS: [&str; 5] = [
    "JWT_SECRET_KEY",
    "AUTH_ENCRYPTION_SECRET",
    "BASIC_AUTH_PASSWORD",
    "PLATFORM_ADMIN_PASSWORD",
    "DEFAULT_USER_PASSWORD",
];

/// One of its programs, with the settings of docs/fleet.md, and nothing of this machine's.
fn program(directory: &Path, words: &[&str]) -> Command {
    let python = programs::target().join("clients/contextforge/bin/python");
    assert!(python.exists(), "{} is missing; packaging/prerequisites.sh test makes it", python.display());
    let mut command = Command::new(python);
    command.arg("-m").args(words).current_dir(directory).env_clear().env("HOME", directory);
    command.env("PATH", "/usr/bin:/bin").env("LOG_LEVEL", "CRITICAL");
    for (number, name) in SECRETS.iter().enumerate() {
        command.env(name, format!("Of-1-test-only-{number}-4e9d0c7b6a5f48392817"));
    }
    let database = directory.join("gateway.db");
    command.env("DATABASE_URL", format!("sqlite:///{}", database.display()));
    command.env("SSRF_ALLOW_LOCALHOST", "true").env("CACHE_TYPE", "none").env("HEALTH_CHECK_INTERVAL", "2");
    command
}

/// A token of its administrator's.
fn administrator(directory: &Path) -> String {
    let claims = json!({"sub": "admin@example.com", "is_admin": true, "teams": null}).to_string();
    let mut command =
        program(directory, &["mcpgateway.utils.create_jwt_token", "--exp", "60", "--data", &claims]);
    let made = command.stderr(Stdio::null()).output().expect("making a token");
    let printed = String::from_utf8_lossy(&made.stdout);
    printed.lines().last().expect("a token").to_owned()
}

mod alone {
    use super::*;

    #[test]
    fn hosts_behind_contextforge_keep_their_names_their_tokens_and_their_failures_apart() {
        let (web, db) = (Host::new(1), Host::new(2));
        tokens_are_apart(&web, &db);
        let directory = &web.helper.scene.root;
        let port = free_port();
        let mut command =
            program(directory, &["mcpgateway.cli", "--host", "127.0.0.1", "--port", &port.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let gateway = start(command, port);
        let token = administrator(directory);
        let gateway = Gateway::of(gateway, port, &[&token]);
        for (name, host) in [("web", &web), ("db", &db)] {
            let message = json!({
                "name": name, "url": host.url(), "transport": "STREAMABLEHTTP",
                "auth_type": "bearer", "auth_token": host.token,
            });
            let request = Request::post("/gateways", message.to_string())
                .header("Content-Type", "application/json")
                .header("Authorization", &format!("Bearer {token}"));
            let registered = request.send(&format!("127.0.0.1:{port}")).expect("an answer");
            assert!(registered.status < 300, "{registered:?}");
        }
        failures_are_apart(&gateway, NAMES, &web);
        load_is_borne(&gateway, NAMES, &web, 2);
    }
}
