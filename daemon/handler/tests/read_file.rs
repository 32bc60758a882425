//! `read_file` on real files: what may be read, what leads outside, and how the rest is asked for.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::call;
use gloveport_tests::scratch::Scratch;
use gloveport_tests::servers::must;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

fn read(root: &str, input: Value) -> common::Answer {
    call("read_file", json!({ "read": [root] }), input).run()
}

#[test]
fn a_file_is_read_whole_by_lines_and_by_bytes() {
    let scratch = Scratch::new();
    let path = scratch.write("a.txt", "eins\nzwei\ndrei\nvier\n");
    let root = format!("{}/**", scratch.root());
    let whole = read(&root, json!({ "path": path })).ok();
    assert_eq!(whole["content"], "eins\nzwei\ndrei\nvier\n");
    assert_eq!(
        (&whole["size"], &whole["truncated"], &whole["remaining_bytes"]),
        (&json!(20), &json!(false), &json!(0))
    );
    assert_eq!(whole["version"].as_str().unwrap().len(), 32);

    let lines = read(&root, json!({ "path": path, "start_line": 2, "lines": 2 })).ok();
    assert_eq!(
        (&lines["content"], &lines["lines"], &lines["next_offset"]),
        (&json!("zwei\ndrei\n"), &json!(2), &json!(15))
    );
    assert_eq!(lines["truncated"], false);

    let bytes = read(&root, json!({ "path": path, "offset": 5, "bytes": 4 })).ok();
    assert_eq!((&bytes["content"], &bytes["remaining_bytes"]), (&json!("zwei"), &json!(11)));
    assert_eq!(read(&root, json!({ "path": path, "start_line": 99 })).ok()["content"], "");
    assert_eq!(read(&root, json!({ "path": path, "offset": 999 })).ok()["content"], "");
    assert!(read(&root, json!({ "path": path, "offset": 1, "lines": 2 })).refusal().contains("not both"));
}

#[test]
fn binary_content_comes_as_base64() {
    let scratch = Scratch::new();
    let path = scratch.write("b", [0xff, 0x00, 0x41]);
    let answer = read(scratch.root(), json!({ "path": path })).ok();
    assert_eq!((&answer["encoding"], &answer["content"]), (&json!("base64"), &json!("/wBB")));
}

#[test]
fn what_is_too_long_is_cut_at_a_character_and_says_how_to_go_on() {
    let scratch = Scratch::new();
    let text: String = (0..20_000).map(|line| format!("Zeile {line} äöü \"x\"\n")).collect();
    let path = scratch.write("long", &text);
    let mut got = String::new();
    let mut start_line = 1;
    loop {
        let answer = call(
            "read_file",
            json!({ "read": [scratch.root()] }),
            json!({ "path": path, "start_line": start_line }),
        )
        .max_output(32 * 1024)
        .run();
        assert!(answer.length > 16 * 1024 || got.len() + 32 * 1024 > text.len());
        let answer = answer.ok();
        got.push_str(answer["content"].as_str().unwrap());
        if answer["truncated"] == false {
            break;
        }
        start_line += answer["lines"].as_u64().unwrap();
        assert!(answer["note"].as_str().unwrap().ends_with(&format!("start_line {start_line}")));
    }
    assert_eq!(got, text);

    let one_line = scratch.write("line", "ä".repeat(50_000));
    let answer = call("read_file", json!({ "read": [scratch.root()] }), json!({ "path": one_line }))
        .max_output(1001)
        .run()
        .ok();
    let next = answer["next_offset"].as_u64().unwrap();
    assert!(answer["note"].as_str().unwrap().ends_with(&format!("offset {next}")));
    let rest = read(scratch.root(), json!({ "path": one_line, "offset": next })).ok();
    assert_eq!(rest["encoding"], "utf-8");
    assert_eq!(next as usize + rest["content"].as_str().unwrap().len(), 100_000);
}

