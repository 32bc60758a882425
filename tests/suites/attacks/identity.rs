//! What a program could inherit of the helper's privilege, and what it is told by the kernel that it has.

use super::{assert_ran, outside, printed, state};
use gloveport_tests::{Scene, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;

/// A field of `/proc/PID/status`.
fn field(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
}

#[test]
fn groups_capabilities_and_signals_of_the_helpers_start_end_with_it() {
    let scene = Scene::new();
    let action = scene.probing("state", &["state"]);
    let mut preparation = scene.prepare(&[action]);
    let words = "setpriv --groups 0,4,6 --inh-caps +kill,+chown --ambient-caps +kill,+chown \
                 env --ignore-signal=USR1,PIPE --block-signal=USR2,WINCH";
    preparation.starter = words.split_whitespace().map(str::to_owned).collect();
    let helper = preparation.start();
    // The helper has inherited them,
    assert_eq!(field(helper.pid(), "Groups"), "0 4 6");
    let (usr1, usr2) = (1 << (10 - 1), 1 << (12 - 1));
    let set = |name: &str| u64::from_str_radix(&field(helper.pid(), name), 16).expect("a set");
    assert_eq!(set("SigIgn") & usr1, usr1);
    assert_eq!(set("SigBlk") & usr2, usr2);
    // and a program has nothing of it.
    let seen = state(&helper, "state");
    assert_eq!(seen["groups"], "");
    for name in ["inheritable", "permitted", "effective", "bounding", "ambient"] {
        assert_eq!(seen["capabilities"][name], "0000000000000000", "{name}");
    }
    for name in ["blocked", "ignored"] {
        assert_eq!(seen["signals"][name], "0000000000000000", "{name}");
    }
    for name in ["CapInh", "CapAmb"] {
        assert_eq!(
            field(helper.pid(), name),
            "0000000000000000",
            "the helper itself has given it up: {name}"
        );
    }
}

#[test]
fn the_keys_of_the_helpers_session_are_not_a_programs() {
    let scene = Scene::new();
    let action = scene.probing("keys", &["cat", "/proc/keys"]);
    let mut preparation = scene.prepare(&[action]);
    preparation.starter =
        vec![preparation.scene.probe(), "with-session-key".into(), "gloveport-canary".into()];
    let helper = preparation.start();
    let seen = printed(&helper, "keys");
    assert!(!seen.contains("gloveport-canary"), "{seen}");
    let probe = helper.scene.probe();
    let outside = outside(&helper, &["with-session-key", "gloveport-canary", &probe, "cat", "/proc/keys"]);
    assert!(outside.contains("gloveport-canary"), "outside it is inherited: {outside}");
}

#[test]
fn the_helper_loads_no_name_service() {
    let scene = Scene::new();
    let action = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[action]);
    assert_ran(&helper.run(helper.call("hello", &[])));
    let maps = fs::read_to_string(format!("/proc/{}/maps", helper.pid())).expect("the maps of the helper");
    let libraries: Vec<&str> = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    let foreign = ["libnss", "libresolv", "gconv", "locale", "libpam", "libcrypto"];
    assert!(!libraries.iter().any(|path| foreign.iter().any(|name| path.contains(name))), "{libraries:?}");
}

#[test]
fn a_storm_of_signals_is_only_a_storm() {
    let scene = Scene::new();
    let action = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[action]);
    let pid = Pid::from_raw(helper.pid().cast_signed()).expect("a pid");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100_000 {
                kill_process(pid, Signal::CHILD).expect("signalling the helper");
            }
        });
        for _ in 0..20 {
            assert_ran(&helper.run(helper.call("hello", &[])));
        }
    });
    assert_ran(&helper.run(helper.call("hello", &[])));
}

#[test]
fn what_root_keeps_in_a_run_is_only_its_number() {
    let scene = Scene::new();
    let as_root = json!({"run_as": "0:0"});
    let reading = json!({"sandbox": {"read": ["/proc"]}});
    let actions = [
        scene.probing("state", &["state"]).with(as_root.clone()).with(reading),
        scene.probing("capabilities", &["capabilities"]).with(as_root.clone()),
        scene.probing("shadow", &["open", "/etc/shadow"]).with(as_root.clone()),
        scene.probing("setuid", &["setuid", "1"]).with(as_root),
    ];
    let helper = scene.helper(&actions);
    let seen = state(&helper, "state");
    assert_eq!(seen["uids"], "0 0 0 0");
    for name in ["inheritable", "permitted", "effective", "bounding", "ambient"] {
        assert_eq!(seen["capabilities"][name], "0000000000000000", "{name}");
    }
    assert_eq!(printed(&helper, "capabilities"), "errno EPERM");
    assert_eq!(printed(&helper, "shadow"), "errno EACCES");
    assert_eq!(printed(&helper, "setuid"), "errno EPERM");
    assert_eq!(outside(&helper, &["open", "/etc/shadow"]), "ok");
    assert!(processes::of(helper.scene.run.number).is_empty());
}
