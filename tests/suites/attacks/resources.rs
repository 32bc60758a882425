//! Memory, files, descriptors, time; and what is told when something ends.

use super::{assert_ran, assert_unsupported, killed_by, printed, serves};
use gloveport_contract::packet::{Event, Outcome, Request, Value};
use gloveport_tests::{Scene, processes};
use serde_json::json;
use std::fs;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_file_grows_to_its_limit_and_no_further() {
    let scene = Scene::new();
    let own = scene.own_directory("own");
    let filling = |name: &str, bytes: &str| {
        scene.probing(name, &["fill", &format!("{own}/{name}"), bytes]).with(json!({
            "sandbox": {"write": [own]}, "limits": {"file_size": "1MiB"},
        }))
    };
    let actions = [filling("much", "100000000"), filling("little", "1000")];
    let helper = scene.helper(&actions);
    let finished = helper.run(helper.call("much", &[]));
    // SIGXFSZ.
    assert_eq!(finished.outcome(), Some(&Outcome::Signaled(25)), "{finished:?}");
    assert_eq!(fs::metadata(format!("{own}/much")).expect("the file").len(), 1 << 20);
    assert_ran(&helper.run(helper.call("little", &[])));
}

#[test]
fn memory_ends_at_its_limit() {
    let scene = Scene::new();
    let taking = |name: &str, bytes: &str| {
        scene.probing(name, &["memory", bytes]).with(json!({"limits": {"memory": "256MiB"}}))
    };
    let actions = [taking("much", "600000000"), taking("little", "10000000")];
    let helper = scene.helper(&actions);
    assert_eq!(printed(&helper, "much"), "errno ENOMEM");
    assert_eq!(printed(&helper, "little"), "ok");
}

#[test]
fn who_has_read_the_end_of_a_run_may_begin_the_next_at_once() {
    let scene = Scene::new();
    let once = scene.probing("once", &["print", "hello"]).with(json!({"concurrency": 1}));
    let helper = scene.helper(&[once]);
    for _ in 0..50 {
        let mut connection = helper.connect();
        connection.send(&Request::Run(Box::new(helper.call("once", &[]))));
        // Not to the end of the connection, which is that of the supervisor.
        let mut received = Vec::new();
        while !matches!(received.last(), Some((Event::Ended { .. }, _))) {
            received.push(connection.receive().unwrap_or_else(|| panic!("no end: {received:?}")));
        }
    }
}

#[test]
fn a_crash_leaves_no_core() {
    let scene = Scene::new();
    let own = scene.own_directory("own");
    let action =
        scene.probing("crash", &["signal", "11"]).with(json!({"cwd": own, "sandbox": {"write": [own]}}));
    let helper = scene.helper(&[action]);
    let finished = helper.run(helper.call("crash", &[]));
    assert_eq!(finished.outcome(), Some(&Outcome::Signaled(11)), "{finished:?}");
    assert_eq!(fs::read_dir(own).expect("a directory").count(), 0);
}

#[test]
fn an_end_of_the_programs_own_is_told_apart_from_one_before_it() {
    let scene = Scene::new();
    let actions = [
        scene.probing("127", &["exit", "127"]),
        scene.probing("126", &["exit", "126"]),
        scene.probing("kill", &["signal", "9"]),
        scene.probing("nowhere", &["exit", "0"]).with(json!({"cwd": "/no/such/directory"})),
    ];
    let helper = scene.helper(&actions);
    let outcome = |action: &str| helper.run(helper.call(action, &[])).outcome().cloned();
    assert_eq!(outcome("127"), Some(Outcome::Exited(127)));
    assert_eq!(outcome("126"), Some(Outcome::Exited(126)));
    assert_eq!(outcome("kill"), Some(Outcome::Signaled(9)));
    assert_eq!(outcome("nowhere"), Some(Outcome::NotStarted { stage: "cwd".into(), errno: 2 }));
}

#[test]
fn a_programs_own_supervisor_is_closed_to_it() {
    let scene = Scene::new();
    let action = scene.probing("parent", &["parent"]);
    let helper = scene.helper(&[action]);
    // Its environment, its descriptors, its memory.
    assert_eq!(printed(&helper, "parent"), "EACCES EACCES EACCES");
}

#[test]
fn nothing_of_a_call_stays_in_the_helpers_memory() {
    const CANARY: &str = "canary-81f6c2-of-a-call";
    let scene = Scene::new();
    let action = scene.action(
        "say",
        json!({
            "params": {"word": {"type": "string"}}, "exec": [scene.probe(), "print", "{word}"],
        }),
    );
    let helper = scene.helper(&[action]);
    let finished = helper.run(helper.call("say", &[("word", CANARY.into())]));
    assert_eq!(finished.stdout.trim(), CANARY);
    let memory = processes::memory(helper.pid());
    let holds = |text: &str| memory.windows(text.len()).any(|window| window == text.as_bytes());
    // What is read is the helper's memory: the catalogue is in it.
    assert!(holds("An action of a test."));
    assert!(!holds(CANARY));
    // Nobody else reads it: the process is not dumpable.
    let status = fs::metadata(format!("/proc/{}/environ", helper.pid())).expect("a process");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&status), 0);
}

