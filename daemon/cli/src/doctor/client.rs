#![forbid(unsafe_code)]
//! What a client would see at a URL, step by step, up to the step that fails.

use super::Check;
use crate::failure::{Failure, UNREACHABLE};
use crate::health;
use crate::http::{self, Endpoint};
use crate::mcp::{Daemon, DaemonArgs};
use gloveportd::paths::Paths;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// No step takes longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The newest protocol with a handshake, which most clients ask for.
const LEGACY: &str = "2025-11-25";

/// Goes through the steps.
pub fn examine(args: &DaemonArgs, paths: &Paths) -> Vec<Check> {
    let mut checks = Vec::new();
    // The first step that fails explains all that would follow.
    if let Err(failed) = steps(args, paths, &mut checks) {
        checks.push(failed);
    }
    checks
}

fn steps(args: &DaemonArgs, paths: &Paths, checks: &mut Vec<Check>) -> Result<(), Check> {
    let daemon = args.daemon(paths).map_err(|failure| Check::failure("url", &failure))?;
    checks.push(Check::ok(
        "url",
        format!("{} with the path {}", daemon.endpoint, shown_path(&daemon.endpoint)),
    ));
    daemon.connect().map_err(|failure| Check::failure("connect", &failure))?;
    checks.push(Check::ok("connect", "something listens there"));
    let status = health::daemon(&daemon.endpoint).map_err(|failure| Check::failure("gloveport", &failure))?;
    if status != "ok" {
        return Err(Check::fail(
            "gloveport",
            format!("it is gloveport, but: {status}"),
            "on that host: gloveport doctor",
        ));
    }
    checks.push(Check::ok("gloveport", "it is gloveport, and a catalogue is in force"));
    checks.push(token(&daemon)?);
    let discovered = daemon
        .request("server/discover", Map::new(), Some(PATIENCE), |_| {})
        .map_err(|failure| Check::failure("stateless", &failure))?;
    let versions = discovered.get("supportedVersions").cloned().unwrap_or_default();
    checks.push(Check::ok("stateless", format!("newer clients are answered; protocols: {versions}")));
    checks.push(handshake(&daemon)?);
    let tools = daemon.tools().map_err(|failure| Check::failure("tools", &failure))?;
    checks.push(if tools.is_empty() {
        Check::warn(
            "tools",
            "no tool is listed",
            "this token allows none of the catalogue's actions: gloveport token list",
        )
    } else {
        Check::ok("tools", format!("{} tools are listed", tools.len()))
    });
    Ok(())
}

fn shown_path(endpoint: &Endpoint) -> &str {
    if endpoint.path().starts_with("/mcp/t/") { "/mcp/t/…" } else { endpoint.path() }
}

/// Whether a token is wanted, and whether ours is one.
fn token(daemon: &Daemon) -> Result<Check, Check> {
    let in_path = daemon.endpoint.path().starts_with("/mcp/t/");
    match daemon.request("server/discover", Map::new(), Some(PATIENCE), |_| {}) {
        Ok(_) if in_path => Ok(Check::ok("token", "the one in the path is accepted")),
        Ok(_) if daemon.token.is_some() => Ok(Check::ok("token", "GLOVEPORT_TOKEN is accepted")),
        Ok(_) => {
            Ok(Check::ok("token", "none is presented; only tools that take one as an argument are listed"))
        }
        Err(failure) if failure.exit_code() == UNREACHABLE => Err(Check::failure("connect", &failure)),
        Err(failure) => Err(Check::failure("token", &failure)),
    }
}

/// What a client does that opens with `initialize`.
fn handshake(daemon: &Daemon) -> Result<Check, Check> {
    let failed = |failure: &Failure| Check::failure("handshake", failure);
    let broken = |error: std::io::Error| failed(&daemon.unreachable(&error));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "gloveport doctor", "version": env!("CARGO_PKG_VERSION")}}});
    let bearer = daemon.token.as_ref().map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.as_deref().map(|bearer| ("Authorization", bearer)).into_iter().collect();
    let stream = daemon.connect().map_err(|failure| failed(&failure))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    let body = message.to_string();
    let mut answer =
        http::send(stream, &daemon.endpoint, "POST", &headers, body.as_bytes()).map_err(broken)?;
    let status = answer.status;
    let body = answer.read_whole().map_err(broken)?;
    let reply: Value = serde_json::from_slice(&body).unwrap_or_default();
    match reply.pointer("/result/protocolVersion").and_then(Value::as_str) {
        Some(version) => {
            Ok(Check::ok("handshake", format!("older clients are answered with protocol {version}")))
        }
        None => Err(failed(&daemon.refusal(status, &body))),
    }
}
