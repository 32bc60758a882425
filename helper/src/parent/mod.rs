#![forbid(unsafe_code)]
//! The long-lived process: accepts, forks, reaps, reloads. It reads no request and runs no program, and holds
//! nothing that a request could touch.

mod ahead;
mod reload;
mod socket;
mod supervisors;
mod writer;

use crate::args::Options;
use crate::audit::{Decision, Kind, Record};
use crate::host::Host;
use crate::in_force::InForce;
use crate::shared::{Purpose, Shared};
use crate::sys::process::{self, Reaped};
use crate::{log, notify, tree};
use ahead::Ahead;
use gloveport_contract::catalog::hex;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{SockFlag, accept4};
use nix::unistd::{Pid, pipe2};
use reload::Trial;
use socket::Listener;
use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};
use writer::Writer;

/// Connections accepted before the other events are looked at.
const BURST: usize = 32;
/// When something is short (descriptors, processes) or has failed, it is tried again after this.
const RETRY: Duration = Duration::from_millis(100);
/// A writer that cannot start is tried again after this.
const WRITER_RETRY: Duration = Duration::from_secs(1);
/// How long runs may take to end when the helper is told to.
const STOPPING: Duration = Duration::from_secs(5);
/// How long one round of ending orphans may hold up everything else.
const ORPHANS: Duration = Duration::from_millis(300);

/// The parent.
pub struct Parent<'a> {
    options: &'a Options,
    host: &'a Host,
    signals: SignalFd,
    listener: Listener,
    /// Supervisors hold the other end; it ends with this process.
    life: Option<OwnedFd>,
    life_of_supervisors: OwnedFd,
    shared: Shared,
    in_force: Option<InForce>,
    /// Which catalogue that is, counted from the start.
    generation: u64,
    reason: Option<String>,
    /// All of them, those that wait for a connection too.
    supervisors: BTreeSet<Pid>,
    ahead: Vec<Ahead>,
    writer: Option<Writer>,
    trial: Option<Trial>,
    /// SIGHUP came while a trial was in progress.
    reload_again: bool,
    /// Not accepting until then.
    pause: Option<Instant>,
    writer_retry: Option<Instant>,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Next {
    Serve,
    Stop,
}

impl<'a> Parent<'a> {
    /// Opens everything that serving needs, in the order of AUDIT.md.
    ///
    /// # Errors
    /// What keeps it from starting, in a sentence.
    pub fn start(options: &'a Options, host: &'a Host, signals: SignalFd) -> Result<Self, String> {
        let errno = |errno: Errno| errno.desc().to_owned();
        let writer = Writer::start(options, host, supervisors::clients(options))?;
        // Only now, with the chain locked, is it certain that no other helper uses the subtree.
        if let Some(cgroups) = &host.cgroups {
            match cgroups.clear() {
                Ok(0) => {}
                Ok(groups) => {
                    log::warning(format_args!("{groups} runs of a helper before this one are ended"))
                }
                Err(error) => log::warning(format_args!("runs of a helper before this one: {error}")),
            }
        }
        let (in_force, reason) = match reload::load(options, host) {
            Ok(in_force) => (Some(in_force), None),
            Err(reason) => (None, Some(reason)),
        };
        let listener = Listener::open(options)?;
        let (life_of_supervisors, life) = pipe2(OFlag::O_CLOEXEC).map_err(errno)?;
        let shared = Shared::new(options.max_runs).map_err(|error| error.to_string())?;
        let this = Self {
            options,
            host,
            signals,
            listener,
            life: Some(life),
            life_of_supervisors,
            shared,
            in_force,
            generation: 0,
            reason,
            supervisors: BTreeSet::new(),
            ahead: Vec::new(),
            writer: Some(writer),
            trial: None,
            reload_again: false,
            pause: None,
            writer_retry: None,
        };
        this.record(this.catalog_record(Kind::Started))?;
        this.announce();
        Ok(this)
    }

    /// Serves until SIGTERM or SIGINT, then ends all runs.
    pub fn serve(mut self) {
        self.prepare_ahead();
        while self.turn() == Next::Serve {}
        self.stop();
    }

