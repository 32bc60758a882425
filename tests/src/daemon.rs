//! The daemon alone, before a helper that a test has prepared.

use crate::helper::{Helper, TOKEN};
use crate::mcp::Endpoint;
use crate::processes;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running daemon. Stopped when it is dropped.
#[derive(Debug)]
pub struct Daemon {
    /// Where it listens, and the helper's token.
    pub endpoint: Endpoint,
    child: Child,
    killed: bool,
    log: PathBuf,
}

impl Deref for Daemon {
    type Target = Endpoint;
    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Helper {
    /// Starts the daemon for this helper, as the daemon's user.
    ///
    /// # Panics
    /// With what it said, where it does not listen.
    pub fn daemon(&self) -> Daemon {
        let log = self.scene.root.join("daemon.log");
        let program = self.scene.install("gloveportd");
        let uid = self.scene.daemon.number;
        let mut child = Command::new(program)
            .arg("--state")
            .arg(self.scene.state())
            .args(["--listen", "127.0.0.1:0"])
            .uid(uid)
            .gid(uid)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("creating a log"))
            .spawn()
            .expect("starting gloveportd");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("reading what the daemon prints");
        let Some(address) = line.trim().strip_prefix("listening ") else {
            let _ = child.kill();
            panic!("gloveportd does not listen: {line}{}", fs::read_to_string(&log).unwrap_or_default());
        };
        let endpoint = Endpoint::of(&format!("http://{address}/mcp"), Some(TOKEN));
        Daemon { endpoint, child, killed: false, log }
    }
}

impl Daemon {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as no signal that it could handle does.
    pub fn kill(&mut self) {
        self.child.kill().expect("killing the daemon");
        self.child.wait().expect("waiting for the daemon");
        self.killed = true;
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let status = processes::stop(&mut self.child);
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
            return;
        }
        let ended_well = status.is_some_and(|status| status.success());
        assert!(self.killed || ended_well, "gloveportd ended with {status:?}");
    }
}