#[test]
fn nothing_outside_of_the_roots_is_reached() {
    let scratch = Scratch::new();
    let inside = scratch.write("ops/a", "inside");
    scratch.write("ops-evil/a", "outside");
    let secret = scratch.write("secret", "outside");
    let ops = scratch.path("ops");
    symlink(&secret, scratch.path("ops/absolute")).unwrap();
    symlink("../secret", scratch.path("ops/relative")).unwrap();
    symlink("/", scratch.path("ops/slash")).unwrap();
    symlink("..", scratch.path("ops/up")).unwrap();
    symlink("a", scratch.path("ops/within")).unwrap();

    for root in [ops.clone(), format!("{ops}/**")] {
        assert_eq!(read(&root, json!({ "path": inside })).ok()["content"], "inside");
        assert_eq!(read(&root, json!({ "path": format!("{ops}/within") })).ok()["content"], "inside");
        for path in [
            "/etc/passwd".to_owned(),
            scratch.path("ops-evil/a"),
            scratch.path("ops/../secret"),
            format!("/{ops}/a"),
            format!("{ops}/a/"),
            format!("{ops}/absolute"),
            format!("{ops}/relative"),
            format!("{ops}/slash/etc/passwd"),
            format!("{ops}/up/secret"),
            format!("{ops}/a\0b"),
            "ops/a".to_owned(),
        ] {
            read(&root, json!({ "path": path })).refusal();
        }
    }
    // A glob that decides about names does not follow any link.
    let glob = format!("{ops}/w*");
    assert!(read(&glob, json!({ "path": format!("{ops}/within") })).refusal().contains("symbolic link"));
}

#[test]
fn magic_links_lead_nowhere() {
    for path in [
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/etc/passwd",
        "/proc/self/fd/3",
        "/proc/1/root/etc/passwd",
    ] {
        read("/**", json!({ "path": path })).refusal();
    }
    // The twin: an ordinary file of /proc, which has content and no size.
    assert!(
        read("/proc", json!({ "path": "/proc/version" })).ok()["content"]
            .as_str()
            .unwrap()
            .starts_with("Linux")
    );
}

#[test]
fn what_is_not_regular_is_refused_at_once() {
    let scratch = Scratch::new();
    must("mkfifo", &[&scratch.path("fifo")]);
    let _socket = std::os::unix::net::UnixListener::bind(scratch.path("socket")).unwrap();
    let started = Instant::now();
    assert!(read(scratch.root(), json!({ "path": scratch.path("fifo") })).refusal().contains("a FIFO"));
    assert!(read(scratch.root(), json!({ "path": scratch.path("socket") })).refusal().contains("a socket"));
    assert!(read(scratch.root(), json!({ "path": scratch.root() })).refusal().contains("a directory"));
    assert!(read("/dev", json!({ "path": "/dev/zero" })).refusal().contains("a device"));
    assert!(read("/dev", json!({ "path": "/dev/null" })).refusal().contains("a device"));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_sparse_giant_is_read_where_it_is_asked_for() {
    let scratch = Scratch::new();
    let path = scratch.write("giant", "");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(10 << 30).unwrap();
    let started = Instant::now();
    let answer = read(scratch.root(), json!({ "path": path, "offset": 9_u64 << 30, "bytes": 3 })).ok();
    assert_eq!(answer["content"], "AAAA");
    assert!(
        read(scratch.root(), json!({ "path": path, "start_line": 2 })).refusal().contains("ask by offset")
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_configuration_that_makes_no_sense_is_64() {
    assert_eq!(call("read_file", json!({ "read": ["/a[b"] }), json!({ "path": "/a" })).run().code, 64);
    assert_eq!(call("read_file", json!({ "unknown": 1 }), json!({})).run().code, 64);
    assert_eq!(call("no_such", json!({}), json!({})).run().code, 64);
    assert!(read("/tmp", json!({})).refusal().contains("path: required"));
}