#[test]
fn a_kernel_without_landlock_runs_only_what_may_lack_it_and_says_so() {
    let scene = Scene::new();
    let strict = scene.probing("strict", &["print", "x"]);
    let lax = scene.probing("lax", &["print", "x"]).with(json!({
        "sandbox": {"may_lack": ["landlock", "no_write", "signals"]},
    }));
    let mut preparation = scene.prepare(&[strict, lax]);
    let record = preparation.scene.root.join("strace").display().to_string();
    // As on a kernel that was started without it.
    preparation.starter = [
        "strace",
        "-D",
        "-f",
        "-q",
        "-e",
        "trace=landlock_create_ruleset",
        "-e",
        "inject=landlock_create_ruleset:error=EOPNOTSUPP",
        "-o",
        &record,
    ]
    .map(str::to_owned)
    .to_vec();
    let helper = preparation.start();
    assert_unsupported(&helper, "strict", "landlock");
    let finished = helper.run(helper.call("lax", &[]));
    assert_ran(&finished);
    let Some(Event::Accepted { enforcement, .. }) = finished.events.first() else { panic!("{finished:?}") };
    assert_eq!(enforcement.landlock_abi, 0);
    for promise in ["landlock", "no_write"] {
        assert!(enforcement.lacking.iter().any(|lacking| lacking == promise), "{enforcement:?}");
    }
}

#[test]
fn a_deadline_is_the_actions_whatever_is_asked() {
    let scene = Scene::new();
    let action = scene.action(
        "sleep",
        json!({
            "params": {"timeout": {"type": "integer", "min": 0, "max": 1_000_000}},
            "exec": [scene.probe(), "sleep", "20000"],
            "timeout": {"param": "timeout", "default": "1s", "max": "2s"},
        }),
    );
    let helper = scene.helper(&[action]);
    for seconds in [1_000_000, 1] {
        let begun = std::time::Instant::now();
        let finished = helper.run(helper.call("sleep", &[("timeout", Value::Integer(seconds))]));
        assert_eq!(killed_by(&finished), Some("timeout"), "{seconds}: {finished:?}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{seconds}: {:?}", begun.elapsed());
    }
}

/// Shortage that is forced on the helper: alone, so that what it costs can be measured.
mod alone {
    use super::*;
    use std::process::Command;

    /// Processor time of a process, in ticks of 10 ms.
    fn ticks(pid: u32) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        [11, 12].iter().filter_map(|at| fields[*at].parse::<u64>().ok()).sum()
    }

    #[test]
    fn a_helper_without_descriptors_waits_and_does_not_spin() {
        let scene = Scene::new();
        let action = scene.probing("hello", &["print", "hello"]);
        let helper = scene.helper(&[action]);
        let limit = |soft: &str| {
            let words = ["--pid", &helper.pid().to_string(), &format!("--nofile={soft}:")].map(str::to_owned);
            assert!(Command::new("prlimit").args(words).status().expect("prlimit").success());
        };
        // None beyond those that it has.
        limit(&processes::descriptors(helper.pid()).to_string());
        let waiting: Vec<_> = (0..20).map(|_| helper.connect()).collect();
        let begun = ticks(helper.pid());
        std::thread::sleep(Duration::from_secs(2));
        let used = ticks(helper.pid()) - begun;
        assert!(used < 30, "{used}0 ms of processor time in two seconds");
        drop(waiting);
        limit("1024");
        processes::wait_until("it serves again", SOON, || serves(&helper));
    }

    #[test]
    fn a_hundred_runs_at_once_are_as_many_as_there_are_slots() {
        let scene = Scene::new();
        let sleep = scene.probing("sleep", &["sleep", "20000"]).with(json!({"concurrency": 1000}));
        let mut preparation = scene.prepare(&[sleep]);
        preparation.words = vec!["--max-runs".into(), "4".into()];
        let helper = preparation.start();
        let call = Request::Run(Box::new(helper.call("sleep", &[])));
        let mut connections: Vec<_> = (0..100).map(|_| helper.connect()).collect();
        for connection in &mut connections {
            let _ = connection.send_bytes(&call.encode().expect("a packet"));
        }
        let uid = helper.scene.run.number;
        processes::wait_until("all slots are taken", SOON, || processes::of(uid).len() == 4);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(processes::of(uid).len(), 4);
        drop(connections);
        processes::wait_until_gone(uid, SOON);
        assert!(processes::descendants(helper.pid()).iter().all(|one| one.state != 'Z'));
    }
}
