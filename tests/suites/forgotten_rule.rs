//! The sandbox holds where a rule was forgotten: with every option allowed, the kernel stops it all the same.

use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};
use std::fs;

/// A free-form tool without any rule for its programs, which run in the sandbox of the packaged catalogue.
fn pair() -> Pair {
    let scene = Scene::new();
    let root = scene.own_directory("own");
    fs::write(format!("{root}/file"), "b\na\n").expect("writing");
    let programs = [
        "/usr/bin/sort",
        "/usr/bin/find",
        "/usr/bin/uniq",
        "/usr/bin/file",
        "/usr/bin/date",
        "/usr/bin/hostname",
        "/usr/bin/tar",
        "/usr/bin/sed",
        "/usr/bin/rm",
        "/usr/bin/touch",
        "/usr/bin/cp",
        "/usr/bin/tee",
        "/usr/bin/env",
        "/usr/bin/xargs",
        "/usr/bin/timeout",
        "/usr/bin/su",
        "/usr/bin/mount",
        "/usr/bin/dd",
    ];
    let rules: Vec<Value> = programs
        .iter()
        .map(|path| json!({"name": path.rsplit('/').next(), "exec": path, "any": true}))
        .collect();
    let action = scene.action(
        "execute_command",
        json!({
            "arguments": "flat", "result": "command",
            "params": {"command": {"type": "string", "max_length": 8192}},
            "builtin": "command", "builtin_config": {"commands": rules},
            "sandbox": {"read": [scene.root]},
        }),
    );
    scene.pair(&[action])
}

#[test]
fn nothing_is_written_deleted_or_started() {
    let pair = pair();
    let own = pair.scene.root.join("own");
    let before = snapshot(&own);
    let own = own.display().to_string();
    let attempts = [
        format!("sort -o {own}/out {own}/file"),
        format!("sort -S 1k --compress-program=/usr/bin/touch {own}/file -o {own}/file"),
        format!("find {own} -exec /usr/bin/touch {own}/x {{}} +"),
        format!("find {own} -name file -delete"),
        format!("find {own} -fprint {own}/listing"),
        format!("uniq {own}/file {own}/out"),
        format!("file -C -m {own}/file"),
        "date -s 2000-01-01".to_owned(),
        "hostname evil".to_owned(),
        format!("tar -cf {own}/x.tar --checkpoint=1 --checkpoint-action=exec=id {own}/file"),
        format!("sed -i s/a/x/ {own}/file"),
        format!("sed -n 'w {own}/x' {own}/file"),
        format!("sed '1e touch {own}/x' {own}/file"),
        format!("rm {own}/file"),
        format!("touch {own}/x"),
        format!("cp {own}/file {own}/x"),
        format!("tee {own}/x"),
        format!("dd if=/dev/zero of={own}/file count=1"),
        "env id".to_owned(),
        "xargs id".to_owned(),
        "timeout 5 id".to_owned(),
        "su -c id".to_owned(),
        format!("mount -t tmpfs none {own}"),
    ];
    let host = hostname();
    for command in &attempts {
        let result = pair.call("execute_command", json!({"command": command}));
        assert_eq!(result.structured()["success"], false, "{command}: {:#}", result.0);
        assert!(!result.text().contains("uid="), "{command}: {:#}", result.0);
        assert_eq!(snapshot(own.as_ref()), before, "{command} changed something");
    }
    assert_eq!(hostname(), host);
    // The programs themselves work: what failed was what they were asked to do.
    let sorted = pair.call("execute_command", json!({"command": format!("sort {own}/file")}));
    assert_eq!(sorted.structured()["stdout"], "a\nb\n", "{:#}", sorted.0);
}

fn hostname() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default()
}

/// Names and contents of a directory.
fn snapshot(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("the directory").flatten();
    let mut found: Vec<_> = entries
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    found.sort();
    found
}
