//! The built-in handlers in the pair, against real servers. What each handler does by itself is shown beside it
//! (`daemon/handler/tests`).

mod canary;
mod cancel;
mod doctor;

use gloveport_tests::action::Action;
use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// An action that runs any statement at that server.
fn query(scene: &Scene, name: &str, config: Value) -> Action {
    scene.action(
        name,
        json!({
            "params": {"sql": {"type": "string", "max_length": 1000}},
            "builtin": "mysql_query", "builtin_config": config, "timeout": "60s",
        }),
    )
}

/// An action that runs any listed command at that server.
fn command(scene: &Scene, name: &str, config: Value) -> Action {
    scene.action(
        name,
        json!({
            "params": {"command": {"type": "list", "items": {"type": "string"}, "default": ["GET", "app:a"]}},
            "builtin": "redis_command", "builtin_config": config,
        }),
    )
}

/// Where the pair looks for a credential of that name.
fn place(pair: &Pair, name: &str) -> PathBuf {
    pair.state.join("credentials").join(name)
}

/// Writes a credential as an administrator should.
fn credential(pair: &Pair, name: &str, text: &str) {
    let place = place(pair, name);
    fs::write(&place, text).expect("writing a credential");
    fs::set_permissions(&place, Permissions::from_mode(0o600)).expect("chmod");
}
