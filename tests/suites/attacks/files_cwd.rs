//! The file system against the helper: links, races, descriptors, foreign files in the place of ours.

use super::{assert_ran, assert_unsupported, outside, printed, state};
use gloveport_contract::packet::{Argument, Outcome, RefusalCode, Run, Value};
use gloveport_tests::{Finished, Helper, Scene};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// A helper with an action that starts in a directory of the caller's.
fn with_directory(scene: Scene, root: &str) -> Helper {
    let action = scene.probing("where", &["state"]).with(json!({
        "params": {"cwd": {"type": "path", "roots": [root], "optional": true}},
        "cwd": {"param": "cwd", "roots": [root]},
        "timeout": "20s",
    }));
    scene.helper(&[action])
}

fn there(helper: &Helper, path: &str) -> Finished {
    let call = helper.call("where", &[]);
    helper.run(Run { args: vec![Argument { name: "cwd".into(), value: Value::from(path) }], ..call })
}

#[test]
fn a_directory_that_is_exchanged_for_a_link_is_never_entered() {
    let scene = Scene::new();
    let root = scene.own_directory("root");
    let (place, real, link) = (format!("{root}/place"), format!("{root}/real"), format!("{root}/link"));
    fs::create_dir(&real).expect("making a directory");
    symlink("/etc", &link).expect("a link");
    fs::rename(&real, &place).expect("renaming");
    let helper = with_directory(scene, &root);
    let stop = AtomicBool::new(false);
    let (mut entered, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The directory, for a moment nothing, the link, for a moment nothing, and so on.
                let _ = fs::rename(&place, &real).and_then(|()| fs::rename(&link, &place));
                let _ = fs::rename(&place, &link).and_then(|()| fs::rename(&real, &place));
            }
        });
        for _ in 0..300 {
            let finished = there(&helper, &place);
            match finished.outcome() {
                Some(Outcome::Exited(0)) => {
                    let inside = format!("\"cwd\": \"{root}/");
                    assert!(finished.stdout.contains(&inside), "{}", finished.stdout);
                    entered += 1;
                }
                Some(Outcome::NotStarted { .. }) => refused += 1,
                _ => panic!("{finished:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(entered > 0 && refused > 0, "both were met: {entered} entered, {refused} refused");
}

#[test]
fn no_magic_link_is_a_directory() {
    let scene = Scene::new();
    let helper = with_directory(scene, "/");
    for path in ["/proc/self/cwd", "/proc/1/root", "/proc/self/root/etc", "/dev/fd/0", "/proc/self/fd/0"] {
        let finished = there(&helper, path);
        assert!(matches!(finished.outcome(), Some(Outcome::NotStarted { .. })), "{path}: {finished:?}");
        assert_eq!(finished.stdout, "");
    }
    assert_ran(&there(&helper, "/etc"));
}

#[test]
fn no_descriptor_of_the_helpers_reaches_a_program() {
    let scene = Scene::new();
    let action = scene.probing("state", &["state"]);
    let mut preparation = scene.prepare(&[action]);
    let open = (20..70).map(|fd| format!("{fd}</etc/passwd")).collect::<Vec<_>>().join(" ");
    // dash knows descriptors of one digit only.
    preparation.starter =
        ["/bin/bash", "-c", &format!("exec {open}; exec \"$@\""), "sh"].map(str::to_owned).to_vec();
    let helper = preparation.start();
    let inherited = fs::read_link(format!("/proc/{}/fd/42", helper.pid()));
    assert_eq!(
        inherited.expect("the helper itself has them"),
        fs::canonicalize("/etc/passwd").expect("a file")
    );
    let seen = state(&helper, "state");
    let expected = json!({"0": "/dev/null, read", "1": "pipe, write", "2": "pipe, write"});
    assert_eq!(seen["descriptors"], expected);
}

#[test]
fn not_even_root_writes_to_the_programs_that_run_it() {
    let scene = Scene::new();
    let handler = scene.root.join("bin/gloveport-handler").display().to_string();
    let own = scene.file("own", "");
    let as_root =
        |name: &str, path: &str| scene.probing(name, &["write", path]).with(json!({"run_as": "0:0"}));
    let actions = [
        as_root("handler", &handler),
        as_root("undeclared", &own),
        as_root("declared", &own).with(json!({"sandbox": {"write": [own]}})),
    ];
    let helper = scene.helper(&actions);
    for action in ["handler", "undeclared"] {
        assert_eq!(printed(&helper, action), "errno EACCES", "{action}");
    }
    assert_eq!(printed(&helper, "declared"), "ok");
    assert_eq!(outside(&helper, &["write", &handler]), "ok");
    // What is running nobody writes to: the kernel's own rule comes before any sandbox.
    assert_eq!(outside(&helper, &["write", "/proc/self/exe"]), "errno ETXTBSY");
}

#[test]
fn a_program_that_others_can_change_is_not_started() {
    let scene = Scene::new();
    let bytes = fs::read(scene.probe()).expect("the probe");
    let place = |name: &str| scene.program(name, &bytes);
    let (owned, writable, good) = (place("owned"), place("writable"), place("good"));
    chown(&owned, Some(scene.run.number), None).expect("chown");
    fs::set_permissions(&writable, Permissions::from_mode(0o777)).expect("chmod");
    let directory = scene.own_directory("directory");
    let inside = scene.program("directory/program", &bytes);
    let actions = [
        scene.exec("owned", &[&owned, "print", "x"]),
        scene.exec("writable", &[&writable, "print", "x"]),
        scene.exec("inside", &[&inside, "print", "x"]),
        scene.exec("good", &[&good, "print", "x"]),
    ];
    let helper = scene.helper(&actions);
    assert_unsupported(&helper, "owned", "does not belong to root");
    assert_unsupported(&helper, "writable", "may write");
    assert_unsupported(&helper, "inside", &directory);
    assert_eq!(printed(&helper, "good"), "x");
}

#[test]
fn a_text_is_no_program() {
    let scene = Scene::new();
    let script = scene.program("script", "#!/usr/bin/env sh\necho ran\n");
    let text = scene.program("text", "echo ran\n");
    let actions = [scene.exec("script", &[&script]), scene.exec("text", &[&text])];
    let helper = scene.helper(&actions);
    assert_unsupported(&helper, "script", "`#!`");
    assert_unsupported(&helper, "text", "no ELF program");
}

#[test]
fn a_set_uid_program_gains_nothing() {
    let scene = Scene::new();
    let bytes = fs::read(scene.probe()).expect("the probe");
    let program = scene.program("set-uid", bytes);
    fs::set_permissions(&program, Permissions::from_mode(0o6755)).expect("chmod");
    let action = scene.exec("state", &[&program, "state"]);
    let helper = scene.helper(&[action]);
    let uid = helper.scene.run.number;
    assert_eq!(state(&helper, "state")["uids"], format!("{uid} {uid} {uid} {uid}"));
    let gained = Command::new(&program).arg("state").uid(uid).gid(uid).output().expect("starting the probe");
    let gained: serde_json::Value = serde_json::from_slice(&gained.stdout).expect("JSON");
    assert_eq!(gained["uids"], format!("{uid} 0 0 0"), "outside it does");
}

#[test]
fn a_declared_path_is_what_root_says_it_is() {
    let scene = Scene::new();
    let own = scene.own_directory("own");
    let replaced = format!("{own}/replaced");
    symlink("/etc", &replaced).expect("a link");
    chown_link(&replaced, scene.run.number);
    let ours = scene.root.join("ours").display().to_string();
    symlink("/etc", &ours).expect("a link");
    let missing = format!("{own}/missing");
    let optional = format!("?{missing}");
    let writing = |name: &str, path: &str| {
        scene.probing(name, &["print", "x"]).with(json!({"sandbox": {"write": [path]}}))
    };
    let actions = [
        writing("replaced", &replaced),
        writing("ours", &ours),
        writing("missing", &missing),
        writing("optional", &optional),
    ];
    let helper = scene.helper(&actions);
    assert_unsupported(&helper, "replaced", &replaced);
    assert_unsupported(&helper, "missing", &missing);
    assert_eq!(printed(&helper, "ours"), "x");
    let finished = helper.run(helper.call("optional", &[]));
    assert_ran(&finished);
    assert!(format!("{:?}", finished.events).contains(&missing), "what is absent is told: {finished:?}");
}

fn chown_link(path: &str, uid: u32) {
    std::os::unix::fs::lchown(path, Some(uid), Some(uid)).expect("chown");
}

#[test]
fn a_credential_that_others_could_have_read_or_placed_is_not_used() {
    const CANARY: &str = "canary-5f2d9b";
    let scene = Scene::new();
    let names = ["symlink", "hardlink", "readable", "foreign", "directory", "fifo", "good"];
    let actions: Vec<_> =
        names
            .iter()
            .map(|name| {
                scene.action(name, json!({
                "params": {"command": {"type": "list", "items": {"type": "string"}, "default": ["INFO"]}},
                "builtin": "redis_command",
                "builtin_config": {"server": "127.0.0.1:1", "credential": name},
            }))
            })
            .collect();
    let preparation = scene.prepare(&actions);
    preparation.write();
    let place = |name: &str| preparation.scene.state().join("credentials").join(name);
    let write = |name: &str, mode: u32| {
        fs::write(place(name), format!("password = \"{CANARY}\"\n")).expect("writing");
        fs::set_permissions(place(name), Permissions::from_mode(mode)).expect("chmod");
    };
    write("target", 0o600);
    symlink(place("target"), place("symlink")).expect("a link");
    write("twice", 0o600);
    fs::hard_link(place("twice"), place("hardlink")).expect("a second name");
    write("readable", 0o640);
    write("foreign", 0o600);
    chown(place("foreign"), Some(preparation.scene.run.number), None).expect("chown");
    fs::create_dir(place("directory")).expect("a directory");
    assert!(Command::new("mkfifo").arg(place("fifo")).status().expect("mkfifo").success());
    write("good", 0o600);
    let helper = preparation.start_as_it_is();
    for name in names.iter().filter(|name| **name != "good") {
        let begun = std::time::Instant::now();
        let finished = helper.run(helper.call(name, &[]));
        let (code, detail) = finished.refused().unwrap_or_else(|| panic!("{name}: {finished:?}"));
        assert_eq!(code, RefusalCode::Unsupported, "{name}");
        assert!(detail.contains(&format!("credentials/{name}")), "{name}: {detail}");
        assert!(begun.elapsed().as_secs() < 5, "{name} held the helper up");
        assert!(!format!("{finished:?}").contains(CANARY), "{name}: {finished:?}");
    }
    // This one is used; there is no server, and what is told of it holds nothing of the credential.
    let finished = helper.run(helper.call("good", &[]));
    assert!(finished.ran(), "{finished:?}");
    let everything = format!("{finished:?} {:?} {}", helper.audit(), helper.log());
    assert!(!everything.contains(CANARY), "{everything}");
}
