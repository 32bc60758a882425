//! The system calls that a program does not have, and what is left of those that it has.

use gloveport_tests::golden::assert_golden;
use gloveport_tests::{Pair, Scene, processes};
use serde_json::json;
use std::time::Duration;

#[test]
fn no_call_that_a_confined_program_has_no_use_for() {
    let pair = Pair::with_probe();
    let result = pair.probe(&["calls"]);
    assert_golden("refused_calls.json", &format!("{}\n", result.stdout()));
}

#[test]
fn no_other_door_into_the_same_kernel() {
    let pair = Pair::with_probe();
    for door in ["int80", "x32"] {
        let result = pair.probe(&[door]);
        let step = result.step(0);
        let killed = step["signal"] == 31;
        let refused = step["stdout"].as_str().is_some_and(|text| text.starts_with("errno E"));
        assert!(killed || refused, "{door}: {:#}", result.0);
    }
}

#[test]
fn no_way_to_more_privilege_or_another_namespace() {
    let pair = Pair::with_probe();
    let attempts: [(&[&str], &str); 12] = [
        (&["setuid", "0"], "EPERM"),
        (&["setgid", "0"], "EPERM"),
        (&["setgroups"], "EPERM"),
        (&["capabilities"], "EPERM"),
        (&["unshare"], "EPERM"),
        (&["unshare", "0x20000000"], "EPERM"),
        (&["clone-namespace"], "EPERM"),
        (&["clone3"], "ENOSYS"),
        (&["chroot", "/"], "EPERM"),
        (&["personality", "0x0040000"], "EPERM"),
        // RLIMIT_NOFILE, RLIMIT_NPROC.
        (&["setrlimit", "7", "100000"], "EPERM"),
        (&["setrlimit", "6", "100000"], "EPERM"),
    ];
    for (words, errno) in attempts {
        let said = pair.probe(words).stdout();
        assert_eq!(said, format!("errno {errno}"), "{words:?}");
    }
}

#[test]
fn no_terminal_and_no_way_to_type_into_one() {
    let pair = Pair::with_probe();
    for words in [["ioctl", "tiocsti", ""], ["ioctl", "tiocsti", "high"], ["ioctl", "tioclinux", "high"]] {
        assert_eq!(pair.probe(&words).stdout(), "errno EPERM", "{words:?}");
    }
    assert_ne!(pair.probe(&["open", "/dev/tty"]).stdout(), "ok");
}

#[test]
fn no_hand_on_another_process_not_even_of_the_same_user() {
    let scene = Scene::new();
    let probe = scene.any_probe();
    let pair = scene.pair(&[probe]);
    let victim = pair.begin("probe", json!({"params": {"words": ["sleep", "20000"]}}));
    let uid = pair.scene.run.number;
    processes::wait_until("the victim runs", Duration::from_secs(10), || !processes::of(uid).is_empty());
    let sibling = processes::of(uid).first().expect("the victim").pid.to_string();
    let helper = pair.process("gloveport-helper").pid.to_string();
    let daemon = pair.process("gloveportd").pid.to_string();
    for pid in [&sibling, &helper, &daemon] {
        for attack in ["ptrace", "ptrace-seize", "read-memory", "prlimit", "renice", "affinity"] {
            let said = pair.probe(&[attack, pid]).stdout();
            assert_eq!(said, "errno EPERM", "{attack} {pid}");
        }
        for attack in ["kill", "kill-by-descriptor"] {
            let said = pair.probe(&[attack, pid, "9"]).stdout();
            assert_eq!(said, "errno EPERM", "{attack} {pid}");
        }
        let said = pair.probe(&["environment", pid]).stdout();
        assert_eq!(said, "errno EACCES", "{pid}");
    }
    assert_eq!(processes::of(uid).len(), 1, "the victim is alive");
    drop(victim);
}

#[test]
fn no_socket_of_any_family_without_a_declared_network() {
    let pair = Pair::with_probe();
    let attempts: [&[&str]; 14] = [
        &["connect", "127.0.0.1", "22"],
        &["fastopen", "127.0.0.1", "22"],
        &["mptcp", "127.0.0.1", "22"],
        &["udp", "127.0.0.1", "53"],
        &["bind", "127.0.0.1", "0"],
        &["listen"],
        &["unix", "/run/dbus/system_bus_socket"],
        &["abstract", "/tmp/.X11-unix/X0"],
        &["socketpair"],
        &["raw"],
        &["icmp"],
        &["packet"],
        &["vsock"],
        &["netlink", "0"],
    ];
    for words in attempts {
        assert_eq!(pair.probe(words).stdout(), "errno EPERM", "{words:?}");
    }
}
