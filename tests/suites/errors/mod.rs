//! What a person meets when something is wrong: what happened, why, and the way out. Each is provoked for real,
//! its text is kept in `tests/golden/errors`, and with it what `gloveport doctor` makes of the same host.

mod catalogue;
mod helper;
mod kernel;
mod starting;

use gloveport_tests::golden::assert_golden;
use gloveport_tests::{Scene, programs};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

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

/// `gloveport` for a scene's state, as it is built.
fn gloveport(scene: &Scene) -> Command {
    let mut command = Command::new(programs::built("gloveport"));
    command.arg("--state").arg(scene.state()).stdin(Stdio::null());
    command
}

/// What `gloveport doctor` found.
struct Diagnosis(Vec<Value>);

impl Diagnosis {
    /// Examines a scene's state, as monitoring would.
    fn of(scene: &Scene) -> Self {
        Self::by(gloveport(scene).args(["doctor", "--json"]))
    }

    /// The same where something about the host is hidden: `mount` is a line of shell for a mount namespace of the
    /// examination's own.
    fn behind(scene: &Scene, mount: &str) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", &format!("{mount}; exec \"$@\""), "sh"]);
        command.arg(programs::built("gloveport")).arg("--state").arg(scene.state());
        Self::by(command.args(["doctor", "--json"]).stdin(Stdio::null()))
    }

    /// The same as another user.
    fn as_user(scene: &Scene, uid: u32) -> Self {
        let mut command = Command::new(scene.install("gloveport"));
        command.arg("--state").arg(scene.state()).args(["doctor", "--json"]).stdin(Stdio::null());
        Self::by(command.uid(uid).gid(uid))
    }

    fn by(command: &mut Command) -> Self {
        let output = command.output().expect("gloveport doctor");
        let said = String::from_utf8_lossy(&output.stdout);
        let report: Value = serde_json::from_str(&said)
            .unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));
        let code = match report["status"].as_str() {
            Some("ok") => 0,
            Some("warn") => 1,
            _ => 2,
        };
        assert_eq!(output.status.code(), Some(code), "the exit code is the worst finding: {report:#}");
        Self(report["checks"].as_array().expect("checks").clone())
    }

    /// The finding of that name that is not well, as it is shown to people; a word tells it from others.
    fn finding(&self, name: &str, status: &str, word: &str) -> String {
        let found = self.0.iter().find(|check| {
            check["name"] == name
                && check["status"] == status
                && check["detail"].as_str().is_some_and(|detail| detail.contains(word))
        });
        let found =
            found.unwrap_or_else(|| panic!("doctor does not find {status} {name} {word}: {:#?}", self.0));
        let text = |key: &str| found[key].as_str().unwrap_or_default();
        assert!(!text("remedy").is_empty(), "no way out: {found:#}");
        format!("\n\ngloveport doctor, {status}: {name}: {}\n  → {}\n", text("detail"), text("remedy"))
    }

    /// Whether all findings of that name are well, and there is one.
    fn is_well(&self, name: &str) -> bool {
        let mut found = self.0.iter().filter(|check| check["name"] == name).peekable();
        found.peek().is_some() && found.all(|check| check["status"] == "ok")
    }
}

/// A catalogue directory with one file of this text.
fn catalog(scene: &Scene, text: &str) -> String {
    let directory = scene.root.join("catalog");
    fs::create_dir_all(&directory).expect("making a directory");
    fs::write(directory.join("mine.yaml"), text).expect("writing");
    directory.display().to_string()
}
