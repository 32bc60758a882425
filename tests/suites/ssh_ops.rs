//! The ready catalogue `ssh-ops`: a command, reading a file and writing one.

use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene, programs, scene};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// The catalogue as it is packaged, but for the user, and with the scene's directories in place of /home/ops.
fn pair() -> Pair {
    let scene = Scene::new();
    let directory = scene.root.join("ssh-ops");
    scene::make_directory(&directory);
    let ops = scene.own_directory("ops");
    scene.own_directory("ops-evil");
    let user = format!("run_as: \"{0}:{0}\"", scene.run.number);
    for entry in fs::read_dir(packaged("ssh-ops")).expect("the packaged catalogue").flatten() {
        let source = fs::read_to_string(entry.path()).expect("a source");
        assert!(source.contains("run_as: gloveport-run\n"), "{:?} names another user", entry.path());
        let source = source.replace("run_as: gloveport-run", &user).replace("/home/ops", &ops);
        // The scene itself lies under /tmp, which the package opens for writing: here only its `ops` is open.
        let source = source.replace("[/tmp, ", "[").replace("[/tmp/**, ", "[");
        let source = source.replace(" /tmp, /var/tmp,", "").replace(" /tmp/**, /var/tmp/**,", "");
        fs::write(directory.join(entry.file_name()), source).expect("writing a source");
    }
    scene.pair_of(&[&directory])
}

fn packaged(name: &str) -> std::path::PathBuf {
    programs::repository().join("packaging/catalogs").join(name)
}

fn command(pair: &Pair, command: &str) -> ToolResult {
    pair.call("exec_command", json!({"command": command}))
}

fn data(result: &ToolResult) -> &Value {
    assert!(!result.is_error(), "{result:?}");
    &result.structured()["data"]
}

/// Whether nothing was done: the call was refused, or the handler answers with a reason.
fn refused(result: &ToolResult) -> bool {
    result.is_error() || result.structured()["data"]["error"].is_string()
}

fn write(pair: &Pair, path: &str, keys: Value) -> ToolResult {
    let mut arguments = json!({"path": path, "content": "new\n"});
    for (key, value) in keys.as_object().into_iter().flatten() {
        arguments[key] = value.clone();
    }
    pair.call("write_file", arguments)
}

#[test]
fn there_are_three_tools_with_flat_arguments() {
    let pair = pair();
    let listed = pair.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
    let required: Vec<(&str, &Value)> = tools
        .iter()
        .filter(|tool| tool["name"] != "run_batch")
        .map(|tool| (tool["name"].as_str().unwrap_or_default(), &tool["inputSchema"]["required"]))
        .collect();
    let (one, two, three) = (json!(["command"]), json!(["path"]), json!(["path", "content"]));
    assert_eq!(required, [("exec_command", &one), ("read_file", &two), ("write_file", &three)]);
}

