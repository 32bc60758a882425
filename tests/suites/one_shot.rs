//! One-shot exec: once the program has started, there is no second program image in its tree.
//!
//! Each way to one is tried from inside, by a program that the pair runs. What would be executed prints
//! `SECOND`; nothing may. Each has its twin: with the child declared, it runs.

use gloveport_tests::action::Action;
use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene};
use serde_json::json;

/// A static program beside the probe: its bytes are the probe's, and it may be read and executed by all.
fn second_program(scene: &Scene) -> String {
    let bytes = std::fs::read(scene.probe()).expect("the probe");
    scene.program("second-program", bytes)
}

/// The action `probe`, with everything readable: only the exec itself is in question.
fn all_readable(scene: &Scene) -> Action {
    scene.any_probe().with(json!({"sandbox": {"read": ["/usr", scene.root]}}))
}

fn assert_refused(result: &ToolResult, what: &[&str]) {
    assert_eq!(result.stdout(), "errno EPERM", "{what:?}: {:#}", result.0);
}

#[test]
fn no_exec_by_any_call_descriptor_or_thread() {
    let scene = Scene::new();
    let second = second_program(&scene);
    let script = scene.program("script", "#!/bin/sh\necho SECOND\n");
    let text = scene.program("text", "echo SECOND\n");
    let action = all_readable(&scene);
    let pair = scene.pair(&[action]);
    let (here, empty) = ("-100", "4096");
    let attempts: [&[&str]; 13] = [
        &["exec2", "/usr/bin/id"],
        &["exec2", &second, "print", "SECOND"],
        &["exec2", &script],
        &["exec2", &text],
        &["execveat", here, "/usr/bin/id", "0"],
        &["execveat", here, "/usr/bin/id", empty],
        &["execveat-file", "/usr/bin/id"],
        &["execveat-k", ""],
        &["execveat-k", "/usr/bin/id"],
        &["execveat-onto-k", "/usr/bin/id"],
        &["ldso", "/usr/bin/id"],
        &["fork-exec", "/usr/bin/id"],
        &["thread-exec", "/usr/bin/id"],
    ];
    for words in attempts {
        assert_refused(&pair.probe(words), words);
    }
    assert_refused(&pair.probe(&["memfd-exec", &second]), &["memfd-exec"]);
}

#[test]
fn no_memory_at_the_page_that_the_first_exec_took_its_path_from() {
    let scene = Scene::new();
    let action = all_readable(&scene);
    let pair = scene.pair(&[action]);
    let attempts = [
        "mmap-low",
        "mmap-low-once",
        "mmap-hint",
        "mmap-below",
        "mremap-low",
        "mremap-keep",
        "vdso-low",
        "shmat-low",
        "set-mm-low",
        "remap-low",
        "mmap-growsdown",
    ];
    for attempt in attempts {
        assert_refused(&pair.probe(&[attempt, "/usr/bin/id"]), &[attempt]);
    }
    // Filling the address space ends at its limit, before the kernel has only that page left to give.
    let filled = pair.probe(&["fill-low", "/usr/bin/id"]);
    assert_eq!(filled.stdout(), "errno ENOMEM", "{:#}", filled.0);
}

#[test]
fn a_wrapper_starts_and_can_start_nothing() {
    let scene = Scene::new();
    let all = json!({"sandbox": {"read": ["/usr"]}});
    let actions = [
        scene.exec("env", &["/usr/bin/env", "/usr/bin/id"]).with(all.clone()),
        scene.exec("timeout", &["/usr/bin/timeout", "5", "/usr/bin/id"]).with(all.clone()),
        scene.exec("xargs", &["/usr/bin/xargs", "/usr/bin/id"]).with(all.clone()),
        scene.exec("find", &["/usr/bin/find", "/etc/hostname", "-exec", "/usr/bin/id", ";"]).with(all),
    ];
    let pair = scene.pair(&actions);
    for action in &actions {
        let result = pair.call(action.name(), json!({}));
        assert_eq!(result.stdout(), "", "{}: {:#}", action.name(), result.0);
        let complaint = result.step(0)["stderr"].as_str().unwrap_or_default();
        assert!(complaint.contains("Operation not permitted"), "{}: {complaint}", action.name());
    }
}

#[test]
fn an_interpreter_may_interpret_and_can_start_nothing() {
    let scene = Scene::new();
    let scripts = json!({"allow_interpreter": true, "sandbox": {"read": ["/usr"]}});
    let actions = [
        scene.exec("shell", &["/bin/sh", "-c", "echo first; /usr/bin/id"]).with(scripts.clone()),
        scene
            .exec(
                "python",
                &[
                    "/usr/bin/python3",
                    "-c",
                    "print('first', flush=True); import os; os.execv('/usr/bin/id', ['id'])",
                ],
            )
            .with(scripts),
    ];
    let pair = scene.pair(&actions);
    for action in &actions {
        let result = pair.call(action.name(), json!({}));
        assert_eq!(result.stdout(), "first", "{}: {:#}", action.name(), result.0);
        assert_ne!(result.structured()["exit_code"], 0, "{:#}", result.0);
    }
}

#[test]
fn declared_children_run_and_no_others() {
    let scene = Scene::new();
    let second = second_program(&scene);
    let mut action = all_readable(&scene);
    action = action.with(json!({"sandbox": {"read": ["/usr"], "exec": [second]}}));
    let env = scene.exec("env", &["/usr/bin/env", &second, "print", "SECOND"]);
    let env = env.with(json!({"sandbox": {"exec": [second]}}));
    let pair = scene.pair(&[action, env]);
    assert_eq!(pair.probe(&["exec2", &second, "print", "SECOND"]).stdout(), "SECOND");
    assert_eq!(pair.call("env", json!({})).stdout(), "SECOND");
    let other = pair.probe(&["exec2", "/usr/bin/id"]);
    assert_eq!(other.stdout(), "errno EACCES", "{:#}", other.0);
    assert_eq!(other.structured()["enforcement"]["one_shot_exec"], false);
}

#[test]
fn the_result_says_that_it_was_in_force() {
    let pair = Pair::with_probe();
    let result = pair.probe(&["print", "x"]);
    assert_eq!(result.structured()["enforcement"]["one_shot_exec"], true, "{:#}", result.0);
}
