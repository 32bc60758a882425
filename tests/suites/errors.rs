//! What a person meets when something is wrong: what happened, why, and the way out. Each is provoked for real,
//! and its text is kept in `tests/golden/errors`.

use gloveport_contract::packet::RefusalCode;
use gloveport_tests::golden::assert_golden;
use gloveport_tests::mcp::finish;
use gloveport_tests::{Scene, processes, programs};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Compares a text with its golden file, with what differs in each run replaced by words.
fn assert_text(scene: &Scene, name: &str, text: &str) {
    let mut text = text
        .replace(&scene.root.display().to_string(), "SCENE")
        .replace(&scene.run.number.to_string(), "RUN")
        .replace(&scene.daemon.number.to_string(), "DAEMON");
    // Ports are whatever was free; port 0 is written by somebody.
    for part in text.clone().split("127.0.0.1:").skip(1) {
        let port: String = part.chars().take_while(char::is_ascii_digit).collect();
        if port.len() > 1 {
            text = text.replace(&port, "PORT");
        }
    }
    assert_golden(&format!("errors/{name}.txt"), &format!("{}\n", text.trim_end()));
}

/// What a command complained; it must fail.
fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "it succeeded: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `gloveport up` for a scene, with further words.
fn up(scene: &Scene, words: &[&str]) -> Command {
    let mut command = Command::new(scene.install("gloveport"));
    for program in ["gloveportd", "gloveport-helper", "gloveport-handler"] {
        scene.install(program);
    }
    command.arg("--state").arg(scene.state()).args(["up", "--daemon-user"]);
    command.arg(scene.daemon.number.to_string()).args(words).stdin(Stdio::null());
    command
}

/// A catalogue directory with one file of this text.
fn catalog(scene: &Scene, text: &str) -> String {
    let directory = scene.root.join("catalog");
    fs::create_dir_all(&directory).expect("making a directory");
    fs::write(directory.join("mine.yaml"), text).expect("writing");
    directory.display().to_string()
}

#[test]
fn without_root() {
    let scene = Scene::new();
    let output = up(&scene, &[]).uid(scene.run.number).gid(scene.run.number).output().expect("up");
    assert_text(&scene, "without_root", &complaint(&output));
}

#[test]
fn the_port_is_taken() {
    let scene = Scene::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let output = up(&scene, &["--listen", &address]).output().expect("up");
    assert_text(&scene, "port_taken", &complaint(&output));
}

#[test]
fn the_daemons_user_does_not_exist() {
    let scene = Scene::new();
    let mut command = Command::new(programs::built("gloveport"));
    command.arg("--state").arg(scene.state()).args(["up", "--daemon-user", "gloveport-nobody"]);
    assert_text(&scene, "missing_daemon_user", &complaint(&command.output().expect("up")));
}

#[test]
fn the_catalogue_has_mistakes() {
    let scene = Scene::new();
    let mistakes = catalog(
        &scene,
        "name: disk\ndescription: Disks.\nrisk: read\nexec: [/usr/bin/df]\ntimeout_seconds: 5\n---\n\
         name: log\ndescription: A log.\nrisk: read\nparams:\n  unit: {type: string, patern: '[a-z]+'}\n\
         exec: [/usr/bin/journalctl, \"--unit={unit}\"]\n---\n\
         name: unit\ndescription: A unit.\nrisk: harmless\nexec: [systemctl, status]\n",
    );
    let output = up(&scene, &["--catalog", &mistakes]).output().expect("up");
    assert_text(&scene, "catalogue_with_mistakes", &complaint(&output));
}

#[test]
fn nobody_has_a_token() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let mut preparation = scene.prepare(&[hello]);
    preparation.tokens.tokens.clear();
    let helper = preparation.start();
    let mut daemon = Command::new(helper.scene.install("gloveportd"));
    daemon.arg("--state").arg(helper.scene.state()).args(["--listen", "127.0.0.1:0"]);
    let user = helper.scene.daemon.number;
    let output = daemon.uid(user).gid(user).stdin(Stdio::null()).output().expect("gloveportd");
    assert_text(&helper.scene, "no_token", &complaint(&output));
}

#[test]
fn a_signature_is_wrong() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let preparation = scene.prepare(&[hello]);
    preparation.write();
    let file = preparation.catalog_file();
    let text = fs::read_to_string(&file).expect("the catalogue");
    fs::write(&file, text.replace("of a test", "of a tesT")).expect("writing");
    let scene = &preparation.scene;
    let check = Command::new(programs::built("gloveport-helper"))
        .arg("--check")
        .arg(&file)
        .arg(scene.state().join("trusted_signers"))
        .output()
        .expect("gloveport-helper");
    assert_text(scene, "wrong_signature", &complaint(&check));
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
    let said: String = actions
        .iter()
        .map(|action| {
            let result = pair.call(action.name(), json!({}));
            assert!(result.is_error(), "{:#}", result.0);
            format!("{}\n", result.text())
        })
        .collect();
    assert_text(&pair.scene, "unsupported_actions", &said);
    let tools =
        pair.gloveport(&["tools", "--url", &pair.url(), "--token", pair.token.as_deref().unwrap_or("")]);
    let listed = String::from_utf8_lossy(&tools.stdout);
    assert!(listed.contains("/nonexistent/program"), "`tools` says which and why: {listed}");
}

