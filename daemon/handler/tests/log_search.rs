//! `log_search` on real files: plain, gzip in all its states, and files made to cost much.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Answer, call};
use flate2::Compression;
use flate2::write::GzEncoder;
use gloveport_tests::scratch::Scratch;
use gloveport_tests::servers::must;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn search(scratch: &Scratch, input: Value) -> Answer {
    call("log_search", json!({ "roots": [scratch.root()] }), input).run()
}

fn texts(answer: &Value) -> Vec<&str> {
    answer["matches"].as_array().unwrap().iter().map(|found| found["text"].as_str().unwrap()).collect()
}

/// Sets when a file was written, as `date` reads it.
fn written(path: &str, when: &str) {
    must("touch", &["-d", when, path]);
}

/// A rotated set of three, the oldest one compressed.
fn rotated() -> Scratch {
    let scratch = Scratch::new();
    written(
        &scratch.write("app.log", "2026-01-03T00:00:00Z error five\n2026-01-03T00:00:01Z fine\n"),
        "2026-01-03",
    );
    written(
        &scratch.write("app.log.1", "2026-01-02T00:00:00Z error three\n2026-01-02T00:00:01Z error four\n"),
        "2026-01-02",
    );
    written(
        &scratch
            .write("app.log.2.gz", gzip("2026-01-01T00:00:00Z error one\n2026-01-01T00:00:01Z error two\n")),
        "2026-01-01T01:00:00Z",
    );
    scratch
}

fn ends(answer: &Value) -> Vec<&str> {
    texts(answer).into_iter().map(|text| text.rsplit(' ').next().unwrap()).collect()
}

#[test]
fn a_rotated_set_is_searched_newest_or_oldest_first() {
    let scratch = rotated();
    let newest = search(&scratch, json!({ "paths": ["app.log*"], "pattern": "error" })).ok();
    assert_eq!(ends(&newest), ["five", "four", "three", "two", "one"]);
    assert_eq!(newest["complete"], true);
    let oldest =
        search(&scratch, json!({ "paths": ["app.log*"], "pattern": "error", "order": "oldest" })).ok();
    assert_eq!(ends(&oldest), ["one", "two", "three", "four", "five"]);
    assert_eq!(oldest["matches"][1]["line"], 2);
    assert_eq!(oldest["matches"][0]["time"], "2026-01-01T00:00:00.000Z");

    let few = search(&scratch, json!({ "paths": ["app.log*"], "pattern": "error", "max_matches": 2 })).ok();
    assert_eq!(ends(&few), ["five", "four"]);
    assert_eq!((&few["complete"], &few["limits_reached"]), (&json!(false), &json!(["max_matches"])));
    let few = search(
        &scratch,
        json!({ "paths": ["app.log*"], "pattern": "error", "max_matches": 3, "order": "oldest" }),
    )
    .ok();
    assert_eq!(ends(&few), ["one", "two", "three"]);
}

#[test]
fn since_and_until_choose_by_the_time_in_the_line() {
    let scratch = rotated();
    let between = json!({ "paths": ["app.log*"], "pattern": "error", "since": "2026-01-01T00:00:01Z", "until": "2026-01-02 00:00" });
    assert_eq!(ends(&search(&scratch, between).ok()), ["three", "two"]);
    let since = search(
        &scratch,
        json!({ "paths": ["app.log*"], "pattern": "error", "since": "2026-01-02T12:00:00Z" }),
    )
    .ok();
    assert_eq!(ends(&since), ["five"]);
    assert_eq!(since["files"]["older_than_since"], 2);
    assert!(
        search(&scratch, json!({ "paths": ["app.log"], "since": "yesterday" })).refusal().contains("since")
    );
}

#[test]
fn lines_around_a_match_come_with_it() {
    let scratch = Scratch::new();
    scratch.write("a", "1\n2\n3 x\n4\n5\n6\n7 x\n8\n");
    let answer =
        search(&scratch, json!({ "paths": ["a"], "pattern": "x", "context": 2, "order": "oldest" })).ok();
    assert_eq!(answer["matches"][0]["before"], json!(["1", "2"]));
    assert_eq!(answer["matches"][0]["after"], json!(["4", "5"]));
    assert_eq!(answer["matches"][1]["before"], json!(["6"]));
    assert_eq!(answer["matches"][1]["after"], json!(["8"]));
    assert_eq!(answer["matches"][1]["line"], 7);
    search(&scratch, json!({ "paths": ["a"], "context": 11 })).refusal();
}