#[test]
fn a_command_runs_with_a_fixed_environment_where_it_was_told_to() {
    let pair = pair();
    let said = pair.call("exec_command", json!({"command": "pwd", "workdir": "/usr/share"}));
    assert_eq!(said.stdout(), "/usr/share");
    assert_eq!(command(&pair, "printenv PATH").stdout(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin");
    assert_eq!(command(&pair, "printenv LANG").stdout(), "C.UTF-8");
    assert_eq!(command(&pair, "ls /nonexistent").structured()["exit_code"], 2);
}

#[test]
fn the_first_word_alone_lets_nothing_pass() {
    let pair = pair();
    for attempt in [
        "ls /tmp; rm -rf /",
        "ls /tmp && id",
        "ls $(id)",
        "rm -rf /",
        "systemctl stop ssh",
        "systemctl statusx",
        "systemctl reboot",
        "journalctl -n --vacuum-size=1",
        "journalctl --vacuum-size=1",
        "find / -delete",
        "/tmp/ls",
    ] {
        let refused = command(&pair, attempt);
        assert!(refused.is_error(), "{attempt} was let through: {refused:?}");
    }
    // Word by word: this one is a rule's beginning, and systemd's absence here is its own answer.
    assert!(!command(&pair, "systemctl status ssh.service").is_error());
    assert!(!command(&pair, "systemctl  'status' ssh.service").is_error());
}

#[test]
fn output_that_is_too_long_is_cut_at_a_character_and_says_how_to_go_on() {
    let pair = pair();
    let ops = pair.scene.root.join("ops");
    fs::write(ops.join("long"), "日本語\n".repeat(20_000)).expect("a file");
    let path = ops.join("long").display().to_string();
    let said = command(&pair, &format!("cat {path}"));
    let step = said.step(0);
    assert_eq!(step["stdout_truncated"], true);
    assert!(!step["stdout"].as_str().unwrap_or_default().contains('\u{fffd}'));
    assert!(said.text().contains("[stdout cut: "), "the text says what was left out");

    let read = pair.call("read_file", json!({"path": path}));
    let first = data(&read);
    assert_eq!(first["truncated"], true);
    let note = first["note"].as_str().unwrap_or_default();
    let next = first["lines"].as_u64().unwrap_or_default() + 1;
    assert!(note.contains(&format!("start_line {next}")), "{note}");
    let read = pair.call("read_file", json!({"path": path, "start_line": next, "lines": 2}));
    assert_eq!(data(&read)["content"], "日本語\n日本語\n");
}

#[test]
fn reading_is_open_within_the_roots_and_nowhere_else() {
    let pair = pair();
    let ops = pair.scene.root.join("ops");
    let read = pair.call("read_file", json!({"path": "/etc/hostname"}));
    assert!(data(&read)["content"].is_string(), "{read:?}");
    fs::write(pair.scene.root.join("secret"), "secret").expect("a file");
    symlink("/etc/shadow", ops.join("link")).expect("a link");
    symlink(&pair.scene.root, ops.join("up")).expect("a link");
    let ops = ops.display();
    for path in [
        format!("{ops}/link"),
        format!("{ops}/up/secret"),
        format!("{ops}/../secret"),
        format!("{ops}-evil/x"),
        "/proc/self/root/etc/hostname".to_owned(),
        "/root/.bashrc".to_owned(),
        "/etc/shadow".to_owned(),
        "etc/hostname".to_owned(),
    ] {
        let answer = pair.call("read_file", json!({"path": path}));
        assert!(refused(&answer), "{path} was read: {answer:?}");
    }
}

#[test]
fn a_write_is_whole_keeps_what_it_should_and_stays_under_its_roots() {
    let pair = pair();
    let uid = pair.scene.run.number;
    let file = pair.scene.own_file("ops/config", "old\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("chmod");
    let written = write(&pair, &file, json!({"backup": true}));
    let backup = data(&written)["backup"].as_str().unwrap_or_default().to_owned();
    assert_eq!(fs::read_to_string(&file).expect("the file"), "new\n");
    assert_eq!(fs::read_to_string(backup).expect("the backup"), "old\n");
    let meta = fs::metadata(&file).expect("the file");
    assert_eq!((meta.mode() & 0o7777, meta.uid()), (0o640, uid));

    data(&write(&pair, &file, json!({"append": true, "mode": "0600"})));
    assert_eq!(fs::read_to_string(&file).expect("the file"), "new\nnew\n");
    assert_eq!(fs::metadata(&file).expect("the file").mode() & 0o7777, 0o600);

    let root = &pair.scene.root;
    pair.scene.own_file("mine", "old\n");
    symlink(root.join("mine"), root.join("ops/link")).expect("a link");
    symlink(root.join("ops-evil"), root.join("ops/evil")).expect("a link");
    let ops = root.join("ops").display().to_string();
    for path in [
        format!("{ops}-evil/x"),
        format!("{ops}/../mine"),
        format!("{ops}/link"),
        format!("{ops}/evil/x"),
        format!("/proc/self/root{ops}/config"),
        "/etc/gloveport-test".to_owned(),
        "/root/x".to_owned(),
    ] {
        let answer = write(&pair, &path, json!({}));
        assert!(refused(&answer), "{path} was written: {answer:?}");
    }
    assert_eq!(fs::read_to_string(root.join("mine")).expect("the file"), "old\n");
    assert!(!root.join("ops-evil/x").exists());
}

/// The rules of a catalogue, by name.
fn rules(name: &str, file: &str) -> Vec<(String, String)> {
    let source = fs::read_to_string(packaged(name).join(file)).expect("a source");
    let (_, rules) = source.split_once("  commands:\n").expect("a table");
    let mut found: Vec<(String, String)> = Vec::new();
    for line in rules.lines().filter(|line| !line.trim_start().starts_with('#')) {
        match line.strip_prefix("  - ") {
            Some(rule) => {
                let (_, rest) = rule.split_once("name: ").expect("a name");
                let name = rest.split([',', '}']).next().unwrap_or_default().trim();
                found.push((name.to_owned(), rule.to_owned()));
            }
            None => found.last_mut().expect("a rule").1.push_str(line),
        }
    }
    found
}

#[test]
fn a_rule_that_both_catalogues_have_is_the_same_in_both() {
    let agent = rules("linux-agent", "execute-command.yaml");
    for (name, rule) in rules("ssh-ops", "exec-command.yaml") {
        if let Some((_, same)) = agent.iter().find(|(other, _)| *other == name) {
            assert_eq!(&rule, same, "packaging/catalogs: the rule of {name}");
        }
    }
    assert!(Path::new(&packaged("ssh-ops")).is_dir());
}
