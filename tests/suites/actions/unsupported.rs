#![forbid(unsafe_code)]
//! What this host lacks: named in the list of tools, by `gloveport tools`, `status` and `doctor`, and in the
//! refusal of a call. A catalogue that loads is no proof that each action runs.

use super::{as_client, audit, gloveport, printed};
use gloveport_tests::{Pair, Scene, processes};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// Each action that cannot run here, and what the reason names.
const REASONS: [(&str, &str); 7] = [
    ("program", "/nonexistent/program does not exist"),
    ("account", "no-such-account"),
    ("group", "no-such-group"),
    ("path", "/nonexistent/data"),
    ("write-path", "/nonexistent/spool"),
    ("child", "/nonexistent/child"),
    ("step", "/nonexistent/second"),
];

fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let printing = |name: &str, keys: Value| scene.probing(name, &["print", "x"]).with(keys);
    let actions = [
        scene.exec("program", &["/nonexistent/program"]),
        printing("account", json!({"run_as": "no-such-account"})),
        printing("group", json!({"groups": ["no-such-group"]})),
        printing("path", json!({"sandbox": {"read": ["/nonexistent/data"]}})),
        printing("write-path", json!({"sandbox": {"write": ["/nonexistent/spool"]}})),
        printing("child", json!({"sandbox": {"exec": ["/nonexistent/child"]}})),
        scene.action(
            "step",
            json!({"steps": [
                {"name": "first", "exec": [probe, "print", "x"]},
                {"name": "second", "exec": ["/nonexistent/second"]},
            ]}),
        ),
        printing(
            "optional",
            json!({"groups": ["?no-such-group"], "sandbox": {"read": ["?/nonexistent/data"], "write": ["?/nonexistent/spool"]}}),
        ),
        printing("plain", json!({})),
    ];
    scene.pair(&actions)
}

#[test]
fn the_list_of_tools_names_the_reason_and_a_call_is_refused_with_it() {
    let pair = pair();
    let list = pair.ask("tools/list", json!({}));
    let tool = |name: &str| {
        let tools = list["result"]["tools"].as_array().expect("tools");
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap_or_else(|| panic!("{name} is not listed"))
            .clone()
    };
    for (name, reason) in REASONS {
        let tool = tool(name);
        let (description, meta) =
            (tool["description"].to_string(), tool["_meta"]["gloveport/unsupported"].to_string());
        assert!(description.contains("unsupported on this host") && description.contains(reason), "{tool:#}");
        assert!(meta.contains(reason), "{tool:#}");
        let result = pair.call(name, json!({}));
        assert!(result.is_error() && result.text().contains(reason), "{name}: {:#}", result.0);
        assert!(result.structured()["steps"].is_null(), "no step of it may run: {:#}", result.0);
    }
    for name in ["optional", "plain"] {
        assert!(tool(name)["_meta"]["gloveport/unsupported"].is_null());
        assert_eq!(pair.call(name, json!({})).stdout(), "x");
    }
    let refusals =
        audit(&pair.state).lines().filter(|line| line.contains("\"rule\":\"unsupported\"")).count();
    assert_eq!(refusals, REASONS.len());
}

#[test]
fn what_may_be_absent_is_told_by_each_result() {
    let pair = pair();
    let result = pair.call("optional", json!({}));
    let absent = result.structured()["enforcement"]["absent"].to_string();
    for what in ["no-such-group", "/nonexistent/data", "/nonexistent/spool"] {
        assert!(absent.contains(what), "{what}: {absent}");
    }
    assert_eq!(pair.call("plain", json!({})).structured()["enforcement"]["absent"], json!([]));
}

#[test]
fn tools_status_and_doctor_tell_a_person() {
    let pair = pair();
    let tools = printed(&as_client(&pair, &["tools"]));
    let status = printed(&gloveport(&pair.scene, &["status"]));
    let doctor = gloveport(&pair.scene, &["doctor", "--json"]);
    let checks: Value =
        serde_json::from_slice(&doctor.stdout).unwrap_or_else(|_| panic!("{}", printed(&doctor)));
    let doctor = checks.to_string();
    for (name, reason) in REASONS {
        assert!(tools.contains(&format!("{name}  [read]\n    not on this host: ")), "{name}: {tools}");
        assert!(tools.contains(reason), "{reason}: {tools}");
        assert!(status.contains(name) && status.contains(reason), "{name}: {status}");
    }
    // `doctor` names the first ones, and where the others are.
    assert!(
        doctor.contains("7 actions cannot run on this host") && doctor.contains("gloveport status"),
        "{doctor}"
    );
    assert!(REASONS.iter().filter(|(_, reason)| doctor.contains(reason)).count() >= 5, "{doctor}");
    let plain = tools
        .split_once("plain  [read]\n")
        .map(|(_, rest)| rest.lines().next().unwrap_or_default().to_owned());
    assert!(plain.is_some_and(|line| !line.contains("not on this host")), "{tools}");
}

#[test]
fn what_appears_or_vanishes_later_is_noticed_by_the_call() {
    let scene = Scene::new();
    let late = scene.root.join("bin/late").display().to_string();
    let action = scene.exec("late", &[&late, "print", "x"]);
    let pair = scene.pair(&[action]);
    assert!(pair.call("late", json!({})).is_error());
    fs::copy(pair.scene.probe(), &late).expect("the program");
    processes::wait_until("it runs", Duration::from_secs(5), || !pair.call("late", json!({})).is_error());
    fs::remove_file(&late).expect("removing");
    let gone = pair.call("late", json!({}));
    assert!(gone.is_error() && gone.text().contains("does not exist"), "{:#}", gone.0);
}