    fn turn(&mut self) -> Next {
        let now = Instant::now();
        self.pause = self.pause.filter(|until| *until > now);
        if self.writer_retry.is_some_and(|at| at <= now) {
            self.restart_writer();
        }
        if let Some(trial) = &self.trial
            && trial.deadline <= now
        {
            trial.kill();
        }
        let trial = self.trial.as_ref().map(|trial| trial.deadline);
        let wake = [self.pause, self.writer_retry, trial].into_iter().flatten().min();
        let timeout = wake.map_or(PollTimeout::NONE, |at| {
            PollTimeout::try_from(at.saturating_duration_since(now) + Duration::from_millis(1))
                .unwrap_or(PollTimeout::MAX)
        });
        // The end of signals is looked for in place of what there is not.
        let writer = self.writer.as_ref().map_or(self.signals.as_fd(), |writer| writer.as_fd());
        let accepting = if self.pause.is_some() { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut ready = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.socket.as_fd(), accepting),
            PollFd::new(writer, PollFlags::POLLIN),
        ];
        if poll(&mut ready, timeout).is_err() {
            return Next::Serve;
        }
        let [signal, connection, asked] = ready.map(|fd| fd.any().unwrap_or(false));
        if signal && self.take_signals() == Next::Stop {
            return Next::Stop;
        }
        if asked
            && let Some(writer) = &mut self.writer
            && let Err(error) = writer.rotate(self.options)
        {
            log::error(format_args!("the audit log is full, and goes on in the same file: {error}"));
        }
        if connection {
            self.accept();
        }
        Next::Serve
    }

    fn take_signals(&mut self) -> Next {
        let mut next = Next::Serve;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            match Signal::try_from(i32::try_from(signal.ssi_signo).unwrap_or(0)) {
                Ok(Signal::SIGHUP) => self.begin_reload(),
                Ok(Signal::SIGTERM | Signal::SIGINT) => next = Next::Stop,
                _ => {}
            }
        }
        self.reap();
        self.end_orphans();
        if next == Next::Serve {
            self.prepare_ahead();
        }
        next
    }

    fn accept(&mut self) {
        for _ in 0..BURST {
            match accept4(&self.listener.socket, SockFlag::SOCK_CLOEXEC) {
                Ok(connection) => self.connected(connection),
                Err(Errno::EAGAIN) => return,
                // The peer has gone in between.
                Err(Errno::ECONNABORTED | Errno::EINTR | Errno::EPROTO) => {}
                Err(errno) => {
                    // Out of descriptors or memory: the connection stays in the queue, and asking again at
                    // once would only burn time.
                    log::error(format_args!("a connection could not be accepted: {}", errno.desc()));
                    self.pause = Some(Instant::now() + RETRY);
                    return;
                }
            }
        }
    }

    /// Reaps everything that has ended.
    fn reap(&mut self) {
        while let Some(reaped) = process::reap() {
            self.reaped(&reaped);
        }
    }

    fn reaped(&mut self, reaped: &Reaped) {
        if self.supervisors.remove(&reaped.pid) {
            self.supervisor_ended(reaped);
        } else if self.writer.as_ref().is_some_and(|writer| writer.pid == reaped.pid) {
            log::error("the audit writer has ended; nothing runs until it is back");
            notify::status("the audit writer has ended; nothing runs until it is back");
            self.writer = None;
            // Their ways to it lead nowhere.
            self.ahead.clear();
            self.restart_writer();
        } else if self.trial.as_ref().is_some_and(|trial| trial.pid == reaped.pid) {
            self.trial_ended(reaped.exited == Some(0));
        }
        // Anything else was an orphan of a run.
    }

    fn supervisor_ended(&mut self, reaped: &Reaped) {
        self.ahead.retain(|ahead| ahead.pid != reaped.pid);
        if let Err(error) = self.shared.free(reaped.pid, &[Purpose::Run, Purpose::Wait]) {
            log::error(format_args!("a slot could not be freed: {error}"));
        }
        if let Some(cgroups) = &self.host.cgroups {
            cgroups.remove(reaped.pid);
        }
        // It may have recorded the end of its run since the files were looked at.
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.keep_in_place(self.options)) {
            log::error(error);
        }
        if reaped.exited != Some(0) {
            log::warning(format_args!(
                "the supervisor {} ended by itself; its run is ended with it",
                reaped.pid
            ));
        }
    }

    /// Ends what a supervisor that was killed has left: it has come to us, the subreaper above it.
    fn end_orphans(&mut self) {
        let ours = self.own_children();
        if !tree::has_children_but(&ours) {
            return;
        }
        if !tree::end(&ours, ORPHANS, || self.reap()) {
            log::warning("orphans of a run have not ended yet");
        }
    }

    fn own_children(&self) -> Vec<Pid> {
        let others = [self.writer.as_ref().map(|w| w.pid), self.trial.as_ref().map(|t| t.pid)];
        self.supervisors.iter().copied().chain(others.into_iter().flatten()).collect()
    }

    fn restart_writer(&mut self) {
        self.writer_retry = None;
        match Writer::start(self.options, self.host, supervisors::clients(self.options)) {
            Ok(writer) => {
                self.writer = Some(writer);
                log::warning("the audit writer is back");
                notify::status(&self.sentence());
            }
            Err(error) => {
                log::error(error);
                self.writer_retry = Some(Instant::now() + WRITER_RETRY);
            }
        }
    }

    fn begin_reload(&mut self) {
        if self.trial.is_some() {
            self.reload_again = true;
            return;
        }
        notify::reloading();
        match Trial::start(self.options, self.host) {
            Ok(trial) => self.trial = Some(trial),
            Err(error) => self.reloaded(Err(format!("a trial could not be forked: {error}"))),
        }
    }

    fn trial_ended(&mut self, succeeded: bool) {
        let Some(trial) = self.trial.take() else { return };
        let result = if succeeded { reload::load(self.options, self.host) } else { Err(trial.reason()) };
        self.reloaded(result);
        if std::mem::take(&mut self.reload_again) {
            self.begin_reload();
        }
    }

    /// A better catalogue comes into force; for a worse one the old one stays, and says why.
    fn reloaded(&mut self, result: Result<InForce, String>) {
        self.ahead.clear();
        let failure = match result {
            Ok(in_force) => {
                self.in_force = Some(in_force);
                // What waits for a person was asked for under the old one.
                self.generation += 1;
                if let Err(error) = self.shared.set_generation(self.generation) {
                    log::error(format_args!("the shared table: {error}"));
                }
                self.reason = None;
                None
            }
            Err(reason) => {
                log::error(format_args!("the new catalogue is not in force: {reason}"));
                self.reason = Some(reason.clone());
                Some(reason)
            }
        };
        let decision = Some(if failure.is_some() { Decision::Refuse } else { Decision::Allow });
        let record = Record { decision, ..self.catalog_record(Kind::Reloaded) };
        if let Err(error) = self.record(record) {
            log::error(error);
        }
        self.announce();
    }

    /// Tells the service manager and the log what is in force.
    fn announce(&self) {
        notify::ready(&self.sentence());
        log::info(self.sentence());
        self.in_force.iter().flat_map(|in_force| &in_force.warnings).for_each(log::warning);
    }

    fn catalog_record(&self, kind: Kind) -> Record {
        Record {
            catalog: self.in_force.as_ref().map(|in_force| hex(&in_force.digest)),
            reason: self.reason.clone(),
            durable: true,
            ..Record::new(kind)
        }
    }

    fn record(&self, record: Record) -> Result<(), String> {
        let writer = self.writer.as_ref().ok_or("there is no audit writer")?;
        let client = writer.client().map_err(|error| error.to_string())?;
        client.append(&record).map(drop).map_err(|error| error.to_string())
    }

    fn sentence(&self) -> String {
        match (&self.in_force, &self.reason) {
            (Some(in_force), None) => format!(
                "catalogue {} with {} actions, signed by {}, is in force",
                hex(&in_force.digest).get(..12).unwrap_or_default(),
                in_force.actions.count(),
                in_force.signer
            ),
            (Some(_), Some(reason)) => format!("an older catalogue stays in force: {reason}"),
            (None, reason) => {
                format!("no catalogue is in force: {}", reason.as_deref().unwrap_or("none was found"))
            }
        }
    }

    /// Ends all runs by the life pipe, waits for their records, and goes.
    fn stop(mut self) {
        notify::stopping();
        self.life = None;
        self.ahead.clear();
        if let Some(trial) = self.trial.take() {
            trial.kill();
        }
        let end = Instant::now() + STOPPING;
        while !self.supervisors.is_empty() && Instant::now() < end {
            let mut ready = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut ready, PollTimeout::from(50_u8));
            while let Ok(Some(_)) = self.signals.read_signal() {}
            self.reap();
        }
        if let Err(error) = self.record(Record { durable: true, ..Record::new(Kind::Stopped) }) {
            log::error(error);
        }
        let writer = self.writer.take();
        let spared: Vec<Pid> = writer.iter().map(|writer| writer.pid).collect();
        tree::end(&spared, STOPPING, || while process::reap().is_some() {});
        self.listener.remove(&self.options.paths.socket);
        // Closing its control socket ends the writer, once it has written everything.
        drop(writer);
        while tree::has_children_but(&[]) && Instant::now() < end + STOPPING {
            std::thread::sleep(Duration::from_millis(2));
            while process::reap().is_some() {}
        }
    }
}
