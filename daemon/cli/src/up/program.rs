#![forbid(unsafe_code)]
//! One of the two halves, as a child process: its log passed on, its end noticed, its stop orderly.

use super::Identity;
use crate::failure::Failure;
use crate::{handover, out};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Lines of its log that are repeated when it dies.
const LAST_WORDS: usize = 5;
/// How long it may take to end its runs before it is killed; the daemon takes up to five seconds.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long the rest of a dead child's log is waited for; a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(500);

/// A running half.
pub struct Program {
    name: &'static str,
    child: Child,
    last: Arc<Mutex<VecDeque<String>>>,
    /// Until it has been waited for.
    log: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts a program from `bin` with that socket, as the daemon's user where `account` names it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        name: &'static str,
        bin: &Path,
        arguments: &[OsString],
        socket: OwnedFd,
        account: Option<&Identity>,
    ) -> Result<Self, Failure> {
        let mut command = std::process::Command::new(bin.join("gloveport"));
        command
            .arg(handover::WORD)
            .arg(std::process::id().to_string())
            .arg(bin.join(name))
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
            .env("LANG", "C.UTF-8")
            .current_dir("/")
            .stdin(socket)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C reaches this process alone, which ends the two halves in their order.
            .process_group(0);
        if let Some(identity) = account.filter(|identity| !identity.same_user) {
            // With a uid and root's rights the standard library also drops all supplementary groups.
            command.gid(identity.account.gid).uid(identity.account.uid);
        }
        let mut child = Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::new(format!("cannot start {}: {error}", bin.join(name).display())))?;
        let last = Arc::default();
        let log = tokio::spawn(pass_on(name, child.stderr.take(), Arc::clone(&last)));
        Ok(Self { name, child, last, log: Some(log) })
    }

    /// Its standard output, once.
    pub fn stdout(&mut self) -> Option<Lines<BufReader<ChildStdout>>> {
        self.child.stdout.take().map(|stdout| BufReader::new(stdout).lines())
    }

    /// Waits for its end, which is never meant to come, and says what it last said.
    pub async fn died(&mut self) -> Failure {
        let status = self.child.wait().await;
        self.drain().await;
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = last.iter().map(String::as_str).collect();
        let how = status.map_or_else(|error| error.to_string(), describe);
        let said = if last.is_empty() { String::new() } else { format!(":\n  {}", last.join("\n  ")) };
        Failure::new(format!("{} has ended ({how}){said}", self.name))
    }

    /// Waits for the rest of its log.
    async fn drain(&mut self) {
        if let Some(log) = self.log.take() {
            // What does not come in time is printed when it comes, if it still matters to anybody.
            let _ = tokio::time::timeout(DRAIN, log).await;
        }
    }

    /// Ends it: politely, then not.
    pub async fn stop(mut self) {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // It is not reaped yet, so the number is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            out::note(format!("gloveport: {} does not end and is killed", self.name));
            let _ = self.child.kill().await;
        }
        self.drain().await;
    }
}

/// Copies a log to ours, line by line, and keeps its end.
async fn pass_on(
    name: &'static str,
    stream: Option<impl AsyncRead + Unpin>,
    last: Arc<Mutex<VecDeque<String>>>,
) {
    let Some(stream) = stream else { return };
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = out::printable(&line);
        out::note(format!("{name}: {line}"));
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == LAST_WORDS {
            last.pop_front();
        }
        last.push_back(line);
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
