//! The whole pair, as `gloveport up` starts it.

use crate::action::{self, Action};
use crate::mcp::{Endpoint, ToolResult};
use crate::{Scene, processes, programs, scene};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A running daemon and helper. Stopped when it is dropped, and nothing may be left then.
#[derive(Debug)]
pub struct Pair {
    /// Where its daemon listens, and its token.
    pub endpoint: Endpoint,
    /// The path of the helper's socket.
    pub helper_socket: PathBuf,
    /// Its state directory.
    pub state: PathBuf,
    up: Up,
    /// The place of the test. The last field: what runs in it is gone before it is.
    pub scene: Scene,
}

impl Deref for Pair {
    type Target = Endpoint;
    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Scene {
    /// Starts the pair with these actions.
    pub fn pair(self, actions: &[Action]) -> Pair {
        let sources = self.root.join("catalog");
        scene::make_directory(&sources);
        fs::write(sources.join("tests.yaml"), action::source(actions)).expect("writing a catalogue");
        self.pair_of(&[&sources])
    }

    /// Starts the pair with catalogues that lie somewhere.
    ///
    /// # Panics
    /// With what `gloveport up` said, where it does not come up.
    pub fn pair_of(self, catalogs: &[&Path]) -> Pair {
        let (up, ready) = Up::start(&self, catalogs);
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        Pair {
            endpoint: Endpoint::of(&text("endpoint"), Some(&text("token"))),
            helper_socket: text("socket").into(),
            state: text("state").into(),
            up,
            scene: self,
        }
    }
}

impl Pair {
    /// A pair with [`Scene::any_probe`] alone.
    pub fn with_probe() -> Self {
        let scene = Scene::new();
        let probe = scene.any_probe();
        scene.pair(&[probe])
    }

    /// Runs the probe through the action `probe`.
    pub fn probe(&self, words: &[&str]) -> ToolResult {
        self.call("probe", json!({"params": {"words": words}}))
    }

    /// The process of one of the two programs, by its name.
    ///
    /// # Panics
    /// Where it does not run.
    pub fn process(&self, program: &str) -> processes::Process {
        let family = processes::descendants(self.up.child.id());
        let ours = family.into_iter().find(|process| {
            let executable = process.command.split(' ').next().unwrap_or_default();
            executable.rsplit('/').next() == Some(program)
        });
        ours.unwrap_or_else(|| panic!("{program} does not run"))
    }

    /// Runs the command `gloveport` for this pair's state.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn gloveport(&self, words: &[&str]) -> Output {
        self.gloveport_with(&[], words)
    }

    /// The same with more in its environment.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn gloveport_with(&self, environment: &[(&str, &str)], words: &[&str]) -> Output {
        let mut command = Command::new(programs::built("gloveport"));
        command.envs(environment.iter().copied());
        command.arg("--state").arg(&self.state).args(words).stdin(Stdio::null());
        command.output().expect("starting gloveport")
    }

    /// Runs it as another user, who cannot reach the build: a copy in the scene.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn gloveport_as(&self, uid: u32, words: &[&str]) -> Output {
        let program = self.scene.install("gloveport");
        let mut command = Command::new(program);
        command.env_remove("GLOVEPORT_URL").env_remove("GLOVEPORT_TOKEN").uid(uid).gid(uid);
        command.arg("--state").arg(&self.state).args(words).stdin(Stdio::null());
        // A child that another thread is just starting holds the copy open for writing until it executes.
        loop {
            match command.output() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    sleep(Duration::from_millis(20))
                }
                output => return output.expect("starting gloveport as another user"),
            }
        }
    }

    /// Adds a token; what `gloveport token add --json` says of it.
    ///
    /// # Panics
    /// With what it complained.
    pub fn add_token(&self, name: &str, words: &[&str]) -> Value {
        let output = self.gloveport(&[&["token", "add", "--json", "--name", name], words].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// What `gloveport up` and its two programs have logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.up.log).unwrap_or_default()
    }
}

/// `gloveport up`.
#[derive(Debug)]
struct Up {
    child: Child,
    log: PathBuf,
}

impl Up {
    /// Starts it, and reads its one line.
    fn start(scene: &Scene, catalogs: &[&Path]) -> (Self, Value) {
        let log = scene.root.join("up.log");
        let mut command = Command::new(programs::built("gloveport"));
        command
            .args(["up", "--json", "--listen", "127.0.0.1:0", "--daemon-user"])
            .arg(scene.daemon.number.to_string())
            .arg("--state")
            .arg(scene.state())
            .envs(scene.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("creating a log"));
        for catalog in catalogs {
            command.arg("--catalog").arg(catalog);
        }
        let mut child = command.spawn().expect("starting gloveport");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("reading what `up` prints");
        let up = Self { child, log };
        match serde_json::from_str(&line) {
            Ok(ready) => (up, ready),
            Err(_) => panic!("`gloveport up` did not come up: {line}{}", up.said()),
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let family = processes::descendants(self.child.id());
        let status = processes::stop(&mut self.child);
        // What it started must not outlive the test in any case.
        let left = processes::kill_left(&family);
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.said());
            return;
        }
        assert!(status.is_some_and(|status| status.success()), "`up` ended with {status:?}: {}", self.said());
        assert!(left.is_empty(), "`up` left these running: {left:#?}");
    }
}
