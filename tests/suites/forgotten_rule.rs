//! The sandbox holds where a rule was forgotten: with every option allowed, the kernel stops it all the same.

use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};
use std::fs;

/// Programs without any rule. None of them may write or start a second program.
const PROGRAMS: [&str; 27] = [
    "/usr/bin/awk",
    "/usr/bin/cp",
    "/usr/bin/date",
    "/usr/bin/dd",
    "/usr/bin/dmesg",
    "/usr/bin/env",
    "/usr/bin/file",
    "/usr/bin/find",
    "/usr/bin/grep",
    "/usr/bin/hostname",
    "/usr/bin/md5sum",
    "/usr/bin/mount",
    "/usr/bin/nice",
    "/usr/bin/nohup",
    "/usr/bin/perl",
    "/usr/bin/rm",
    "/usr/bin/sed",
    "/usr/bin/setsid",
    "/usr/bin/sh",
    "/usr/bin/sort",
    "/usr/bin/su",
    "/usr/bin/tar",
    "/usr/bin/tee",
    "/usr/bin/timeout",
    "/usr/bin/touch",
    "/usr/bin/uniq",
    "/usr/bin/xargs",
];
/// The same with the network classes that the packaged rules give them.
const OF_THE_NETWORK: [(&str, &str); 4] = [
    ("/usr/bin/ip", "netlink"),
    ("/usr/bin/journalctl", "none"),
    ("/usr/bin/ss", "netlink"),
    ("/usr/sbin/sysctl", "none"),
];

/// A free-form tool without any rule for its programs, which run in the sandbox of the packaged catalogue.
fn pair() -> Pair {
    let scene = Scene::new();
    let root = scene.own_directory("own");
    fs::write(format!("{root}/file"), "b\na\n").expect("writing");
    let rule = |path: &str, network: &str| {
        let network = if network == "none" { json!(network) } else { json!([network]) };
        json!({
            "name": path.rsplit('/').next(), "exec": path, "any": true, "allow_interpreter": true,
            "sandbox": {"read": [scene.root], "network": network},
        })
    };
    let rules = PROGRAMS.iter().map(|path| rule(path, "none"));
    let rules: Vec<Value> = rules.chain(OF_THE_NETWORK.map(|(path, network)| rule(path, network))).collect();
    let action = scene.action(
        "execute_command",
        json!({
            "arguments": "flat", "result": "command",
            "params": {"command": {"type": "string", "max_length": 8192}},
            "builtin": "command", "builtin_config": {"commands": rules},
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
        format!("find {own} -execdir /usr/bin/touch {own}/x ';' -ok /usr/bin/touch {own}/x ';' -fls {own}/y"),
        format!("awk 'BEGIN {{print 1 > \"{own}/x\"}}'"),
        "awk 'BEGIN {exit system(\"id\")}'".to_owned(),
        "perl -e 'exec \"/usr/bin/id\" or die'".to_owned(),
        "env id".to_owned(),
        "xargs id".to_owned(),
        "timeout 5 id".to_owned(),
        "nice id".to_owned(),
        "nohup id".to_owned(),
        "setsid --wait id".to_owned(),
        "env sudo id".to_owned(),
        "su -c id".to_owned(),
        // What reads a list of files or patterns reads nothing that its account may not.
        "grep -f /etc/shadow /etc/passwd".to_owned(),
        "md5sum -c /etc/shadow".to_owned(),
        "sort --files0-from=/etc/shadow".to_owned(),
        "date -f /etc/shadow".to_owned(),
        "ip link set lo down".to_owned(),
        "journalctl --rotate".to_owned(),
        "dmesg -C".to_owned(),
        "sysctl -w kernel.hostname=evil".to_owned(),
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
    // It ends well and says that nothing was ended.
    let closing = pair.call("execute_command", json!({"command": "ss -K dst 127.0.0.1"}));
    assert!(closing.text().contains("Operation not permitted"), "{:#}", closing.0);
    // The programs themselves work: what failed was what they were asked to do.
    let sorted = pair.call("execute_command", json!({"command": format!("sort {own}/file")}));
    assert_eq!(sorted.structured()["stdout"], "a\nb\n", "{:#}", sorted.0);
    for harmless in ["awk 'BEGIN {print 1}'", "ip -brief address", "nice", "date -u"] {
        let result = pair.call("execute_command", json!({"command": harmless}));
        assert_eq!(result.structured()["success"], true, "{harmless}: {:#}", result.0);
    }
}

/// The syntax cannot be allowed, for no shell runs. Where somebody allows the shell itself, as one more program, it
/// understands all of it and can start nothing.
#[test]
fn a_shell_that_is_allowed_starts_nothing_whatever_it_is_told() {
    let pair = pair();
    let own = pair.scene.root.join("own");
    let before = snapshot(&own);
    let shown = own.display();
    let attempts = [
        "echo $(id)".to_owned(),
        "echo `id`".to_owned(),
        "uptime; id".to_owned(),
        "uptime & id; wait".to_owned(),
        "true && id".to_owned(),
        "echo x | id".to_owned(),
        "echo x | sudo whoami".to_owned(),
        "exec id".to_owned(),
        "(id &) ; wait".to_owned(),
        "id\nid".to_owned(),
        format!("echo x >{shown}/x"),
        format!("echo x >>{shown}/file"),
        format!(": >{shown}/file"),
    ];
    for script in &attempts {
        let command = format!("sh -c '{script}'");
        let result = pair.call("execute_command", json!({"command": command}));
        let said = result.structured();
        assert!(!said.to_string().contains("uid=") && said["stdout"] != "root\n", "{script}: {said:#}");
        assert_eq!(snapshot(&own), before, "{script} changed something");
    }
    // It does what needs no second program.
    let sum =
        pair.call("execute_command", json!({"command": "sh -c 'echo $((6 * 7)); read line || echo eof'"}));
    assert_eq!(sum.structured()["stdout"], "42\neof\n", "and its stdin is closed: {:#}", sum.0);
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
