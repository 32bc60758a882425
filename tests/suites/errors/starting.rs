//! `gloveport up` and the daemon do not start.

use super::{Diagnosis, assert_text, catalog, complaint};
use gloveport_tests::{Scene, processes, programs};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// `gloveport up` for a scene, with further words.
fn up(scene: &Scene, daemon: u32, words: &[&str]) -> Command {
    let mut command = Command::new(scene.install("gloveport"));
    for program in ["gloveportd", "gloveport-helper", "gloveport-handler"] {
        scene.install(program);
    }
    command.arg("--state").arg(scene.state()).args(["up", "--daemon-user"]);
    command.arg(daemon.to_string()).args(words).stdin(Stdio::null());
    command
}

#[test]
fn without_root() {
    let scene = Scene::new();
    let user = scene.run.number;
    let output = up(&scene, scene.daemon.number, &[]).uid(user).gid(user).output().expect("up");
    let found = Diagnosis::as_user(&scene, user).finding("root", "warn", "");
    assert_text(&scene, "without_root", &(complaint(&output) + &found));
}

#[test]
fn the_port_is_taken() {
    let scene = Scene::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let output = up(&scene, scene.daemon.number, &["--listen", &address]).output().expect("up");
    // Another server, which answers as such a one does.
    std::thread::spawn(move || {
        for stream in taken.incoming() {
            let mut stream = stream.expect("a client");
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        }
    });
    scene.file("state/daemon.toml", format!("listen = [\"{address}\"]\n"));
    let found = Diagnosis::of(&scene).finding("listen", "fail", "");
    assert_text(&scene, "port_taken", &(complaint(&output) + &found));
}

#[test]
fn an_account_does_not_exist() {
    let scene = Scene::new();
    let mut command = Command::new(programs::built("gloveport"));
    command.arg("--state").arg(scene.state()).args(["up", "--daemon-user", "gloveport-nobody"]);
    let said = complaint(&command.output().expect("up"));
    // As on a host that nobody has prepared.
    let passwd = scene.file("passwd", "root:x:0:0:root:/root:/bin/sh\n");
    let bare = Diagnosis::behind(&scene, &format!("mount --bind {passwd} /etc/passwd"));
    assert_text(&scene, "missing_account", &(said + &bare.finding("users", "fail", "")));
}

#[test]
fn the_daemon_would_be_who_its_programs_are() {
    let scene = Scene::new();
    let run = scene.run.number;
    let text = format!(
        "name: hello\ndescription: Says hello.\nrisk: read\nexec: [/usr/bin/echo, hello]\nrun_as: \"{run}:{run}\"\n"
    );
    let sources = catalog(&scene, &text);
    let output = up(&scene, run, &["--catalog", &sources]).output().expect("up");
    assert_text(&scene, "daemon_runs_programs", &complaint(&output));
    // With an account of its own it starts.
    let arguments = ["--catalog", &sources, "--listen", "127.0.0.1:0", "--json"];
    let mut started = up(&scene, scene.daemon.number, &arguments).stdout(Stdio::piped()).spawn().expect("up");
    let mut ready = [0; 1];
    started.stdout.take().expect("a pipe").read_exact(&mut ready).expect("the line of a pair that is ready");
    assert!(processes::stop(&mut started).is_some_and(|status| status.success()));
    processes::wait_until_gone(scene.daemon.number, Duration::from_secs(5));
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
    let found = Diagnosis::of(&helper.scene).finding("tokens", "fail", "");
    assert_text(&helper.scene, "no_token", &(complaint(&output) + &found));
}

#[test]
fn a_state_directory_is_a_link() {
    let scene = Scene::new();
    let link = scene.root.join("link");
    std::os::unix::fs::symlink(scene.state(), &link).expect("a link");
    let mut command = Command::new(programs::built("gloveport"));
    command.arg("--state").arg(&link).args(["up", "--daemon-user"]).arg(scene.daemon.number.to_string());
    assert_text(&scene, "state_is_a_link", &complaint(&command.output().expect("up")));
    fs::remove_file(link).expect("removing a link");
}

#[test]
fn a_log_that_no_journal_reads_has_no_priorities() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[hello.with(json!({"allow_interpreter": true}))]);
    let daemon = helper.daemon();
    assert_eq!(daemon.call("hello", json!({})).stdout(), "hello");
    for log in [helper.log(), daemon.log()] {
        assert!(!log.is_empty() && log.lines().all(|line| !line.starts_with('<')), "{log}");
    }
}
