//! What the pair gives a program, as the program itself sees it.

use gloveport_tests::golden::assert_golden;
use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};

/// What the probe saw.
fn state(result: &ToolResult) -> Value {
    serde_json::from_str(&result.stdout()).unwrap_or_else(|_| panic!("not JSON: {:#}", result.0))
}

/// The same on every host: numbers of this run are words, and limits that the host sets are left out.
fn portable(scene: &Scene, mut state: Value) -> String {
    let of_the_host =
        ["locked memory", "msgqueue size", "nice priority", "pending signals", "realtime priority"];
    if let Some(limits) = state["rlimits"].as_object_mut() {
        limits.retain(|name, _| !of_the_host.contains(&name.as_str()));
    }
    format!("{state:#}\n")
        .replace(&scene.run.number.to_string(), "RUN")
        .replace(&scene.root.display().to_string(), "SCENE")
}

#[test]
fn identity_capabilities_descriptors_limits_and_signals_are_as_recorded() {
    let pair = Pair::with_probe();
    let seen = state(&pair.probe(&["state"]));
    assert_golden("what_a_program_gets.json", &portable(&pair.scene, seen));
}

#[test]
fn what_an_action_declares_is_given_and_nothing_beside_it() {
    let scene = Scene::new();
    let directory = scene.own_directory("work");
    let action = scene.any_probe().with(json!({
        "groups": ["tty", "adm"],
        "cwd": directory,
        "env": {"GREETING": "hello", "EMPTY": ""},
        "limits": {"processes": 7, "memory": "256MiB", "file_size": "1MiB", "open_files": 64, "cpu": "5s"},
    }));
    let pair = scene.pair(&[action]);
    let seen = state(&pair.probe(&["state"]));
    assert_golden("what_an_action_declares.json", &portable(&pair.scene, seen));
}

#[test]
fn nothing_of_the_daemons_environment_reaches_a_program() {
    let scene = Scene::new();
    let probe = scene.any_probe();
    // `gloveport up` inherits it, and its two programs would.
    let pair = scene.with_environment("DATABASE_URL", "postgres://user:secret@host/").pair(&[probe]);
    let seen = state(&pair.probe(&["state"]));
    assert_eq!(seen["environment"].get("DATABASE_URL"), None, "{seen:#}");
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let scene = Scene::new();
    let action = scene.action("argv", json!({
        "params": {"words": {"type": "list", "items": {"type": "string", "pattern": "(?s).*", "allow_dash": true}}},
        "exec": [scene.probe(), "argv", "{words}"],
    }));
    let pair = scene.pair(&[action]);
    let words = [
        "", " ", "a b", "$(id)", "`id`", "; id", "a\nb", "a\\", "%s%n", "'", "\"", "*", "~", "-rf", "--",
        "{words}", "\u{202e}", "日本", "\u{7f}",
    ];
    let result = pair.call("argv", json!({"params": {"words": words}}));
    let seen = state(&result);
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let expected: Vec<String> = words.iter().map(|word| hex(word)).collect();
    assert_eq!(
        seen.as_array().map(|all| &all[2..]),
        Some(&expected.iter().map(|word| json!(word)).collect::<Vec<_>>()[..])
    );
}

#[test]
fn standard_input_is_at_its_end() {
    let pair = Pair::with_probe();
    assert_eq!(pair.probe(&["stdin"]).stdout(), "0");
}
