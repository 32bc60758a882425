//! The daemon itself is confined, every thread of it. (That a confined worker thread cannot execute is tried in
//! the daemon's own tests, beside the code that confines it.)

use gloveport_tests::{Pair, processes};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The status of each thread of a process.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the threads").flatten();
    tasks.map(|task| fs::read_to_string(task.path().join("status")).expect("a status")).collect()
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim()
}

#[test]
fn no_thread_of_the_daemon_has_a_capability_or_goes_without_a_filter() {
    let pair = Pair::with_probe();
    // Work brings every thread to life.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(pair.probe(&["print", "x"]).stdout(), "x"));
        }
    });
    let threads = threads(pair.process("gloveportd").pid);
    assert!(threads.len() > 1, "the daemon works with several threads");
    let user = pair.scene.daemon.number.to_string();
    for status in threads {
        let name = field(&status, "Name");
        for capabilities in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(&status, capabilities), "0000000000000000", "{capabilities} of {name}");
        }
        assert_eq!(field(&status, "NoNewPrivs"), "1", "{name}");
        assert_eq!(field(&status, "Seccomp"), "2", "{name}");
        let uids: Vec<&str> = field(&status, "Uid").split_whitespace().collect();
        assert_eq!(uids, [user.as_str(); 4], "{name}");
        assert_eq!(field(&status, "Groups"), "", "{name}");
    }
}

#[test]
fn what_the_daemon_knows_is_not_for_other_programs_of_its_user() {
    let pair = Pair::with_probe();
    let daemon = pair.process("gloveportd");
    // The kernel gives the files of a process that cannot be dumped to root.
    let owner = fs::metadata(format!("/proc/{}/environ", daemon.pid)).expect("the daemon").uid();
    assert_eq!(owner, 0);
    assert_eq!(processes::of(pair.scene.daemon.number).len(), 1, "nothing else runs as the daemon");
}
