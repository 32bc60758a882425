#![forbid(unsafe_code)]
//! The audit writer's process, as its parent sees it. Without it nothing runs.

use crate::args::Options;
use crate::audit::{self, AuditError, Client, Handed, Journal, Place, writer};
use crate::host::Host;
use crate::log;
use crate::sys::{descriptors, process};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, Pid};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// A running writer.
#[derive(Debug)]
pub struct Writer {
    /// Its process.
    pub pid: Pid,
    control: OwnedFd,
    /// The files that it writes.
    log: Place,
    head: Place,
}

impl Writer {
    /// Opens the chain and forks the process that continues it. `clients`: supervisors at once.
    ///
    /// # Errors
    /// The chain cannot be continued, in a sentence.
    pub fn start(options: &Options, host: &Host, clients: u32) -> Result<Self, String> {
        let journal = Journal::open(&options.paths, options.same_user).map_err(|error| error.to_string())?;
        let [log, head] = journal.files().map(|file| audit::place(file).map_err(|error| error.to_string()));
        let kill_switch = host.cgroups.as_ref().map(|cgroups| cgroups.kill_switch());
        let kill_switch = kill_switch.transpose().map_err(|error| format!("cgroup.kill: {error}"))?;
        let (control, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|errno| format!("a socket for the audit writer: {}", errno.desc()))?;
        let settings = writer::Settings {
            full: options.audit_full,
            sync: options.audit_sync,
            rotate: options.audit_rotate,
            clients: usize::try_from(clients).unwrap_or(usize::MAX).saturating_add(1),
            same_user: options.same_user,
        };
        match process::fork().map_err(|error| format!("forking the audit writer: {error}"))? {
            ForkResult::Parent { child } => Ok(Self { pid: child, control, log: log?, head: head? }),
            ForkResult::Child => {
                let mut own = vec![0, 1, 2, theirs.as_raw_fd()];
                own.extend(journal.files().into_iter().chain(&kill_switch).map(|file| file.as_raw_fd()));
                let served =
                    descriptors::close_all_except(&own).map_err(|error| error.to_string()).and_then(|()| {
                        writer::run(theirs, journal, settings, kill_switch).map_err(|error| error.to_string())
                    });
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

    /// Makes sure that its files are where they are looked for, and gives it new ones where they were moved or
    /// removed: it would go on in a file that nobody finds.
    ///
    /// # Errors
    /// Something else has taken their place, in a sentence. Nothing may run then.
    pub fn keep_in_place(&mut self, options: &Options) -> Result<(), String> {
        let paths = &options.paths;
        if !audit::is_at(&paths.audit, self.log) {
            let log = audit::begin(&paths.audit, options.same_user).map_err(|error| error.to_string())?;
            self.log = self.hand(Handed::Log, log)?;
            log::error(format_args!("{} was moved or removed: it is begun anew", paths.audit.display()));
        }
        if !audit::is_at(&paths.audit_head, self.head) {
            let head =
                audit::begin_head(&paths.audit_head, options.same_user).map_err(|error| error.to_string())?;
            self.head = self.hand(Handed::Head, head)?;
            log::error(format_args!("{} was moved or removed: it is begun anew", paths.audit_head.display()));
        }
        Ok(())
    }

    /// Gives it the next file where it has asked for one.
    ///
    /// # Errors
    /// Why it goes on in the one that is full, in a sentence.
    pub fn rotate(&mut self, options: &Options) -> Result<(), String> {
        if !audit::is_asked_for_next(self.control.as_fd()) {
            return Ok(());
        }
        self.keep_in_place(options)?;
        let log = audit::turn(&options.paths.audit, options.same_user).map_err(|error| error.to_string())?;
        self.log = self.hand(Handed::Next, log)?;
        Ok(())
    }

    fn hand(&self, what: Handed, file: File) -> Result<Place, String> {
        let place = audit::place(&file).map_err(|error| error.to_string())?;
        audit::hand(&self.control, what, file.as_fd()).map_err(|error| error.to_string())?;
        Ok(place)
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}
