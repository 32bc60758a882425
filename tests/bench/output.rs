//! Much text: read, redacted and filtered, and searched where it lies.

use crate::measure::{in_turn, ratio};
use crate::subject::{Client, run, works};
use crate::table::{Line, Table, memory, time, times};
use gloveport_tests::{Pair, Scene, processes};
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};

const SIZE: u64 = 1 << 30;
const ROUNDS: usize = 3;
/// What is looked for: about one line in a hundred thousand has it.
const NEEDLE: &str = "connection reset by peer";

/// A log of that size: lines as services write them.
fn write_log(scene: &Scene) -> String {
    let path = scene.file("big.log", "");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path).expect("creating a log"));
    let (mut written, mut number) = (0, 0_u64);
    while written < SIZE {
        number += 1;
        let (second, minute, hour) = (number % 60, number / 60 % 60, number / 3600 % 24);
        let what = if number % 100_000 == 0 { NEEDLE } else { "request served" };
        let line = format!(
            "2026-01-31T{hour:02}:{minute:02}:{second:02}Z web1 nginx[812]: {what} id={number:x} path=/api/v1/items/{} \
             status=200 bytes={} upstream=10.0.0.{}\n",
            number % 9973,
            number * 7919 % 65536,
            number % 250
        );
        file.write_all(line.as_bytes()).expect("writing a log");
        written += line.len() as u64;
    }
    file.flush().expect("writing a log");
    path
}

fn shell(line: &str) {
    run("/bin/sh", &["-c", line]);
}

/// The highest resident memory so far, KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Output through redaction and the filter `match`.
pub fn through_redaction(table: &mut Table) {
    let scene = Scene::new();
    let log = write_log(&scene);
    let print = scene.exec("print", &["/usr/bin/cat", &log]).with(json!({
        "filters": ["match"], "max_scan": "2GiB", "timeout": "120s", "sandbox": {"read": [scene.root]},
    }));
    let pair = scene.pair(&[print]);
    let daemon = pair.process("gloveportd").pid;
    let before = processes::resident(daemon);
    let mut client = Client::new(&pair, "print", json!({"match": NEEDLE}));
    let mut own = || {
        let body = client.call();
        assert!(body.contains(NEEDLE), "{body}");
    };
    let [own, cat, grep] = in_turn(
        ROUNDS,
        [
            &mut own,
            &mut || shell(&format!("cat {log} >/dev/null")),
            // By a pipe, as a program's output comes, and the lines to a pipe: to /dev/null it would stop at the first.
            &mut || shell(&format!("cat {log} | grep '{NEEDLE}' | cat >/dev/null")),
        ],
    );
    let share = ratio(grep.median(), own.median());
    let what = "1 GiB of output through redaction and `match`";
    table.add(Line {
        what: what.to_owned(),
        own: time(own.median()),
        against: "`cat | grep`".to_owned(),
        other: time(grep.median()),
        ratio: format!("{:.0} % of its speed", share * 100.0),
        aim: "≥ 40 %",
        reached: Some(share >= 0.4),
    });
    table.add(Line {
        what: what.to_owned(),
        own: time(own.median()),
        against: "`cat >/dev/null`".to_owned(),
        other: time(cat.median()),
        ratio: times(ratio(own.median(), cat.median())),
        aim: "",
        reached: None,
    });
    let grown = peak(daemon).saturating_sub(before);
    table.add(Line {
        what: "the daemon's growth by it".to_owned(),
        own: memory(grown),
        against: "the output".to_owned(),
        other: memory(SIZE >> 10),
        ratio: "–".to_owned(),
        aim: "memory flat",
        reached: Some(grown < 32 << 10),
    });
}

/// The handler `log_search`, plain and gzip.
pub fn log_search(table: &mut Table) {
    if !works("rg", &["--version"]) {
        return table.skip("`log_search`", "`rg -z`", "ripgrep is not here");
    }
    let scene = Scene::new();
    let log = write_log(&scene);
    let packed = format!("{log}.gz");
    let status =
        Command::new("gzip").args(["-1", "-c", &log]).stdout(File::create(&packed).expect("a file")).status();
    assert!(status.expect("gzip").success());
    let root = scene.root.display().to_string();
    let search = scene.action(
        "search",
        json!({
            "params": {
                "paths": {"type": "list", "items": {"type": "string"}},
                "pattern": {"type": "string"},
            },
            "builtin": "log_search", "timeout": "120s",
            "builtin_config": {"roots": [root], "max_scan": "4GiB", "max_matches": 200},
        }),
    );
    let pair = scene.pair(&[search]);
    for (kind, name, path) in [("plain", "big.log", &log), ("gzip", "big.log.gz", &packed)] {
        beside_ripgrep(table, &pair, kind, name, path);
    }
}

fn beside_ripgrep(table: &mut Table, pair: &Pair, kind: &str, name: &str, path: &str) {
    let mut client = Client::new(pair, "search", json!({"params": {"paths": [name], "pattern": NEEDLE}}));
    let mut own = || {
        let body = client.call();
        assert!(body.contains(NEEDLE) && !body.contains("max_scan"), "{body}");
    };
    let mut ripgrep = || {
        let mut command = Command::new("rg");
        command.args(["-z", "--line-number", NEEDLE, path]).stdout(Stdio::piped());
        let output = command.output().expect("rg");
        assert!(!output.stdout.is_empty());
    };
    let [own, other] = in_turn(ROUNDS, [&mut own, &mut ripgrep]);
    let ratio = ratio(own.median(), other.median());
    table.add(Line {
        what: format!("`log_search`, 1 GiB of text, {kind}"),
        own: time(own.median()),
        against: "`rg -z`".to_owned(),
        other: time(other.median()),
        ratio: times(ratio),
        aim: "≤ 1.5×",
        reached: Some(ratio <= 1.5),
    });
}
