//! The catalogue, and who signed it.

use super::{Diagnosis, assert_text, catalog, complaint, gloveport};
use gloveport_tests::{Scene, programs};
use serde_json::json;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Three mistakes of different kinds.
const MISTAKES: &str = "\
name: disk
description: Disks.
risk: read
exec: [/usr/bin/df]
timeout_seconds: 5
---
name: log
description: A log.
risk: read
params:
  unit: {type: string, patern: '[a-z]+'}
exec: [/usr/bin/journalctl, \"--unit={unit}\"]
---
name: unit
description: A unit.
risk: harmless
exec: [systemctl, status]
";

/// What lint has something to say about.
const RISKY: &str = "\
name: wrapper
description: Starts another.
risk: read
exec: [/usr/bin/env, id]
---
name: shell
description: Interprets.
risk: read
allow_interpreter: true
exec: [/bin/sh, -c, id]
---
name: root
description: As root, with a program that is not here.
risk: read
run_as: root
exec: [/nonexistent/program]
---
name: pattern
description: A pattern that takes too much.
risk: read
params: {word: {type: string, allow_dash: true, pattern: '[^x]+'}, key: {type: string, secret: true}}
exec: [/usr/bin/echo, \"{word}\"]
sandbox: {read: [/srv, /srv/www]}
";

#[test]
fn the_sources_have_mistakes() {
    let scene = Scene::new();
    let mistakes = catalog(&scene, MISTAKES);
    let up = gloveport(&scene)
        .args(["up", "--daemon-user", &scene.daemon.number.to_string(), "--catalog", &mistakes])
        .output()
        .expect("up");
    // The operator's own sources are looked at as well.
    fs::create_dir_all(scene.state().join("catalog.d")).expect("making a directory");
    scene.file("state/catalog.d/mine.yaml", MISTAKES);
    let found = Diagnosis::of(&scene).finding("sources", "warn", "");
    assert_text(&scene, "catalogue_with_mistakes", &(complaint(&up) + &found));
}

#[test]
fn lint_says_what_is_wrong_and_what_is_risky() {
    let scene = Scene::new();
    let mut said = String::new();
    for (text, code) in [(MISTAKES, 1), (RISKY, 0)] {
        let sources = catalog(&scene, text);
        let output = gloveport(&scene).args(["catalog", "lint", &sources]).output().expect("lint");
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        said += &String::from_utf8_lossy(&output.stdout);
        said += &String::from_utf8_lossy(&output.stderr);
        said += "\n";
    }
    assert_text(&scene, "lint", &said);
}

/// What `init` says, without what changes with the ready catalogues.
fn init(command: &mut Command) -> String {
    let output = command.output().expect("init");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_change =
        |line: &&str| line.starts_with("  + ") || line.starts_with("  ! ") || line.starts_with("  - ");
    let shown = text.lines().filter(|line| !is_change(line)).map(|line| {
        match line.split_once(" actions, SHA-256 ") {
            Some(_) => "in force: N actions, SHA-256 DIGEST",
            None => line,
        }
    });
    format!("exit {}\n{}\n\n", output.status.code().unwrap_or(-1), shown.collect::<Vec<_>>().join("\n"))
}

#[test]
fn init_says_what_it_does_and_why_it_does_not() {
    let scene = Scene::new();
    let first = init(gloveport(&scene).args(["init", "--yes"]));
    let again = init(gloveport(&scene).args(["init", "--yes"]));
    scene.file("state/catalog.d/mine.yaml", MISTAKES);
    let mistakes = init(gloveport(&scene).args(["init", "--yes"]));
    let user = scene.run.number;
    let mut without_root = Command::new(scene.install("gloveport"));
    let without_root = init(without_root.env_remove("GLOVEPORT_STATE").arg("init").uid(user).gid(user));
    // A program alone, neither installed nor in a checkout.
    let hide =
        "if [ -d /usr/share/gloveport ]; then mount -t tmpfs none /usr/share/gloveport; fi; exec \"$@\"";
    let mut alone = Command::new("unshare");
    alone.args(["--mount", "sh", "-ec", hide, "sh"]).arg(scene.install("gloveport")).arg("--state");
    let alone = init(alone.arg(scene.state()).args(["init", "--yes"]).current_dir("/"));
    assert_text(&scene, "init", &[first, again, mistakes, without_root, alone].concat());
}

#[test]
fn a_signature_is_wrong() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let preparation = scene.prepare(&[hello]);
    preparation.write();
    let file = preparation.catalog_file();
    let text = fs::read_to_string(&file).expect("the catalogue");
    assert!(Diagnosis::of(&preparation.scene).is_well("catalogue"));
    fs::write(&file, text.replace("of a test", "of a tesT")).expect("writing");
    let scene = &preparation.scene;
    let check = Command::new(programs::built("gloveport-helper"))
        .arg("--check")
        .arg(&file)
        .arg(scene.state().join("trusted_signers"))
        .output()
        .expect("gloveport-helper");
    let found = Diagnosis::of(scene).finding("catalogue", "fail", "");
    assert_text(scene, "wrong_signature", &(complaint(&check) + &found));
}

#[test]
fn a_changed_catalogue_leaves_the_one_before_in_force_and_doctor_knows_it() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[hello]);
    let file = helper.scene.state().join("catalog.json");
    let text = fs::read_to_string(&file).expect("the catalogue");
    fs::write(&file, text.replace("of a test", "of a tesT")).expect("writing");
    assert_eq!(helper.run(helper.call("hello", &[])).stdout, "hello\n");
    let found = Diagnosis::of(&helper.scene).finding("catalogue", "fail", "");
    assert_text(&helper.scene, "changed_catalogue", found.trim_start());
}

#[test]
fn nobody_may_sign() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let preparation = scene.prepare(&[hello]);
    preparation.write();
    let scene = &preparation.scene;
    assert!(Diagnosis::of(scene).is_well("keys"));
    scene.file("state/trusted_signers", "# nobody yet\n");
    let found = Diagnosis::of(scene).finding("keys", "fail", "");
    assert_text(scene, "no_signer", found.trim_start());
}

#[test]
fn a_program_or_an_account_is_missing() {
    let scene = Scene::new();
    let actions = [
        scene.exec("program", &["/nonexistent/program"]),
        scene.probing("account", &["print", "x"]).with(json!({"run_as": "gloveport-nobody"})),
        scene.probing("place", &["print", "x"]).with(json!({"sandbox": {"read": ["/nonexistent/place"]}})),
    ];
    let pair = scene.pair(&actions);
    let mut said: String = actions
        .iter()
        .map(|action| {
            let result = pair.call(action.name(), json!({}));
            assert!(result.is_error(), "{:#}", result.0);
            format!("{}\n", result.text())
        })
        .collect();
    said += &Diagnosis::of(&pair.scene).finding("actions", "warn", "");
    assert_text(&pair.scene, "unsupported_actions", &said);
    let tools =
        pair.gloveport(&["tools", "--url", &pair.url(), "--token", pair.token.as_deref().unwrap_or("")]);
    let listed = String::from_utf8_lossy(&tools.stdout);
    assert!(listed.contains("/nonexistent/program"), "`tools` says which and why: {listed}");
}
