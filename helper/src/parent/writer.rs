#![forbid(unsafe_code)]
//! The audit writer's process, as its parent sees it. Without it nothing runs.

use crate::args::Options;
use crate::audit::{AuditError, Client, Journal, writer};
use crate::log;
use crate::sys::{descriptors, process};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, Pid};
use std::os::fd::{AsRawFd as _, OwnedFd};

/// A running writer.
#[derive(Debug)]
pub struct Writer {
    /// Its process.
    pub pid: Pid,
    control: OwnedFd,
}

impl Writer {
    /// Opens the chain and forks the process that continues it. `clients`: supervisors at once.
    ///
    /// # Errors
    /// The chain cannot be continued, in a sentence.
    pub fn start(options: &Options, clients: u32) -> Result<Self, String> {
        let journal = Journal::open(&options.paths, options.same_user).map_err(|error| error.to_string())?;
        let (control, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|errno| format!("a socket for the audit writer: {}", errno.desc()))?;
        let settings = writer::Settings {
            full: options.audit_full,
            sync: options.audit_sync,
            clients: usize::try_from(clients).unwrap_or(usize::MAX).saturating_add(1),
            same_user: options.same_user,
        };
        match process::fork().map_err(|error| format!("forking the audit writer: {error}"))? {
            ForkResult::Parent { child } => Ok(Self { pid: child, control }),
            ForkResult::Child => {
                let [first, second] = journal.descriptors();
                let served = descriptors::close_all_except(&[0, 1, 2, theirs.as_raw_fd(), first, second])
                    .map_err(|error| error.to_string())
                    .and_then(|()| writer::run(theirs, journal, settings).map_err(|error| error.to_string()));
                if let Err(error) = &served {
                    log::error(format_args!("the audit writer: {error}"));
                }
                process::exit(i32::from(served.is_err()))
            }
        }
    }

    /// A way to it, for one process.
    ///
    /// # Errors
    /// It has gone, or is busy.
    pub fn client(&self) -> Result<Client, AuditError> {
        Client::pair(&self.control)
    }
}
