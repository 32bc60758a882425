//! The protocol on the real pair: as raw bytes, as both of its eras, and as unmodified clients speak it.

mod batch;
mod clients;
mod flight;
mod form;
mod legacy;
mod load;
mod loopback;
mod modern;
mod schema;
mod subscriptions;
mod tools;
mod wire;

use gloveport_tests::{Pair, Scene};
use serde_json::json;

/// A pair with a tool for each way a call can go.
fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let step = |name: &str| json!({"name": name, "exec": [probe, "print", name]});
    let actions = [
        scene.any_probe(),
        scene.probing("fail", &["exit", "3"]),
        scene.exec("missing", &["/nonexistent/program"]),
        scene.action("steps", json!({"steps": [step("one"), step("two"), step("three")]})),
        scene.probing("late", &["print-sleep", "20000", "so far"]).with(json!({"timeout": "500ms"})),
    ];
    scene.pair(&actions)
}