#[test]
fn the_helper_does_not_run_and_runs_again() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let mut helper = scene.helper(&[hello]);
    let daemon = helper.daemon();
    helper.kill();
    let result = daemon.call("hello", json!({}));
    assert!(result.is_error(), "{:#}", result.0);
    assert_text(&helper.scene, "helper_not_running", &result.text());
    // What the dead one left behind, its socket, is no obstacle.
    assert!(helper.socket().exists());
    helper.restart();
    assert_eq!(daemon.call("hello", json!({})).stdout(), "hello");
}

#[test]
fn the_helper_goes_away_during_a_run() {
    let scene = Scene::new();
    let sleep = scene.probing("sleep", &["sleep", "20000"]);
    let mut helper = scene.helper(&[sleep]);
    let daemon = helper.daemon();
    let call = daemon.begin("sleep", json!({}));
    let uid = helper.scene.run.number;
    processes::wait_until("it runs", Duration::from_secs(10), || !processes::of(uid).is_empty());
    helper.kill();
    let result = finish(call);
    assert!(result.is_error(), "{:#}", result.0);
    assert_text(&helper.scene, "helper_gone", &result.text());
    processes::wait_until_gone(uid, Duration::from_secs(2));
}

/// A small file system of its own, unmounted in the end.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path) -> Self {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k,mode=755", "none"]).arg(at).status();
        assert!(mounted.expect("mount").success());
        Self(at)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn the_disk_of_the_audit_log_is_full_and_has_room_again() {
    let scene = Scene::new();
    let state = scene.state();
    let hello = scene.probing("hello", &["print", "hello"]);
    let _disk = SmallDisk::mount(&state);
    let helper = scene.helper(&[hello]);
    assert_eq!(helper.run(helper.call("hello", &[])).stdout, "hello\n");

    let filler = state.join("filler");
    // To the last byte: whatever the system takes.
    let _ = fs::write(&filler, vec![b'x'; 1 << 20]);
    let refused = (0..100).find_map(|_| {
        let finished = helper.run(helper.call("hello", &[]));
        finished.refused().map(|(code, detail)| (code, detail.to_owned()))
    });
    let (code, detail) = refused.expect("a full disk refuses runs");
    assert_eq!(code, RefusalCode::Audit);
    assert_text(&helper.scene, "audit_disk_full", &detail);

    fs::remove_file(&filler).expect("removing");
    processes::wait_until("it runs again", Duration::from_secs(10), || {
        helper.run(helper.call("hello", &[])).stdout == "hello\n"
    });
}

#[test]
fn the_lowest_page_is_not_kept_free() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let without = scene.probing("without", &["print", "hello"]);
    let without = without.with(json!({"sandbox": {"may_lack": ["one_shot_exec"]}}));
    let zero = scene.file("zero", "0\n");
    let mut preparation = scene.prepare(&[hello, without]);
    // As the helper sees it, in a mount namespace of its own: the real one is everybody's.
    let mount = "mount --bind \"$0\" /proc/sys/vm/mmap_min_addr && exec \"$@\"";
    preparation.starter = ["unshare", "--mount", "sh", "-c", mount, &zero].map(str::to_owned).to_vec();
    let helper = preparation.start();
    let finished = helper.run(helper.call("hello", &[]));
    let (code, detail) = finished.refused().unwrap_or_else(|| panic!("{finished:?}"));
    assert_eq!(code, RefusalCode::Unsupported);
    assert_text(&helper.scene, "lowest_page", detail);
    // An action that says so goes without, and its result says so too.
    let daemon = helper.daemon();
    let result = daemon.call("without", json!({}));
    assert_eq!(result.structured()["enforcement"]["lacking"], json!(["one_shot_exec"]), "{:#}", result.0);
}

#[test]
fn doctor_finds_what_is_wrong_and_says_so_to_monitoring() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let preparation = scene.prepare(&[hello]);
    preparation.write();
    let file = preparation.catalog_file();
    let text = fs::read_to_string(&file).expect("the catalogue");
    fs::write(&file, text.replace("of a test", "of a tesT")).expect("writing");
    let output = Command::new(programs::built("gloveport"))
        .arg("--state")
        .arg(preparation.scene.state())
        .args(["doctor", "--json"])
        .output()
        .expect("gloveport");
    assert_eq!(output.status.code(), Some(2));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["status"], "fail");
    let checks = said["checks"].as_array().expect("checks");
    for name in ["helper", "daemon", "catalogue"] {
        let failed = checks.iter().any(|check| {
            check["name"] == name
                && check["status"] == "fail"
                && check["remedy"].as_str().is_some_and(|text| !text.is_empty())
        });
        assert!(failed, "{name}: {said:#}");
    }
}
