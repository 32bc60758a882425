//! What a new user does: a copy of the repository, `make run`, and the line that it prints.

use gloveport_tests::{Scene, processes, programs};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Copies what git would clone, and whatever is about to be committed.
fn copy_of_the_repository(to: &Path) {
    let repository = programs::repository();
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(&repository)
        .output()
        .expect("git");
    for file in String::from_utf8_lossy(&list.stdout).split('\0').filter(|file| !file.is_empty()) {
        let (from, place) = (repository.join(file), to.join(file));
        // A file that git knows may have just been removed.
        if !from.exists() {
            continue;
        }
        fs::create_dir_all(place.parent().expect("a directory")).expect("making a directory");
        // With its time: cargo compiles again what is newer than what it built.
        run(Command::new("cp").arg("--preserve=mode,timestamps").arg(&from).arg(&place));
    }
}

/// Gives it what is built already, as links: the test is about the way, not about the compiler.
fn what_is_built(to: &Path) {
    fs::create_dir_all(to).expect("making a target directory");
    let built = programs::directory();
    let links = Command::new("cp").arg("-al").arg(&built).arg(to).stderr(Stdio::null()).status();
    if !links.expect("cp").success() {
        run(Command::new("cp").arg("-a").arg(&built).arg(to));
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("starting a command");
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
fn make_run_in_a_copy_of_the_repository_prints_a_line_that_works() {
    let scene = Scene::new();
    let copy = scene.root.join("gloveport");
    fs::create_dir(&copy).expect("making a directory");
    copy_of_the_repository(&copy);
    what_is_built(&copy.join("target"));

    let arguments = format!("ARGS=--listen 127.0.0.1:0 --state {}", scene.state().display());
    let mut make = Command::new("make")
        .args(["run", &arguments])
        .current_dir(&copy)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("MAKEFLAGS")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("make");
    let lines = BufReader::new(make.stdout.take().expect("a pipe")).lines();
    let mut printed = Vec::new();
    for line in lines {
        let line = line.expect("a line of make");
        let done = line.starts_with("Other clients:");
        printed.push(line);
        if done {
            break;
        }
    }
    let printed = printed.join("\n");
    let pasted = printed.lines().map(str::trim).find(|line| line.starts_with("GLOVEPORT_URL="));
    let pasted = pasted.unwrap_or_else(|| panic!("no line to paste in:\n{printed}"));

    let output = Command::new("sh").args(["-c", pasted]).current_dir("/").output().expect("sh");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{pasted}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("Filesystem"), "{text}");
    for user in ["gloveport", "gloveport-run"] {
        run(Command::new("getent").args(["passwd", user]).stdout(Stdio::null()));
    }

    // Ctrl-C reaches everything that the terminal started.
    let family = processes::descendants(make.id());
    let group = rustix::process::Pid::from_child(&make);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).expect("Ctrl-C");
    processes::wait_until("make has ended", Duration::from_secs(20), || {
        make.try_wait().expect("waiting for make").is_some()
    });
    let gone =
        || family.iter().all(|one| processes::read(one.pid).is_none_or(|now| now.command != one.command));
    processes::wait_until("everything has ended", Duration::from_secs(10), gone);
}
