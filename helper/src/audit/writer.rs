#![forbid(unsafe_code)]
//! The process that appends to the audit chain, the only one that can.
//!
//! It serves all clients in rounds: every record that has come is appended, then the log is put on disk once
//! if one of them must be, then each client gets its receipt. What need not be durable is on disk at most
//! [`BEHIND`] later. It ends when the helper and all supervisors have: their last records come after any
//! signal.

use super::chain::Position;
use super::control::{self, Handed};
use super::filter::{self, ConfineError};
use super::journal::Journal;
use super::record::{Kind, RECORD};
use super::reply::{self, Reply};
use crate::args::{AuditFull, AuditSync};
use crate::log;
use crate::passing::retry;
use gloveport_contract::packet::Receipt;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::sys::time::TimeSpec;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How long a record that need not be durable may be away from the disk.
const BEHIND: Duration = Duration::from_millis(50);
/// How often a full disk is tried again to record what it lost.
const RETRY: Duration = Duration::from_secs(1);
/// How often the head goes to the journal, where root would have to change it too.
const HEAD_LOGGED: Duration = Duration::from_secs(600);
/// How often the next file is asked for where none comes: something is wrong then, and the log says what.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Keys of a line that only the writer may set.
const RESERVED: [&str; 3] = ["seq", "prev", "time"];
/// The receipt of a record that is not in the chain, under `--audit-full continue`.
const NO_RECEIPT: Receipt = Receipt { seq: 0, hash: [0; 32] };

/// How the writer works.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What to answer when a record cannot be written.
    pub full: AuditFull,
    /// Which records are on disk before their receipt.
    pub sync: AuditSync,
    /// Bytes of a file that is full.
    pub rotate: u64,
    /// Most clients at once; more are turned away.
    pub clients: usize,
    /// Whether the helper has no privilege to give up.
    pub same_user: bool,
}

/// Serves the clients that come over `control` until it and all of them are closed, and then ends by
/// `kill_switch` whatever still runs: the parent and the supervisors that would have done it were killed. For
/// a process of its own: it gives up its capabilities and confines itself first.
///
/// # Errors
/// It could not be confined. Nothing was written then.
pub fn run(
    control: OwnedFd,
    journal: Journal,
    settings: Settings,
    kill_switch: Option<File>,
) -> Result<(), ConfineError> {
    filter::confine(settings.same_user)?;
    Writer::new(control, journal, settings).serve();
    if let Some(mut kill_switch) = kill_switch {
        // Nothing is left in it, as a rule.
        let _ = kill_switch.write_all(b"1");
    }
    Ok(())
}

struct Writer {
    control: Option<OwnedFd>,
    clients: Vec<OwnedFd>,
    journal: Journal,
    settings: Settings,
    /// When what is not on disk yet must be.
    settle_at: Option<Instant>,
    /// When the next file was asked for.
    asked: Option<Instant>,
    logged: (u64, Instant),
    /// Room for one record and one byte more, which shows a packet that is too long.
    buffer: Vec<u8>,
}

/// A record that waits for its receipt.
struct Waiting {
    client: RawFd,
    reply: Reply,
    durable: bool,
}

impl Writer {
    fn new(control: OwnedFd, journal: Journal, settings: Settings) -> Self {
        Self {
            control: Some(control),
            clients: Vec::new(),
            logged: (journal.place().seq, Instant::now()),
            journal,
            settings,
            settle_at: None,
            asked: None,
            buffer: vec![0; RECORD + 2],
        }
    }

    fn serve(mut self) {
        self.settle();
        while self.control.is_some() || !self.clients.is_empty() {
            let ready = self.wait();
            let round: Vec<Waiting> = ready.into_iter().filter_map(|fd| self.receive(fd)).collect();
            self.answer(round);
            if self.settle_at.is_some_and(|at| at <= Instant::now()) {
                self.settle();
            }
            if self.logged.1.elapsed() >= HEAD_LOGGED {
                self.log_head();
            }
        }
        self.settle();
        self.log_head();
    }

