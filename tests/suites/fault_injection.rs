//! Every system call of a child's preparation fails in turn: nothing is executed, and the stage is named.
//!
//! The action has two steps. While the first one runs, the child of the second waits at its gate; strace is
//! attached to it there, and to nothing else, and makes one of its calls fail once its turn has come.

use gloveport_contract::packet::{Event, Outcome, Request, Value};
use gloveport_tests::strace::{Call, Strace};
use gloveport_tests::{Helper, Scene, processes, stages};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// A helper with the action, and what it is called with.
struct Prepared {
    helper: Helper,
    arguments: [(&'static str, Value); 2],
}

fn prepared() -> Prepared {
    prepared_with(json!({}))
}

fn prepared_with(keys: serde_json::Value) -> Prepared {
    let scene = Scene::new();
    let probe = scene.probe();
    let (action, arguments) = scene.every_stage(json!({
        "steps": [
            {"name": "wait", "exec": [probe, "sleep", "20000"]},
            {"name": "program", "exec": [probe, "print", "RAN", "{file}"]},
        ],
        "on_error": "continue",
    }));
    Prepared { helper: scene.helper(&[action.with(keys)]), arguments }
}

/// How the second step ended.
struct Ended {
    outcome: Outcome,
    printed: String,
    calls: Vec<Call>,
}

/// One run at a time is begun, so that the child that waits is the one of this run.
static BEGINNING: Mutex<()> = Mutex::new(());

/// Runs the action with these words for strace, which is attached to the child of the second step alone.
fn run(prepared: &Prepared, words: &[String]) -> Ended {
    let Prepared { helper, arguments } = prepared;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let record = helper.scene.root.join(format!("record-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
    let call = helper.call("every_stage", arguments);
    let beginning = BEGINNING.lock();
    let mut connection = helper.connect();
    let known: Vec<u32> = family(helper).iter().map(|one| one.pid).collect();
    connection.send(&Request::Run(Box::new(call)));
    let (mut first, mut second) = (0, 0);
    processes::wait_until("the first step runs", SOON, || {
        let new: Vec<_> = family(helper).into_iter().filter(|one| !known.contains(&one.pid)).collect();
        let runs = |one: &processes::Process| one.uid == helper.scene.run.number;
        let Some(running) = new.iter().find(|one| runs(one) && one.command.contains("sleep")) else {
            return false;
        };
        let sibling = |one: &&processes::Process| one.parent == running.parent && one.pid != running.pid;
        let Some(waiting) = new.iter().find(sibling) else { return false };
        (first, second) = (running.pid, waiting.pid);
        true
    });
    drop(beginning);
    let strace = Strace::attach(&|| vec![second], &record, words);
    kill_process(Pid::from_raw(first.cast_signed()).expect("a pid"), Signal::TERM)
        .expect("ending the first step");
    let finished = connection.finish();
    let mut calls = strace.finish();
    let outcome = finished.events.iter().find_map(|event| match event {
        Event::StepEnded { index: 1, outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    let outcome = outcome.unwrap_or_else(|| panic!("{words:?}: {finished:?}"));
    Ended { outcome, printed: finished.stdout, calls: calls.pop().unwrap_or_default() }
}

fn family(helper: &Helper) -> Vec<processes::Process> {
    processes::descendants(helper.pid())
}

/// A call that is made to fail, and the stage that must be named then.
struct Fault {
    stage: &'static str,
    call: Call,
    /// Its number among the calls of that name since strace has attached.
    number: usize,
}

/// Stages that are over, or are being waited in, when strace attaches.
const BEFORE: [&str; 2] = ["inherited", "turn"];

/// Why a failure of this call ends nothing.
fn is_exempt(stage: &str, call: &Call) -> bool {
    match call.name.as_str() {
        // The end of the wait, which begins before strace attaches; and libc's look at a limit, for which
        // it has a value of its own.
        "read" => matches!(stage, "turn" | "verify"),
        "openat" => call.arguments.contains("ngroups_max"),
        // Cannot fail (umask(2)).
        "umask" => true,
        // Trying to become root again: failing is what is asked for.
        "setresuid" => call.arguments == "0, 0, 0",
        _ => false,
    }
}

/// One fault for each call; of a long series of the same call, the first and the last.
fn faults(calls: &[Call]) -> Vec<Fault> {
    let assigned = stages::assign(calls);
    let mut faults: Vec<Fault> = Vec::new();
    let mut at = 0;
    for (stage, call) in assigned {
        // The calls of the list that belong to no stage are counted all the same.
        let index = at + calls[at..].iter().position(|other| *other == call).expect("a call of the list");
        at = index + 1;
        if is_exempt(stage, &call) {
            continue;
        }
        let number = calls[..=index].iter().filter(|other| other.name == call.name).count();
        let same = |fault: &&Fault| fault.stage == stage && fault.call.name == call.name;
        if matches!(stage, "signals" | "bounding") && faults.iter().filter(same).count() == 2 {
            faults.pop();
        }
        faults.push(Fault { stage, call, number });
    }
    faults
}

fn inject(call: &str, what: &str) -> Vec<String> {
    vec![format!("-einject={call}:{what}")]
}

fn assert_not_started(prepared: &Prepared, words: &[String], stage: &str) {
    let ended = run(prepared, words);
    assert!(!ended.printed.contains("RAN"), "{words:?} was executed all the same");
    let Outcome::NotStarted { stage: named, .. } = ended.outcome else {
        panic!("{words:?} in stage {stage}: {:?}", ended.outcome)
    };
    assert_eq!(named, stage, "{words:?}");
}

#[test]
fn without_a_fault_both_steps_run() {
    let ended = run(&prepared(), &[]);
    assert_eq!(ended.outcome, Outcome::Exited(0));
    assert!(ended.printed.contains("RAN"));
}

#[test]
fn each_call_of_the_preparation_that_fails_is_named_and_nothing_is_executed() {
    let prepared = prepared();
    let faults = faults(&run(&prepared, &[]).calls);
    let last = faults.last().expect("calls");
    assert_eq!(last.stage, "exec");
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    let words = inject(&fault.call.name, &format!("error=EIO:when={}", fault.number));
                    assert_not_started(&prepared, &words, fault.stage);
                }
            });
        }
    });
    let injected: Vec<&str> = faults.iter().map(|fault| fault.stage).collect();
    for stage in stages::documented().iter().filter(|stage| !BEFORE.contains(&stage.as_str())) {
        assert!(injected.contains(&stage.as_str()), "no fault was injected into `{stage}`");
    }
}

#[test]
fn the_errors_that_other_programs_have_overlooked_are_not() {
    let prepared = prepared();
    // CVE-2000-0506, and what RLIMIT_NPROC did to setuid(2) for many years.
    for (call, errno, stage) in [
        ("setgroups", "EPERM", "groups"),
        ("setresgid", "EPERM", "gid"),
        ("setresuid", "EAGAIN", "uid"),
        ("capset", "EPERM", "capabilities"),
        ("keyctl", "EDQUOT", "keyring"),
        ("landlock_restrict_self", "E2BIG", "landlock"),
    ] {
        assert_not_started(&prepared, &inject(call, &format!("error={errno}")), stage);
    }
}

#[test]
fn a_call_that_only_says_that_it_succeeded_is_found_out() {
    let prepared = prepared();
    for call in ["setgroups", "setresgid", "setresuid", "capset"] {
        assert_not_started(&prepared, &inject(call, "retval=0"), "verify");
    }
}

#[test]
fn a_host_without_keyrings_has_none_to_leave() {
    let prepared = prepared();
    for errno in ["ENOSYS", "EPERM"] {
        let ended = run(&prepared, &inject("keyctl", &format!("error={errno}")));
        assert_eq!(ended.outcome, Outcome::Exited(0), "{errno}");
    }
}

#[test]
fn a_directory_that_does_not_answer_costs_its_run_and_no_other() {
    let prepared = prepared_with(json!({"timeout": "4s"}));
    // What a file server that is down does: the child waits in the kernel, for longer than it may.
    let ended = run(&prepared, &inject("fchdir", "delay_enter=10000000"));
    assert_eq!(ended.outcome, Outcome::Signaled(9));
    assert!(!ended.printed.contains("RAN"));
    assert_eq!(run(&prepared, &[]).outcome, Outcome::Exited(0));
}
