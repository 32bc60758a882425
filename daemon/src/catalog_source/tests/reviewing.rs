//! What a reviewer is told.

use super::{Scratch, catalog};
use crate::catalog_source::lint::{self, Level};
use crate::catalog_source::{Direction, diff};
use gloveport_contract::catalog::{Catalog, FORMAT};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const BASE: &str = "name: a\ndescription: d\nrisk: read\n";

fn changes(old: &str, new: &str) -> Vec<String> {
    let changes = diff(&catalog(&format!("{BASE}{old}")), &catalog(&format!("{BASE}{new}")));
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_change_is_told_by_what_it_permits() {
    let exec = "exec: [/bin/true]\n";
    let cases = [
        ("timeout: 20s", "timeout: 40s", "+ a: `timeout` from 20s to 40s"),
        ("", "timeout: 20s", "- a: `timeout` from 30s to 20s"),
        ("max_output: 1MB", "", "- a: `max_output` from 1MB to 32KiB"),
        ("", "groups: [adm]", "+ a: `groups` also adm"),
        ("groups: [adm]", "", "- a: `groups` no longer adm"),
        ("", "sandbox: {network: [dns]}", "+ a: `sandbox.network` also dns"),
        (
            "sandbox: {network: [{connect: [443]}]}",
            "sandbox: {network: [{connect: [443, 80]}]}",
            "+ a: `sandbox.network` also connect 80",
        ),
        ("sandbox: {base: minimal}", "", "+ a: `sandbox.base` from minimal to system"),
        ("", "sandbox: {list: declared}", "- a: `sandbox.list` from everywhere to declared"),
        ("", "sandbox: {may_lack: [cgroup]}", "+ a: `sandbox.may_lack` also cgroup"),
        ("", "sandbox: {private_tmp: 1MiB}", "+ a: `sandbox.private_tmp` from 0 to 1MiB"),
        ("", "redact: {builtin: []}", "+ a: `redact.builtin` no longer secrets"),
        ("", "redact: {patterns: [x]}", "- a: `redact.patterns` also x"),
        ("", "run_as: web", "! a: `run_as` is new: web"),
        ("", "title: t", "  a: `title` is worded otherwise"),
        (
            "params: {u: {type: string, pattern: x}}",
            "params: {u: {type: string}}",
            "+ a: `params.u.pattern` from x to nothing",
        ),
        (
            "params: {u: {type: string, pattern: x}}",
            "params: {u: {type: string, pattern: y}}",
            "! a: `params.u.pattern` changed\n      was x\n      is  y",
        ),
        (
            "params: {u: {type: integer, max: 5}}",
            "params: {u: {type: integer}}",
            "+ a: `params.u.max` from 5 to nothing",
        ),
        (
            "params: {u: {type: integer}}",
            "params: {u: {type: integer, min: 5}}",
            "- a: `params.u.min` from nothing to 5",
        ),
        (
            "params: {u: {type: string}}",
            "params: {u: {type: string, allow_dash: true}}",
            "+ a: `params.u.allow_dash` is set",
        ),
        ("params: {u: {type: string}}", "", "- a: `params` no longer `u`"),
        (
            "params: {t: {type: integer}}\ntimeout: {param: t, default: 1s, max: 2s}",
            "params: {t: {type: integer}}\ntimeout: {param: t, default: 1s, max: 3s}",
            "+ a: `timeout.max` from 2s to 3s",
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(changes(&format!("{exec}{old}"), &format!("{exec}{new}")), [expected], "{old} -> {new}");
    }
    assert_eq!(changes(exec, exec), [""; 0]);
    let (seconds, minute) = (format!("{exec}timeout: 60s"), format!("{exec}timeout: 1m"));
    assert_eq!(changes(&seconds, &minute), [""; 0], "the same time");
    assert_eq!(
        changes(exec, "exec: [/bin/false]\n"),
        ["! a: `exec` changed\n      was [\"/bin/true\"]\n      is  [\"/bin/false\"]"]
    );
}

#[test]
fn the_rules_of_a_command_are_compared_by_name() {
    let rules = |rules: &str| {
        format!(
            "builtin: command\nparams: {{command: {{type: string}}}}\nbuiltin_config: {{commands: [{rules}]}}\n"
        )
    };
    let ls = "{name: ls, exec: /bin/ls, short: 'la', operands: 0..4}";
    let wider = "{name: ls, exec: /bin/ls, short: 'law:', long: [all], operands: 0..9}";
    assert_eq!(
        changes(&rules(ls), &rules(wider)),
        [
            "+ a: `builtin_config.commands.ls.short` also -w:",
            "+ a: `builtin_config.commands.ls.long` also all",
            "+ a: `builtin_config.commands.ls.operands` from 0..4 to 0..9",
        ]
    );
    let found = changes(&rules(ls), &rules(&format!("{ls}, {{name: id, exec: /bin/id}}")));
    assert!(
        found.len() == 1 && found[0].starts_with("+ a: `builtin_config.commands` also `id`"),
        "{found:?}"
    );
    assert_eq!(changes(&rules(&format!("{ls}, {{name: id, exec: /bin/id}}")), &rules(ls)).len(), 1);
}

#[test]
fn new_and_lost_actions_and_another_order_are_told() {
    let some = catalog(&format!("{BASE}exec: [/bin/true]\n"));
    let none = Catalog { format: FORMAT, actions: Vec::new() };
    let direction = |old, new| diff(old, new)[0].direction;
    assert_eq!(direction(&none, &some), Direction::More);
    assert_eq!(direction(&some, &none), Direction::Less);
    let steps = |names: [&str; 2]| {
        format!(
            "steps: [{}]\n",
            names.map(|name| format!("{{name: {name}, exec: [/bin/{name}]}}")).join(", ")
        )
    };
    assert_eq!(
        changes(&steps(["ls", "id"]), &steps(["id", "ls"])),
        ["! a: `steps` run in another order: id, ls"]
    );
}

/// What lint says of an action, as `level key`.
fn findings(rest: &str) -> Vec<String> {
    let catalog = catalog(&format!("name: a\ndescription: d\n{rest}"));
    lint::lint(&catalog.actions[0]).iter().map(|f| format!("{} {}", f.level.as_str(), f.path)).collect()
}

#[test]
fn what_is_risky_is_found_at_its_key() {
    let exec = "risk: read\nexec: [/bin/true]\n";
    let cases = [
        ("run_as: root", "warning run_as"),
        ("run_as: '1:1'", "warning run_as"),
        ("groups: ['?docker']", "warning groups.0"),
        ("redact: {builtin: []}", "warning redact.builtin"),
        ("sandbox: {write: [/srv/x]}", "warning sandbox.write"),
        ("sandbox: {exec: [/bin/true]}", "warning sandbox.exec"),
        ("sandbox: {network: [unix]}", "note sandbox.network"),
        ("sandbox: {network: [{bind: [80]}]}", "warning sandbox.network"),
        ("sandbox: {may_lack: [cgroup]}", "note sandbox.may_lack"),
        ("sandbox: {read: [/etc/x]}", "note sandbox.read.0"),
        ("sandbox: {read: [/srv/a/b, /srv/a]}", "note sandbox.read.0"),
        ("sandbox: {read: [/srv/a, /srv/a]}", "note sandbox.read.1"),
        ("env: {API_TOKEN: abc}", "warning env.API_TOKEN"),
    ];
    assert_eq!(findings(exec), [""; 0]);
    for (line, expected) in cases {
        assert_eq!(findings(&format!("{exec}{line}\n")), [expected], "{line}");
    }
    let used = "risk: read\nexec: [/bin/true, '{u}']\n";
    for (param, expected) in [
        ("u: {type: string, description: d, pattern: '[^x]+'}", "warning params.u.pattern"),
        ("u: {type: string, description: d, allow_dash: true}", "warning params.u.allow_dash"),
        ("u: {type: string}", "note params.u"),
        ("u: {type: path, description: d, roots: [/]}", "note params.u.roots"),
        ("u: {type: integer, description: d}, v: {type: integer, description: d}", "warning params.v"),
    ] {
        assert_eq!(findings(&format!("{used}params: {{{param}}}\n")), [expected], "{param}");
    }
    let telling = "risk: read\nexec: [/bin/true, '{db_password}']\nparams: {db_password: {type: string, description: d}}\n";
    assert_eq!(findings(telling), ["warning params.db_password"]);
}

#[test]
fn risky_programs_and_arguments_are_found() {
    let cases = [
        ("risk: read\nexec: [/usr/bin/env, ls]", "warning exec.0"),
        ("risk: read\nexec: [/no/such/program]", "note exec.0"),
        ("risk: read\nexec: [/bin/true, --password=x]", "warning exec.1"),
        ("risk: read\nexec: [/bin/true, 'https://u:p@host/']", "warning exec.1"),
        ("risk: dangerous\nexec: [/bin/true]", "note risk"),
        (
            "risk: write\nexec: [/bin/true]\nsandbox: {write: [/srv/a], read: [/srv/a/b]}",
            "warning sandbox.read.0",
        ),
        ("risk: write\nexec: [/bin/true]\nsandbox: {write: [/etc/x]}", "warning sandbox.write.0"),
        ("risk: write\nexec: [/bin/true]\nsandbox: {write: [/var]}", "warning sandbox.write.0"),
        (
            "risk: read\nbuiltin: command\nparams: {command: {type: string, description: d}}\nbuiltin_config: \
             {commands: [{name: echo, exec: /bin/true, any: true}]}",
            "warning builtin_config.commands.0.any",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(findings(&format!("{rest}\n")), [expected], "{rest}");
    }
    let below = findings("risk: write\nexec: [/bin/true]\nsandbox: {exec: [/srv/x/y], write: [/srv/x]}\n");
    assert!(below.contains(&"warning sandbox.exec.0".to_owned()), "{below:?}");
    let interpreter = findings("risk: read\nallow_interpreter: true\nexec: [/bin/sh, -c, id]\n");
    assert!(interpreter.contains(&"warning exec.0".to_owned()), "{interpreter:?}");
}

/// Sets the mode of a file.
fn change_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The warnings and notes about a program on this host, each as its text.
fn said_of(program: &Path) -> Vec<String> {
    let catalog = catalog(&format!("{BASE}exec: [{}]\n", program.display()));
    lint::lint(&catalog.actions[0]).into_iter().map(|finding| finding.text).collect()
}

#[test]
fn a_program_that_others_can_replace_is_a_warning() {
    let scratch = Scratch::new().with("tool", "#!/bin/sh\n");
    let tool = scratch.path().join("tool");
    change_mode(&tool, 0o777);
    let found = findings(&format!("risk: read\nexec: [{}]\n", tool.display()));
    assert_eq!(found, ["warning exec.0", "warning exec.0"], "writable, and a `#!` file");
}

#[test]
fn so_is_one_in_a_directory_that_others_can_write_to() {
    let scratch = Scratch::new();
    let open = scratch.path().join("open");
    fs::create_dir(&open).unwrap();
    let tool = open.join("tool");
    fs::copy("/bin/true", &tool).unwrap();
    change_mode(&open, 0o755);
    assert_eq!(said_of(&tool), [""; 0], "root's in root's");
    change_mode(&open, 0o777);
    let said = said_of(&tool).join("\n");
    assert!(said.contains("can write to") && said.contains(&open.display().to_string()), "{said}");
    // Others can add names to a sticky directory, and replace none.
    change_mode(&open, 0o1777);
    assert_eq!(said_of(&tool), [""; 0]);
}

#[test]
fn what_a_link_hides_and_a_set_uid_bit_that_gives_nothing_are_told() {
    let scratch = Scratch::new();
    let link = scratch.path().join("lister");
    std::os::unix::fs::symlink("/bin/dash", &link).unwrap();
    let said = said_of(&link).join("\n");
    assert!(said.contains("here, an interpreter"), "{said}");
    let tool = scratch.path().join("tool");
    fs::copy("/bin/true", &tool).unwrap();
    change_mode(&tool, 0o4755);
    let said = said_of(&tool).join("\n");
    assert!(said.contains("gains nothing"), "{said}");
}

#[test]
fn a_finding_is_shown_at_its_place() {
    let scratch = Scratch::new().with("a.yaml", format!("{BASE}run_as: root\nexec: [/bin/true]\n"));
    let sources = scratch.read().unwrap();
    let finding = &lint::lint(&sources.catalog.actions[0])[0];
    assert_eq!(finding.level, Level::Warning);
    let text = finding.located(&sources).to_string();
    assert!(text.contains("a.yaml:4:9: warning: action `a`, run_as: runs as root"), "{text}");
}