#[test]
fn no_match_is_an_empty_answer() {
    let scratch = Scratch::new();
    scratch.write("a", "x\n");
    let answer = search(&scratch, json!({ "paths": ["a", "missing*"], "pattern": "nothing" })).ok();
    assert_eq!(
        (&answer["count"], &answer["matches"], &answer["complete"]),
        (&json!(0), &json!([]), &json!(true))
    );
    // A file that was named and is not there is said.
    let answer = search(&scratch, json!({ "paths": ["missing"] })).ok();
    assert!(answer["not_searched"][0]["reason"].as_str().unwrap().contains("does not exist"));
}

#[test]
fn gzip_is_read_in_all_its_states() {
    let scratch = Scratch::new();
    scratch.write("members.gz", [gzip("one x\n"), gzip("two x\n")].concat());
    scratch.write("no-suffix", gzip("three x\n"));
    let mut cut = gzip((0..5000).map(|n| format!("line {n} x\n")).collect::<String>());
    cut.truncate(cut.len() / 2);
    scratch.write("cut.gz", [gzip("four x\n"), cut].concat());
    scratch.write("garbage.gz", [gzip("five x\n"), b"garbage".to_vec()].concat());
    scratch.write("empty.gz", "");
    scratch.write("other.xz", b"\xfd7zXZ\0...");

    let answer =
        search(&scratch, json!({ "paths": ["members.gz", "no-suffix"], "pattern": "x$", "order": "oldest" }))
            .ok();
    assert_eq!((answer["count"].clone(), &answer["complete"]), (json!(3), &json!(true)));

    let answer = search(
        &scratch,
        json!({ "paths": ["cut.gz"], "pattern": "x$", "order": "oldest", "max_matches": 3 }),
    )
    .ok();
    assert_eq!(texts(&answer), ["four x", "line 0 x", "line 1 x"]);
    let answer = search(&scratch, json!({ "paths": ["cut.gz"], "pattern": "x$" })).ok();
    assert!(answer["not_searched"][0]["reason"].as_str().unwrap().contains("ends early"), "{answer}");
    assert_eq!(answer["complete"], false);

    assert_eq!(
        texts(&search(&scratch, json!({ "paths": ["garbage.gz"], "pattern": "x$" })).ok()),
        ["five x"]
    );
    let answer = search(&scratch, json!({ "paths": ["empty.gz", "other.xz"] })).ok();
    assert!(answer["not_searched"][0]["reason"].as_str().unwrap().contains("xz"), "{answer}");
}

