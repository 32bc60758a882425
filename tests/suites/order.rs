//! The order of confinement: one run, recorded call by call, is what `helper/AUDIT.md` says.

use gloveport_contract::packet::Outcome;
use gloveport_tests::Scene;
use gloveport_tests::stages;
use gloveport_tests::strace::{Call, Strace};
use serde_json::json;

/// The calls of the child of one run, from its fork to its exec.
fn calls_of_a_child() -> Vec<Call> {
    let scene = Scene::new();
    let (action, arguments) = scene.every_stage(json!({"exec": [scene.probe(), "print", "hello", "{file}"]}));
    let helper = scene.helper(&[action]);
    let strace = Strace::attach(&|| helper.deciding(), &helper.scene.root.join("record"), &[]);
    let finished = helper.run(helper.call("every_stage", &arguments));
    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
    let processes = strace.finish();
    let mut children = processes.into_iter().filter(|calls| calls.iter().any(|call| call.name == "execveat"));
    let child = children.next().expect("a process that executed something");
    assert_eq!(children.next(), None, "one run executes one program");
    child
}

#[test]
fn a_child_takes_every_stage_in_the_order_of_the_audit_guide() {
    let calls = calls_of_a_child();
    let mut taken: Vec<&str> = stages::assign(&calls).iter().map(|(stage, _)| *stage).collect();
    taken.dedup();
    // The directory is entered after its place was judged: `cwd` comes twice.
    let mut seen = Vec::new();
    taken.retain(|stage| {
        !seen.contains(stage) && {
            seen.push(*stage);
            true
        }
    });
    assert_eq!(taken, stages::documented());
}

#[test]
fn nothing_but_the_exec_follows_the_filter() {
    let calls = calls_of_a_child();
    let last_filter = calls.iter().rposition(|call| call.name == "seccomp").expect("a filter");
    let after: Vec<&str> = calls[last_filter + 1..].iter().map(|call| call.name.as_str()).collect();
    let exec = after.iter().position(|name| *name == "execveat").expect("an exec");
    let needless: Vec<&&str> =
        after[..exec].iter().filter(|name| !["brk", "munmap", "mmap"].contains(name)).collect();
    assert_eq!(needless, Vec::<&&str>::new());
}

#[test]
fn the_exec_is_by_descriptor_with_an_empty_path() {
    let calls = calls_of_a_child();
    let exec = calls.iter().find(|call| call.name == "execveat").expect("an exec");
    assert!(exec.arguments.starts_with("256, \"\", ["), "{exec:?}");
    assert!(exec.arguments.ends_with("AT_EMPTY_PATH"), "{exec:?}");
    assert_eq!(exec.result, "0");
}
