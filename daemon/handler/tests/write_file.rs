//! `write_file` on real files: what is kept, what is refused, and that nothing is ever half done.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Answer, call};
use gloveport_tests::scratch::Scratch;
use gloveport_tests::servers::must;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn write(root: &str, content: &str, input: Value) -> Answer {
    call("write_file", json!({ "write": [root] }), input).content(content).run()
}

/// Nothing but these names is in the directory.
#[track_caller]
fn only(scratch: &Scratch, names: &[&str]) {
    let mut found: Vec<String> = fs::read_dir(&scratch.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn a_file_is_created_replaced_and_extended() {
    let scratch = Scratch::new();
    let path = scratch.path("f");
    let root = format!("{}/**", scratch.root());
    let created = write(&root, "eins\n", json!({ "path": path })).ok();
    assert_eq!(
        (&created["action"], &created["mode"], &created["size"]),
        (&json!("created"), &json!("0600"), &json!(5))
    );

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let replaced = write(&root, "zwei\n", json!({ "path": path })).ok();
    assert_eq!((&replaced["action"], &replaced["mode"]), (&json!("replaced"), &json!("0640")));
    assert_ne!(
        fs::metadata(&path).unwrap().ino(),
        before,
        "a replacement is a new file, renamed over the old"
    );

    let inode = fs::metadata(&path).unwrap().ino();
    let appended = write(&root, "drei\n", json!({ "path": path, "append": true })).ok();
    assert_eq!((&appended["action"], &appended["size"]), (&json!("appended"), &json!(10)));
    assert_eq!(
        fs::metadata(&path).unwrap().ino(),
        inode,
        "a program that has it open goes on with the same file"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "zwei\ndrei\n");

    let mode = write(&root, "x", json!({ "path": path, "mode": "0755" })).ok();
    assert_eq!(mode["mode"], "0755");
    write(&root, "x", json!({ "path": path, "mode": "4755" })).refusal();
    only(&scratch, &["f"]);
}

#[test]
fn owner_mode_and_attributes_are_kept() {
    let scratch = Scratch::new();
    let path = scratch.write("f", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
    let is_root = fs::metadata(scratch.root()).unwrap().uid() == 0;
    if is_root {
        must("chown", &["1234:4321", &path]);
    }
    setxattr(&path, "user.note", b"kept", XattrFlags::empty()).unwrap();
    let answer = write(scratch.root(), "new", json!({ "path": path })).ok();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o750, "set-id bits do not pass to new content");
    if is_root {
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    }
    let mut note = [0; 4];
    getxattr(&path, "user.note", &mut note).unwrap();
    assert_eq!(&note, b"kept");
    assert_eq!(answer["not_kept"], json!([]));
}

#[test]
fn a_backup_holds_what_was_there() {
    let scratch = Scratch::new();
    let path = scratch.write("f", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    let answer = write(scratch.root(), "new", json!({ "path": path, "backup": true })).ok();
    let backup = answer["backup"].as_str().unwrap();
    assert!(backup.starts_with(&format!("{path}.2")) && backup.ends_with("Z.bak"), "{backup}");
    assert_eq!(fs::read_to_string(backup).unwrap(), "old");
    assert_eq!(fs::metadata(backup).unwrap().mode() & 0o777, 0o604);
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    // Of a file that is not there yet, there is nothing to keep.
    assert_eq!(
        write(scratch.root(), "x", json!({ "path": scratch.path("g"), "backup": true })).ok()["backup"],
        Value::Null
    );
}

#[test]
fn content_that_is_not_what_was_declared_changes_nothing() {
    let scratch = Scratch::new();
    let path = scratch.write("f", "old");
    let config = json!({ "write": [scratch.root()] });
    let digest = common::sha256(b"new");
    for (content, length, digest) in [
        ("new", 4, digest.as_str()),
        ("newer", 3, &digest),
        ("neu", 3, &digest),
        ("new", 3, "00"),
        ("", 3, &digest),
    ] {
        call("write_file", config.clone(), json!({ "path": path }))
            .content_as(content, length, digest)
            .run()
            .refusal();
    }
    call("write_file", config, json!({ "path": path })).run().refusal();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    only(&scratch, &["f"]);
}

#[test]
fn an_expected_version_protects_what_was_not_seen() {
    let scratch = Scratch::new();
    let path = scratch.path("f");
    let first = write(scratch.root(), "1", json!({ "path": path, "expect": "absent" })).ok();
    assert!(
        write(scratch.root(), "2", json!({ "path": path, "expect": "absent" })).refusal().contains("exists")
    );
    let second = write(scratch.root(), "2", json!({ "path": path, "expect": first["version"] })).ok();
    assert!(
        write(scratch.root(), "3", json!({ "path": path, "expect": first["version"] }))
            .refusal()
            .contains("has changed")
    );
    // read_file gives the same token.
    let read = call("read_file", json!({ "read": [scratch.root()] }), json!({ "path": path })).run().ok();
    assert_eq!(read["version"], second["version"]);
    std::thread::sleep(Duration::from_millis(10));
    fs::write(&path, "?").unwrap();
    write(scratch.root(), "3", json!({ "path": path, "expect": second["version"] })).refusal();
    assert_eq!(fs::read_to_string(&path).unwrap(), "?");
    let gone = scratch.path("gone");
    assert!(
        write(scratch.root(), "3", json!({ "path": gone, "expect": second["version"] }))
            .refusal()
            .contains("not exist")
    );
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let scratch = Scratch::new();
    let path = scratch.write("f", "a\nb\nc\n");
    let answer = write(scratch.root(), "a\nB\nc\n", json!({ "path": path, "dry_run": true })).ok();
    assert_eq!((&answer["action"], &answer["changed"]), (&json!("replace"), &json!(true)));
    assert!(answer["diff"].as_str().unwrap().ends_with("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"));
    let answer = write(scratch.root(), "d\n", json!({ "path": path, "dry_run": true, "append": true })).ok();
    assert!(answer["diff"].as_str().unwrap().ends_with(" c\n+d\n"));
    let answer = write(scratch.root(), "x\n", json!({ "path": scratch.path("new"), "dry_run": true })).ok();
    assert_eq!((&answer["action"], &answer["version"]), (&json!("create"), &json!("absent")));
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
    only(&scratch, &["f"]);
}

#[test]
fn base64_content_is_written_as_bytes() {
    let scratch = Scratch::new();
    let path = scratch.path("b");
    write(scratch.root(), "/wBB\n", json!({ "path": path, "encoding": "base64" })).ok();
    assert_eq!(fs::read(&path).unwrap(), [0xff, 0x00, 0x41]);
    write(scratch.root(), "no base64", json!({ "path": path, "encoding": "base64" })).refusal();
    let invalid = call(
        "write_file",
        json!({ "write": [scratch.root()] }),
        json!({ "path": path, "encoding": "utf-8" }),
    );
    invalid.content([0xff]).run().refusal();
}

#[test]
fn links_and_neighbours_do_not_lead_outside() {
    let scratch = Scratch::new();
    let inside = scratch.write("ops/f", "inside");
    let outside = scratch.write("outside/f", "outside");
    fs::create_dir(scratch.path("ops-evil")).unwrap();
    let ops = scratch.path("ops");
    symlink(scratch.path("outside"), scratch.path("ops/link")).unwrap();
    symlink("../outside", scratch.path("ops/relative")).unwrap();
    symlink(&outside, scratch.path("ops/file")).unwrap();
    symlink("f", scratch.path("ops/within")).unwrap();
    fs::hard_link(&outside, scratch.path("ops/hard")).unwrap();
    let root = format!("{ops}/**");
    for path in [
        format!("{ops}/link/f"),
        format!("{ops}/link/new"),
        format!("{ops}/relative/new"),
        format!("{ops}/file"),
        format!("{ops}/within"),
        format!("{ops}/hard"),
        format!("{ops}/../outside/f"),
        scratch.path("ops-evil/f"),
        "/proc/self/root/tmp/f".to_owned(),
        format!("{ops}/no/such/directory"),
        ops.clone(),
    ] {
        write(&root, "pwned", json!({ "path": path })).refusal();
        write(&root, "pwned", json!({ "path": path, "append": true })).refusal();
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "outside");
    assert!(!fs::exists(scratch.path("outside/new")).unwrap());
    write(&root, "written", json!({ "path": inside })).ok();
    assert_eq!(fs::read_to_string(&inside).unwrap(), "written");
}

#[test]
fn a_fifo_is_refused_at_once_and_sizes_are_bounded() {
    let scratch = Scratch::new();
    must("mkfifo", &[&scratch.path("fifo")]);
    let started = Instant::now();
    for append in [false, true] {
        write(scratch.root(), "x", json!({ "path": scratch.path("fifo"), "append": append })).refusal();
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    let config = json!({ "write": [scratch.root()], "max_bytes": "4B" });
    let path = scratch.path("f");
    call("write_file", config.clone(), json!({ "path": path })).content("12345").run().refusal();
    call("write_file", config.clone(), json!({ "path": path })).content("1234").run().ok();
    call("write_file", config, json!({ "path": path, "encoding": "base64" }))
        .content("MTIzNDU=")
        .run()
        .refusal();
}

#[test]
fn a_directory_swapped_for_a_link_meanwhile_never_leads_outside() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("ops/real")).unwrap();
    fs::create_dir(scratch.path("outside")).unwrap();
    symlink(scratch.path("outside"), scratch.path("ops/evil")).unwrap();
    let ops = scratch.path("ops");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in [("real", "aside"), ("evil", "real"), ("real", "evil"), ("aside", "real")] {
                    fs::rename(format!("{ops}/{from}"), format!("{ops}/{to}")).unwrap();
                }
            }
        });
        for _ in 0..60 {
            write(&ops, "x", json!({ "path": format!("{ops}/real/f") }));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(scratch.path("outside")).unwrap().count(), 0);
}