    /// The descriptors that have something to say, or none when it is time to settle.
    fn wait(&self) -> Vec<RawFd> {
        let descriptors = self.control.iter().chain(&self.clients);
        let mut polled: Vec<PollFd<'_>> =
            descriptors.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)).collect();
        let timeout = self.settle_at.map(|at| TimeSpec::from(at.saturating_duration_since(Instant::now())));
        if ppoll(&mut polled, timeout, None).is_err() {
            return Vec::new();
        }
        let ready = |fd: &PollFd<'_>| fd.revents().is_none_or(|events| !events.is_empty());
        polled.iter().filter(|fd| ready(fd)).map(|fd| fd.as_fd().as_raw_fd()).collect()
    }

    /// Takes what has come: a new client, or a record, which is appended.
    fn receive(&mut self, fd: RawFd) -> Option<Waiting> {
        if self.control.as_ref().is_some_and(|control| control.as_raw_fd() == fd) {
            self.take();
            return None;
        }
        let Some((durable, json)) = read_record(fd, &mut self.buffer) else {
            // Gone, or it said what no client says.
            self.clients.retain(|client| client.as_raw_fd() != fd);
            return None;
        };
        let reply = self.journal.append(json).map(receipt);
        let durable = durable || self.settings.sync == AuditSync::Always;
        Some(Waiting { client: fd, reply, durable })
    }

    /// Takes what the parent hands over.
    fn take(&mut self) {
        let Some(control) = &self.control else { return };
        match control::take(control) {
            Err(Errno::EAGAIN) => {}
            Ok(None) | Err(_) => self.control = None,
            Ok(Some((Handed::Client, client))) if self.clients.len() < self.settings.clients => {
                self.clients.push(client);
            }
            Ok(Some((Handed::Client, _))) => log::warning("audit: too many clients, one was turned away"),
            Ok(Some((Handed::Next, log))) => {
                self.journal.go_on(log.into(), Kind::Rotated, "the file before this one is full");
                self.asked = None;
                self.settle();
            }
            Ok(Some((Handed::Log, log))) => {
                let why = "audit.jsonl was moved or removed while the helper ran";
                self.journal.go_on(log.into(), Kind::Gap, why);
                self.settle();
            }
            Ok(Some((Handed::Head, head))) => {
                self.journal.go_on_with_head(head.into());
                self.settle();
            }
        }
    }

    /// Puts on disk what must be there, and hands out the receipts.
    fn answer(&mut self, round: Vec<Waiting>) {
        let must_sync = round.iter().any(|waiting| waiting.durable && waiting.reply.is_ok());
        let synced = if must_sync { self.journal.sync() } else { Ok(()) };
        for Waiting { client, reply, durable } in round {
            let reply = match (reply, synced) {
                (Ok(_), Err(errno)) if durable => Err(errno),
                (reply, _) => reply,
            };
            let sent = send(
                client,
                &reply::encode(self.forgive(reply)),
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
            );
            if sent.is_err() {
                self.clients.retain(|known| known.as_raw_fd() != client);
            }
        }
        if self.journal.is_unsettled() || self.journal.is_owing() {
            let due = Instant::now() + BEHIND;
            // Never later than it was due before.
            self.settle_at = Some(self.settle_at.map_or(due, |at| at.min(due)));
        }
        let is_due = self.asked.is_none_or(|at| at.elapsed() >= ASK_AGAIN);
        if self.journal.length() >= self.settings.rotate
            && is_due
            && let Some(control) = &self.control
        {
            self.asked = Some(Instant::now());
            control::ask_for_next(control.as_fd());
        }
    }

    /// What a client hears of a failure: that is the operator's choice.
    fn forgive(&self, reply: Reply) -> Reply {
        let Err(errno) = reply else { return reply };
        log::error(format_args!("audit: a record could not be written: {}", errno.desc()));
        match self.settings.full {
            AuditFull::Refuse => reply,
            AuditFull::Continue => Ok(NO_RECEIPT),
        }
    }

    fn settle(&mut self) {
        let result = self.journal.settle();
        let owing = self.journal.is_owing();
        self.settle_at = owing.then(|| Instant::now() + RETRY);
        // Of what is owed everybody heard when it was lost.
        if let (Err(errno), false) = (result, owing) {
            log::error(format_args!("audit: records may not be on disk: {}", errno.desc()));
        }
    }

    fn log_head(&mut self) {
        let place = self.journal.place();
        if self.logged.0 != place.seq {
            log::info(format_args!("audit head {}", place.head().trim_end()));
        }
        self.logged = (place.seq, Instant::now());
    }
}

fn receipt(place: Position) -> Receipt {
    Receipt { seq: place.seq, hash: place.hash }
}

/// Reads one packet: whether it must be durable, and a JSON object that leaves the writer's keys alone.
fn read_record(client: RawFd, buffer: &mut [u8]) -> Option<(bool, &str)> {
    let length = retry(|| recv(client, buffer, MsgFlags::MSG_DONTWAIT)).ok()?;
    let (durable, json) = buffer.get(..length)?.split_first()?;
    let json = std::str::from_utf8(json).ok().filter(|json| json.len() <= RECORD)?;
    let keys: BTreeMap<&str, IgnoredAny> = serde_json::from_str(json).ok()?;
    let is_ours = !keys.is_empty() && !RESERVED.iter().any(|key| keys.contains_key(key));
    is_ours.then_some((*durable != 0, json))
}

#[cfg(test)]
mod tests;
