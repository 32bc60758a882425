//! What the pair takes while nothing happens, and until something can.

use crate::subject::{Client, PROGRAM, pair};
use crate::table::{Line, Table, memory, time};
use gloveport_tests::{Scene, processes};
use serde_json::json;
use std::fs;
use std::time::Duration;

const STARTS: usize = 9;

/// What is a process's alone and its share of what is not, KiB.
pub fn proportional(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// A process and all that it has started, KiB.
pub fn family(pid: u32) -> u64 {
    processes::descendants(pid).iter().map(|one| one.pid).chain([pid]).map(proportional).sum()
}

/// Idle, after some calls.
pub fn memory_when_idle(table: &mut Table) {
    let pair = pair();
    let mut client = Client::new(&pair, "true", json!({}));
    (0..20).for_each(|_| drop(client.call()));
    std::thread::sleep(Duration::from_secs(1));
    let (helper, daemon) = (pair.process("gloveport-helper").pid, pair.process("gloveportd").pid);
    let lines = [
        ("helper, with the audit writer", family(helper), 3 << 10, "< 3 MiB"),
        ("daemon", family(daemon), 15 << 10, "< 15 MiB"),
    ];
    for (name, kib, most, aim) in lines {
        table.add(Line {
            what: format!("idle memory (PSS): {name}"),
            own: memory(kib),
            against: "–".to_owned(),
            other: "–".to_owned(),
            ratio: "–".to_owned(),
            aim,
            reached: Some(kib < most),
        });
    }
}

/// From nothing to the first call's answer: both halves, a signed catalogue, a confined program.
pub fn cold_start(table: &mut Table) {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let scene = Scene::new();
        let action = scene.exec("true", &[PROGRAM]);
        let preparation = scene.prepare(&[action]);
        let begun = std::time::Instant::now();
        let helper = preparation.start();
        let daemon = helper.daemon();
        Client::new(&daemon, "true", json!({})).call();
        starts.push(begun.elapsed());
    }
    starts.sort_unstable();
    let median = starts[STARTS / 2];
    table.add(Line {
        what: format!("cold start to the first answered call, p50 of {STARTS}"),
        own: time(median),
        against: "–".to_owned(),
        other: "–".to_owned(),
        ratio: "–".to_owned(),
        aim: "< 150 ms",
        reached: Some(median < Duration::from_millis(150)),
    });
}
