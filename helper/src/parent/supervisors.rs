#![forbid(unsafe_code)]
//! How the parent gives each connection a supervisor: one that waits for it, or else a new one.

use super::Parent;
use super::ahead::{self, AHEAD, Ahead};
use super::socket::{self, Peer};
use crate::args::Options;
use crate::shared::WAITING;
use crate::supervisor::Supervisor;
use crate::sys::{descriptors, process};
use crate::{log, wire};
use gloveport_contract::packet::Event;
use nix::unistd::{ForkResult, Pid};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

/// Supervisors beyond the slots, for `Status` and `Note`: a busy helper still answers.
const BESIDE: u32 = 16;
/// Where a new supervisor has its connection from.
enum Source {
    /// It has come already; whether its peer may ask for the status only.
    Accepted(OwnedFd, bool),
    /// It will come by this way.
    Awaited(OwnedFd),
}

impl Parent<'_> {
    /// Gives a connection to a supervisor.
    pub(super) fn connected(&mut self, connection: OwnedFd) {
        let status_only = match socket::peer(&connection, self.options.daemon_uid) {
            Peer::Daemon => false,
            Peer::Root => true,
            Peer::Stranger => return,
        };
        let at_work = self.supervisors.len() - self.ahead.len();
        if self.writer.is_none() || u32::try_from(at_work).is_ok_and(|n| n >= most(self.options)) {
            // Busy, or no writer and so no runs. A peer that does not read it gets no answer.
            let _ = wire::send(&connection, &Event::Busy, &[]);
            return;
        }
        // Nothing runs whose record nobody would find.
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.keep_in_place(self.options)) {
            return log::error(error);
        }
        while let Some(ahead) = self.ahead.pop() {
            if ahead.hand_over(&connection, status_only) {
                return;
            }
        }
        let answer = connection.try_clone();
        if let Err(error) = self.supervise(Source::Accepted(connection, status_only)) {
            log::error(format_args!("a supervisor could not be forked: {error}"));
            if let Ok(answer) = answer {
                let _ = wire::send(&answer, &Event::Busy, &[]);
            }
        }
    }

    /// Forks supervisors that wait, as many as are missing.
    pub(super) fn prepare_ahead(&mut self) {
        while self.ahead.len() < AHEAD && self.writer.is_some() {
            let forked = Ahead::way().map_err(io::Error::from).and_then(|(ours, theirs)| {
                let pid = self.supervise(Source::Awaited(theirs))?;
                Ok(Ahead::new(pid, ours))
            });
            match forked {
                Ok(ahead) => self.ahead.push(ahead),
                // They only save time: each connection is served without.
                Err(_) => return,
            }
        }
    }

    fn supervise(&mut self, source: Source) -> io::Result<Pid> {
        let writer = self.writer.as_ref().ok_or_else(|| io::Error::other("there is no audit writer"))?;
        let audit = writer.client().map_err(io::Error::other)?;
        if let ForkResult::Parent { child } = process::fork()? {
            self.supervisors.insert(child);
            return Ok(child);
        }
        let Ok(life) = self.life_of_supervisors.try_clone() else { process::exit(1) };
        let (connection, status_only) = match source {
            Source::Accepted(connection, status_only) => (connection, status_only),
            Source::Awaited(way) => {
                let own = [way.as_fd(), life.as_fd(), audit.as_fd(), self.shared.as_fd()];
                let keep: Vec<_> = (0..3).chain(own.iter().map(|fd| fd.as_raw_fd())).collect();
                if descriptors::close_all_except(&keep).is_err() {
                    process::exit(1);
                }
                match ahead::wait(&way) {
                    Some(given) => given,
                    None => process::exit(0),
                }
            }
        };
        Supervisor {
            options: self.options,
            host: self.host,
            in_force: self.in_force.as_ref(),
            generation: self.generation,
            reason: self.reason.as_deref(),
            shared: &self.shared,
            status_only,
            connection,
            life,
            audit,
        }
        .serve()
    }
}

/// Supervisors at work at once.
fn most(options: &Options) -> u32 {
    options.max_runs + WAITING + BESIDE
}

/// Clients that the audit writer may have: they, those that wait, and a moment in which both are there.
pub(super) fn clients(options: &Options) -> u32 {
    most(options) + 2 * u32::try_from(AHEAD).unwrap_or(0)
}
