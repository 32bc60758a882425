#![forbid(unsafe_code)]
//! Loading the catalogue, at the start and on SIGHUP.
//!
//! On SIGHUP a child tries first, under a deadline: a catalogue that is large, slow or broken costs nothing
//! that is in force. Only when it has succeeded does the parent load as well.

use crate::args::Options;
use crate::host::Host;
use crate::in_force::InForce;
use crate::load;
use crate::sys::{descriptors, process};
use crate::users::Users;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, pipe2};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How long a trial may take: 20,000 actions take a second on a small machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest reason that is read, bytes: it fits a pipe, so that writing it never blocks.
const REASON: u64 = 4096;

/// Loads and settles what the files hold now.
///
/// # Errors
/// Why it cannot be in force, in a sentence.
pub fn load(options: &Options, host: &Host) -> Result<InForce, String> {
    let loaded = load::load(&options.paths, options.same_user).map_err(|error| error.to_string())?;
    let users = Users::read().map_err(|error| error.to_string())?;
    InForce::settle(loaded, users, host, (options.daemon_uid, options.daemon_gid), options.same_user)
}

/// A trial in progress.
#[derive(Debug)]
pub struct Trial {
    /// Its process.
    pub pid: Pid,
    process: OwnedFd,
    reason: OwnedFd,
    /// When it will be given up.
    pub deadline: Instant,
}

impl Trial {
    /// Forks a child that loads.
    ///
    /// # Errors
    /// Those of fork(2) and pipe(2).
    pub fn start(options: &Options, host: &Host) -> io::Result<Self> {
        let (reason, theirs) = pipe2(OFlag::O_CLOEXEC)?;
        match process::fork()? {
            ForkResult::Parent { child } => Ok(Self {
                pid: child,
                process: process::open(child)?,
                reason,
                deadline: Instant::now() + PATIENCE,
            }),
            ForkResult::Child => {
                let result = descriptors::close_all_except(&[0, 1, 2, theirs.as_raw_fd()])
                    .map_err(|error| error.to_string())
                    .and_then(|()| load(options, host).map(drop));
                if let Err(reason) = &result {
                    let reason: String = reason.chars().take(1000).collect();
                    // A reader that has gone does not want to know.
                    let _ = File::from(theirs).write_all(reason.as_bytes());
                }
                process::exit(i32::from(result.is_err()))
            }
        }
    }

    /// Gives it up.
    pub fn kill(&self) {
        // It may just have ended.
        let _ = process::signal(self.process.as_fd(), Signal::SIGKILL);
    }

    /// Why a trial that has ended did not succeed.
    pub fn reason(self) -> String {
        let mut reason = String::new();
        let read = File::from(self.reason).take(REASON).read_to_string(&mut reason);
        match read {
            Ok(length) if length > 0 => reason,
            _ => format!("loading it did not end within {} s, or was killed", PATIENCE.as_secs()),
        }
    }
}
