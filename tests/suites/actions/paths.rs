#![forbid(unsafe_code)]
//! Path parameters and real directories: where a name leads decides, not how it is written.

use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene, scene};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

/// `read` prints a file below `roots/real` or `roots/link`, which leads to it; `list` lists a directory there.
fn pair() -> Pair {
    let scene = Scene::new();
    let roots = scene.root.join("roots");
    for directory in ["real/inside", "real-evil", "outside"] {
        scene::make_directory(&roots.join(directory));
    }
    for file in ["real/file", "real/inside/file", "real-evil/file", "outside/file"] {
        fs::write(roots.join(file), format!("{file}\n")).expect("writing");
    }
    let link = |to: &str, name: &str| symlink(to, roots.join(name)).expect("a link");
    link("real", "link");
    link("../outside", "real/out");
    link("../outside/file", "real/out-file");
    link("inside/file", "real/in-file");
    link("/proc/self/root", "real/root");
    link("/proc/self/cwd", "real/cwd");
    link("loop", "real/loop");
    fs::write(roots.join("real").join(OsStr::from_bytes(b"caf\xe9")), "latin\n").expect("writing");
    fs::hard_link(roots.join("real/file"), roots.join("real/hard")).expect("a hard link");
    let both = json!([roots.join("real"), roots.join("link")]);
    let path = |more: Value| {
        let mut param = json!({"type": "path", "roots": both});
        param.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        json!({"path": param})
    };
    let readable = json!({"read": [scene.root]});
    let actions = [
        scene.action(
            "read",
            json!({"params": path(json!({"must_exist": true})), "exec": ["/bin/cat", "{path}"], "sandbox": readable}),
        ),
        scene.action(
            "name",
            json!({"params": path(json!({"max_length": 200})), "exec": ["/bin/echo", "{path}"]}),
        ),
        scene.action(
            "list",
            json!({"params": path(json!({})), "exec": ["/bin/ls", "{path}"], "sandbox": readable}),
        ),
        scene.action(
            "proc",
            json!({
                "params": {"path": {"type": "path", "roots": ["/proc"], "must_exist": true}},
                "exec": ["/bin/ls", "-d", "{path}"],
            }),
        ),
    ];
    scene.pair(&actions)
}

fn call(pair: &Pair, tool: &str, path: &str) -> ToolResult {
    let path = if path.starts_with("/proc") {
        path.to_owned()
    } else {
        format!("{}/roots/{path}", pair.scene.root.display())
    };
    pair.call(tool, json!({"params": {"path": path}}))
}

/// Refused, or not started at this stage; nothing is printed.
fn assert_kept_out(result: &ToolResult, reason: &str) {
    assert!(result.is_error(), "{reason}: {:#}", result.0);
    assert!(result.text().contains(reason), "{reason}: {:#}", result.0);
    assert!(!result.0.to_string().contains("outside/file\\n"), "{:#}", result.0);
}

#[test]
fn what_lies_really_under_a_root_is_reached() {
    let pair = pair();
    for (path, holds) in [
        ("real/file", "real/file"),
        ("real/inside/file", "real/inside/file"),
        ("real/in-file", "real/inside/file"),
        ("link/file", "real/file"),
        ("real/hard", "real/file"),
    ] {
        assert_eq!(call(&pair, "read", path).stdout(), holds, "{path}");
    }
}

#[test]
fn no_spelling_leads_out_of_the_roots() {
    let pair = pair();
    for path in ["outside/file", "real-evil/file", "realfile", "real-evil", "linker"] {
        assert_kept_out(&call(&pair, "read", path), "under one of");
    }
    for path in ["real/../outside/file", "real/./file", "real//file", "real/file/", "real/.."] {
        assert_kept_out(&call(&pair, "read", path), "absolute path without");
    }
}

#[test]
fn no_link_leads_out_of_the_roots() {
    let pair = pair();
    for path in ["real/out/file", "real/out-file", "link/out/file", "real/out/new"] {
        assert_kept_out(&call(&pair, "name", path), "path_roots");
    }
    // A magic link is followed by nobody, whether it leads out or not.
    let root = pair.scene.root.display().to_string();
    for path in [
        format!("real/root{root}/roots/outside/file"),
        format!("real/root{root}/roots/real/file"),
        "real/cwd/etc/passwd".to_owned(),
        "real/loop".to_owned(),
    ] {
        assert_kept_out(&call(&pair, "read", &path), "path");
    }
    for path in ["/proc/self/root/etc", "/proc/self/cwd/etc", "/proc/self/fd/0", "/proc/thread-self/root"] {
        assert_kept_out(&call(&pair, "proc", path), "path");
    }
    assert!(!call(&pair, "proc", "/proc/uptime").is_error());
}

#[test]
fn what_does_not_exist_is_judged_by_its_directory() {
    let pair = pair();
    assert_kept_out(&call(&pair, "read", "real/new"), "No such file");
    assert!(call(&pair, "name", "real/new").stdout().ends_with("real/new"));
    assert!(call(&pair, "name", "real/new/deeper").stdout().ends_with("real/new/deeper"));
    let long = format!("real/{}", "x".repeat(200));
    assert_kept_out(&call(&pair, "name", &long), "at most 200");
}

#[test]
fn names_that_are_no_text_are_shown_and_marked() {
    let pair = pair();
    let listed = call(&pair, "list", "real");
    assert!(listed.stdout().contains("caf\u{fffd}"), "{:#}", listed.0);
    assert_eq!(listed.step(0)["lossy_utf8"], true, "{:#}", listed.0);
    let inside = call(&pair, "list", "real/inside");
    assert_eq!(inside.step(0)["lossy_utf8"], false, "{:#}", inside.0);
}