#[test]
fn a_bomb_and_a_line_of_a_gigabyte_are_bounded() {
    let scratch = Scratch::new();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![b'0'; 1 << 20];
    (0..512).for_each(|_| bomb.write_all(&zeros).unwrap());
    scratch.write("bomb.gz", bomb.finish().unwrap());
    let line = scratch.write("line", "start ");
    std::fs::File::options().write(true).open(&line).unwrap().set_len(1 << 30).unwrap();
    let started = Instant::now();
    let limited = |paths: &[&str], max_scan: &str| {
        call(
            "log_search",
            json!({ "roots": [scratch.root()], "max_scan": max_scan }),
            json!({ "paths": paths, "pattern": "needle" }),
        )
        .run()
        .ok()
    };
    let answer = limited(&["bomb.gz"], "64MiB");
    assert_eq!(
        (&answer["scanned_bytes"], &answer["limits_reached"]),
        (&json!(64 << 20), &json!(["max_scan"]))
    );
    assert!(answer["not_searched"][0]["reason"].as_str().unwrap().contains("max_scan"));
    let answer = limited(&["line"], "2GiB");
    assert_eq!((&answer["scanned_bytes"], &answer["complete"]), (&json!(1 << 30), &json!(true)));
    assert!(answer["long_lines_split"].as_u64().unwrap() > 1000);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn after_a_long_line_the_numbers_are_still_right() {
    let scratch = Scratch::new();
    scratch.write("a", format!("one\n{}\nthree x\n", "y".repeat(1_000_000)));
    let answer = search(&scratch, json!({ "paths": ["a"], "pattern": "x" })).ok();
    assert_eq!((&answer["matches"][0]["line"], &answer["long_lines_split"]), (&json!(3), &json!(3)));
    let answer = search(&scratch, json!({ "paths": ["a"], "pattern": "yyy" })).ok();
    assert!(answer["matches"][0]["text"].as_str().unwrap().len() < 5000);
}

#[test]
fn of_a_file_over_the_limit_the_newest_part_is_searched() {
    let scratch = Scratch::new();
    let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
    scratch.write("big", &text);
    let run = |order: &str| {
        call(
            "log_search",
            json!({ "roots": [scratch.root()], "max_scan": "1KiB" }),
            json!({ "paths": ["big"], "pattern": "line 99999$|line 0$", "order": order }),
        )
        .run()
        .ok()
    };
    let newest = run("newest");
    assert_eq!((texts(&newest), &newest["matches"][0]["line"]), (vec!["line 99999"], &Value::Null));
    assert!(newest["not_searched"][0]["reason"].as_str().unwrap().starts_with("its first "));
    let oldest = run("oldest");
    assert_eq!((texts(&oldest), &oldest["matches"][0]["line"]), (vec!["line 0"], &json!(1)));
    assert_eq!(oldest["limits_reached"], json!(["max_scan"]));
}

#[test]
fn patterns_are_linear_and_bounded() {
    let scratch = Scratch::new();
    scratch.write("a", format!("{}b\n", "a".repeat(40)));
    let started = Instant::now();
    assert_eq!(search(&scratch, json!({ "paths": ["a"], "pattern": "(a+)+$" })).ok()["count"], 0);
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(
        search(&scratch, json!({ "paths": ["a"], "pattern": r"\w{1000}{1000}" }))
            .refusal()
            .contains("pattern")
    );
    assert!(search(&scratch, json!({ "paths": ["a"], "pattern": "(" })).refusal().contains("pattern"));
    // The twin: repetition that compiles small.
    assert_eq!(search(&scratch, json!({ "paths": ["a"], "pattern": "a{40}b" })).ok()["count"], 1);
}

#[test]
fn globs_stay_under_their_roots() {
    let scratch = Scratch::new();
    scratch.write("log/a/one.log", "x\n");
    scratch.write("log/a/b/two.log", "x\n");
    scratch.write("log-evil/three.log", "x\n");
    scratch.write("secret", "x\n");
    symlink("../secret", scratch.path("log/link.log")).unwrap();
    symlink("/etc", scratch.path("log/etc")).unwrap();
    must("mkfifo", &[&scratch.path("log/fifo.log")]);
    let root = scratch.path("log");
    let run = |glob: &str| call("log_search", json!({ "roots": [root] }), json!({ "paths": [glob] })).run();
    assert_eq!(run("*/*.log").ok()["count"], 1);
    let all = run("**/*.log").ok();
    assert_eq!((&all["count"], &all["complete"]), (&json!(2), &json!(false)));
    let reasons = all["not_searched"].to_string();
    assert!(reasons.contains("leads out") && reasons.contains("not a regular file"), "{reasons}");
    assert_eq!(run(&format!("{root}/a/one.log")).ok()["count"], 1);
    assert_eq!(run(&scratch.path("**/*.log")).ok()["count"], 2);
    assert_eq!(run("**/passwd").ok()["count"], 0);
    for glob in ["../secret", "a/../../secret", "/etc/passwd", "/etc/*", &scratch.path("log-evil/*")] {
        run(glob).refusal();
    }
    call("log_search", json!({ "roots": [root] }), json!({ "paths": [] })).run().refusal();
}

#[test]
fn the_output_and_the_number_of_files_are_bounded() {
    let scratch = Scratch::new();
    for n in 0..20 {
        scratch.write(&format!("{n:02}.log"), "a long line that matches\n".repeat(100));
    }
    let answer = call(
        "log_search",
        json!({ "roots": [scratch.root()] }),
        json!({ "paths": ["*.log"], "max_matches": 100_000 }),
    )
    .max_output(8 * 1024)
    .run()
    .ok();
    assert!(answer["limits_reached"].as_array().unwrap().contains(&json!("max_output")));
    let config = json!({ "roots": [scratch.root()], "max_files": 3, "max_matches": 10_000 });
    let answer = call("log_search", config, json!({ "paths": ["*.log"] })).run().ok();
    assert_eq!((&answer["count"], &answer["files"]["not_reached"]), (&json!(300), &json!(17)));
    assert_eq!(answer["limits_reached"], json!(["max_files"]));
}
