//! The helper alone, with the test in the daemon's place.

use crate::action::Action;
use crate::signing::{self, Key};
use crate::{Scene, fake_daemon, processes};
use gloveport_contract::catalog::{Catalog, Risk};
use gloveport_contract::token::{self, Scope, Token, Tokens, Via};
use serde_json::json;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The token of [`Helper::start`]: every action, up to `dangerous`.
pub const TOKEN: &str = "gp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Supervisors that wait for a connection while nothing runs.
pub const AHEAD: usize = 1;

/// A running helper. Stopped when it is dropped.
#[derive(Debug)]
pub struct Helper {
    /// The catalogue that was signed for it.
    pub catalog: Catalog,
    /// SHA-256 of that catalogue.
    pub digest: [u8; 32],
    command: Command,
    child: Child,
    killed: bool,
    log: PathBuf,
    /// The place of the test. The last field: what runs in it is gone before it is.
    pub scene: Scene,
}

/// What the helper finds when it starts. A test may change it before.
#[derive(Debug)]
pub struct Preparation {
    /// The catalogue.
    pub catalog: Catalog,
    /// The key that signs it, and that the helper trusts.
    pub key: Key,
    /// The tokens.
    pub tokens: Tokens,
    /// Further words for the helper.
    pub words: Vec<String>,
    /// What starts it, where it is not started directly: a program and its words, to which the helper's own
    /// are added. It must become the helper by exec.
    pub starter: Vec<String>,
    /// The place of the test.
    pub scene: Scene,
}

/// A token that may call these actions up to that risk.
pub fn token(name: &str, secret: &str, allow: &[&str], max_risk: Risk) -> Token {
    Token {
        name: name.into(),
        id: name.into(),
        sha256: token::digest(secret),
        via: vec![Via::Header],
        scope: Scope {
            allow: allow.iter().map(|glob| (*glob).to_owned()).collect(),
            max_risk,
            expires: None,
            hours: None,
            per_minute: None,
            at_once: None,
        },
    }
}

impl Scene {
    /// Prepares a helper with these actions.
    pub fn prepare(self, actions: &[Action]) -> Preparation {
        let mut actions: Vec<_> = actions.iter().map(Action::json).collect();
        actions.sort_by_key(|action| action["name"].as_str().map(str::to_owned));
        let catalog = json!({"format": 1, "actions": actions});
        let catalog: Catalog = serde_json::from_value(catalog).expect("a catalogue");
        catalog.check().expect("a catalogue that means something");
        let key = Key::make(&self.root, "signing-key");
        let tokens =
            Tokens { tokens: vec![token("all", TOKEN, &["*"], Risk::Dangerous)], local_users: Vec::new() };
        Preparation { catalog, key, tokens, words: Vec::new(), starter: Vec::new(), scene: self }
    }

    /// Starts a helper with these actions.
    pub fn helper(self, actions: &[Action]) -> Helper {
        self.prepare(actions).start()
    }
}

impl Preparation {
    /// The catalogue as it is signed.
    pub fn catalog_file(&self) -> PathBuf {
        self.scene.state().join("catalog.json")
    }

    /// Writes everything that the helper reads.
    pub fn write(&self) {
        let state = self.scene.state();
        let signer = self.key.signer("operator");
        self.write_catalog();
        fs::write(state.join("trusted_signers"), signer).expect("writing trusted_signers");
        let tokens = state.join("tokens.json");
        fs::write(&tokens, serde_json::to_vec_pretty(&self.tokens).expect("JSON"))
            .expect("writing tokens.json");
        fs::set_permissions(&tokens, Permissions::from_mode(0o640)).expect("chmod");
        chown(&tokens, Some(0), Some(self.scene.daemon.number)).expect("chown");
        for private in ["pending", "credentials"] {
            let directory = state.join(private);
            fs::create_dir_all(&directory).expect("making a directory");
            fs::set_permissions(&directory, Permissions::from_mode(0o700)).expect("chmod");
        }
    }

    /// Writes and signs the catalogue alone.
    pub fn write_catalog(&self) {
        let file = self.catalog_file();
        let text = serde_json::to_string_pretty(&self.catalog).expect("JSON") + "\n";
        fs::write(&file, text).expect("writing a catalogue");
        self.key.sign(signing::NAMESPACE, &file);
    }

    /// Writes everything and starts the helper.
    pub fn start(self) -> Helper {
        self.write();
        self.start_as_it_is()
    }

    /// Starts the helper with the files as they are.
    pub fn start_as_it_is(self) -> Helper {
        let program = self.scene.install("gloveport-helper");
        self.scene.install("gloveport-handler");
        let log = self.scene.root.join("helper.log");
        let program = program.display().to_string();
        let mut line = self.starter.iter().chain([&program]);
        let mut command = Command::new(line.next().expect("at least the helper"));
        command
            .args(line)
            .arg("--state")
            .arg(self.scene.state())
            .arg("--daemon-user")
            .arg(self.scene.daemon.number.to_string())
            .args(&self.words)
            .envs(self.scene.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("creating a log"));
        let child = command.spawn().expect("starting gloveport-helper");
        let bytes = fs::read(self.catalog_file()).unwrap_or_default();
        let digest = hmac_sha256::Hash::hash(&bytes);
        let catalog = self.catalog;
        let mut helper = Helper { catalog, digest, command, child, killed: false, log, scene: self.scene };
        helper.wait_until_it_listens();
        helper
    }
}

impl Helper {
    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.scene.state().join("helper.sock")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes that decide about calls: itself, and the supervisors that wait for one. Not the audit
    /// writer, which has no capability.
    pub fn deciding(&self) -> Vec<u32> {
        let has_some = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("CapEff:") && !line.ends_with("0000000000000000"))
        };
        let forked = processes::descendants(self.pid()).into_iter().filter(|one| one.state != 'Z');
        forked.map(|one| one.pid).filter(has_some).chain([self.pid()]).collect()
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The audit chain, one record a line.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.scene.state().join("audit.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("signalling the helper");
    }

    /// Kills it, as no signal that it could handle does.
    pub fn kill(&mut self) {
        self.child.kill().expect("killing the helper");
        self.child.wait().expect("waiting for the helper");
        self.killed = true;
    }

    /// Starts it again, after [`Helper::kill`], in what the first one left.
    pub fn restart(&mut self) {
        self.child = self.command.spawn().expect("starting gloveport-helper");
        self.killed = false;
        self.wait_until_it_listens();
    }

    fn wait_until_it_listens(&mut self) {
        let socket = self.socket();
        processes::wait_until("the helper listens", Duration::from_secs(20), || {
            if let Some(status) = self.child.try_wait().expect("waiting for the helper") {
                panic!("the helper ended with {status}: {}", self.log());
            }
            socket.exists() && fake_daemon::connects(Path::new(&socket), self.scene.daemon.number)
        });
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let status = processes::stop(&mut self.child);
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
            return;
        }
        let ended_well = status.is_some_and(|status| status.success());
        assert!(self.killed || ended_well, "the helper ended with {status:?}");
    }
}
