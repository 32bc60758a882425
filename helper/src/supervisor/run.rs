#![forbid(unsafe_code)]
//! The course of a run: step after step, until the last has ended or something ends it.

use super::{Supervisor, Woken};
use crate::audit::{Kind, Record, StepRecord};
use crate::cgroup::RunGroup;
use crate::child::Failure;
use crate::shared::Purpose;
use crate::sys::process::{self, Reaped, Used};
use crate::wire::{self, SendError};
use crate::{log, tree};
use gloveport_contract::catalog::{Action, Builtin, OnDisconnect, OnError};
use gloveport_contract::packet::{Event, Outcome, RefusalCode, Usage};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Between the polite signal and the end. A program has it at its deadline; a built-in handler also when its
/// run is given up, because what it has begun on a server goes on there until somebody says otherwise.
const GRACE: Duration = Duration::from_millis(200);
/// What a program has left behind may take this long to end by itself.
const LEFTOVERS: Duration = Duration::from_millis(200);
/// How long ending a tree may take; trees inside their limits take a tenth of it.
const TREE: Duration = Duration::from_secs(2);

/// A forked step.
pub struct Step {
    name: String,
    pid: Pid,
    process: OwnedFd,
    gate: OwnedFd,
    report: OwnedFd,
    streams: Vec<OwnedFd>,
    reaped: Option<Reaped>,
}

impl Step {
    /// A child that waits for its turn.
    ///
    /// # Errors
    /// Those of pidfd_open(2).
    pub fn new(
        name: String,
        pid: Pid,
        gate: OwnedFd,
        report: OwnedFd,
        streams: Vec<OwnedFd>,
    ) -> io::Result<Self> {
        Ok(Self { name, pid, process: process::open(pid)?, gate, report, streams, reaped: None })
    }

    /// How it ended, by its own report first: an exit code of a child that never became the program is none
    /// of the program's.
    fn outcome(&self, reaped: &Reaped) -> Outcome {
        let mut report = [0; 5];
        let length = nix::unistd::read(&self.report, &mut report).unwrap_or(0);
        if let Some((stage, errno)) = report.get(..length).and_then(Failure::read) {
            return Outcome::NotStarted { stage: stage.to_owned(), errno };
        }
        match (reaped.exited, reaped.signaled) {
            (Some(status), _) => Outcome::Exited(status),
            (None, signal) => Outcome::Signaled(signal.unwrap_or(libc::SIGKILL)),
        }
    }
}

/// What ended a step, or the run, beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Timeout,
    Cancelled,
    Memory,
    Leftovers,
}

impl Cause {
    fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Memory => "memory",
            Self::Leftovers => "leftovers",
        }
    }
}

/// A run in progress.
pub struct Course<'a> {
    supervisor: &'a Supervisor<'a>,
    steps: Vec<Step>,
    group: Option<RunGroup>,
    children: SignalFd,
    /// Usage of what the running step has left behind.
    orphans: Used,
    begun: Instant,
    deadline: Instant,
    /// Why the rest is not run.
    ended_by: Option<Cause>,
    /// Some of it could not be ended: the parent goes on with that.
    is_left: bool,
    /// Who had it ended, as the daemon says.
    asked_by: Option<String>,
    on_disconnect: OnDisconnect,
    /// What runs is a handler of ours.
    is_handler: bool,
    /// The daemon has gone, and the run goes on without it.
    is_alone: bool,
    /// The read ends of the running step's output, where it must not end with the daemon.
    kept: Vec<OwnedFd>,
}

impl<'a> Course<'a> {
    /// Makes this process the one that everything of the run comes back to.
    ///
    /// # Errors
    /// Those of prctl(2) and signalfd(2).
    pub fn new(
        supervisor: &'a Supervisor<'a>,
        steps: Vec<Step>,
        group: Option<RunGroup>,
        begun: Instant,
    ) -> io::Result<Self> {
        prctl::set_child_subreaper(true)?;
        let mut ended = SigSet::empty();
        ended.add(Signal::SIGCHLD);
        let children = SignalFd::with_flags(&ended, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let now = Instant::now();
        Ok(Self {
            supervisor,
            steps,
            group,
            children,
            orphans: Used::default(),
            begun,
            deadline: now,
            ended_by: None,
            is_left: false,
            asked_by: None,
            on_disconnect: OnDisconnect::Cancel,
            is_handler: false,
            is_alone: false,
            kept: Vec::new(),
        })
    }

    /// Runs all steps and records the end.
    pub fn run(mut self, accepted: Event, timeout: Duration, action: &Action, record: Record) {
        self.deadline = Instant::now() + timeout;
        self.on_disconnect = action.on_disconnect;
        self.is_handler = action.builtin.is_some_and(|builtin| builtin != Builtin::Command);
        self.tell(&accepted);
        let mut ended = Vec::new();
        let mut failed = false;
        for index in 0..self.steps.len() {
            let skip = self.ended_by.is_some() || (failed && action.on_error == OnError::Stop);
            let (outcome, cause, usage) =
                if skip { (Outcome::Skipped, None, Usage::default()) } else { self.step(index) };
            failed |= outcome != Outcome::Exited(0);
            let killed_by = cause.map(Cause::as_str);
            let name = self.steps.get(index).map_or("", |step| &step.name);
            ended.push(StepRecord::new(name, &outcome, killed_by, usage));
            self.tell(&Event::StepEnded {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                outcome,
                killed_by: killed_by.map(str::to_owned),
                usage,
            });
        }
        let duration = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = Record {
            kind: Kind::Ended,
            steps: ended,
            killed_by: self.ended_by.map(|cause| cause.as_str().to_owned()),
            duration_ms: Some(duration),
            reason: self.asked_by.take().map(|by| format!("{by} ended the run")),
            ..record
        };
        let recorded = self.supervisor.audit.append(&record);
        // Who reads the end may call again at once, and this process takes a moment to be reaped. It is bounded
        // as a supervisor until then; what still runs keeps its slot.
        if !self.is_left
            && let Err(error) = self.supervisor.shared.free(Pid::this(), &[Purpose::Run])
        {
            log::error(format_args!("a slot could not be freed: {error}"));
        }
        match recorded {
            Ok(receipt) => self.tell(&Event::Ended { receipt }),
            // Without a receipt there is no end that a daemon could report as recorded.
            Err(error) => {
                log::error(format_args!("the end of a run of `{}` is not recorded: {error}", action.name));
                let detail = format!(
                    "the action ran, and its end could not be recorded, so there is no result: {error}. What it \
                     has changed stays changed: look before calling it again"
                );
                self.tell(&Event::Refused { code: RefusalCode::Audit, detail, receipt: None });
            }
        }
    }

    /// Sends an event; a daemon that does not take it has given the run up.
    fn tell(&mut self, event: &Event) {
        if let Err(cause) = self.send(event, &[]) {
            self.ended_by.get_or_insert(cause);
        }
    }

    /// Sends an event with descriptors, or finds that nobody is there where nobody needs to be.
    fn send(&mut self, event: &Event, descriptors: &[BorrowedFd<'_>]) -> Result<(), Cause> {
        match wire::send(&self.supervisor.connection, event, descriptors) {
            Err(SendError::Gone) if self.on_disconnect == OnDisconnect::Finish => self.is_alone = true,
            result => result.map_err(|_| Cause::Cancelled)?,
        }
        Ok(())
    }

    fn step(&mut self, index: usize) -> (Outcome, Option<Cause>, Usage) {
        let started = Instant::now();
        self.orphans = Used::default();
        let kills_before = self.group.as_mut().map_or(0, RunGroup::memory_kills);
        let mut cause = self.begin(index).err();
        if cause.is_none() {
            cause = self.wait(index);
        }
        if cause.is_none() && self.is_anything_left(index) {
            cause = self.wait_for_leftovers(index);
        }
        self.end_tree(index);
        self.kept.clear();
        if let Some(end @ (Cause::Timeout | Cause::Cancelled)) = cause {
            self.ended_by.get_or_insert(end);
        }
        if cause.is_none() && self.group.as_mut().map_or(0, RunGroup::memory_kills) > kills_before {
            cause = Some(Cause::Memory);
        }
        let Some((step, reaped)) = self.steps.get(index).and_then(|step| Some((step, step.reaped.as_ref()?)))
        else {
            // It was killed and has not come back in time: there is no status to tell.
            return (Outcome::Signaled(libc::SIGKILL), cause, usage(started, Used::default(), self.orphans));
        };
        (step.outcome(reaped), cause, usage(started, reaped.used, self.orphans))
    }

    /// Hands the descriptors over and opens the gate.
    fn begin(&mut self, index: usize) -> Result<(), Cause> {
        let Some(step) = self.steps.get_mut(index) else {
            return Err(Cause::Cancelled);
        };
        if let Some(group) = &mut self.group {
            group.add(step.pid).map_err(|error| {
                log::error(format_args!("a step could not be put into its cgroup: {error}"));
                Cause::Cancelled
            })?;
        }
        let event = Event::StepStarted { index: u32::try_from(index).unwrap_or(u32::MAX) };
        let mut streams = std::mem::take(&mut step.streams);
        let borrowed: Vec<_> = streams.iter().map(|stream| stream.as_fd()).collect();
        self.send(&event, &borrowed)?;
        drop(borrowed);
        if self.on_disconnect == OnDisconnect::Finish {
            // With no reader at all the program would die of SIGPIPE. Nothing is read here: who prints more
            // than a pipe holds waits for a reader, until the deadline.
            streams.truncate(2);
            self.kept = streams;
        }
        let gate = self.steps.get(index).map(|step| &step.gate).ok_or(Cause::Cancelled)?;
        nix::unistd::write(gate, b"!").map(drop).map_err(|_| Cause::Cancelled)
    }

    /// Waits for the program itself to end.
    fn wait(&mut self, index: usize) -> Option<Cause> {
        let mut asked: Option<Instant> = None;
        loop {
            self.reap();
            if self.has_ended(index) {
                return asked.map(|_| Cause::Timeout);
            }
            let now = Instant::now();
            let limit = asked.map_or(self.deadline, |asked| asked + GRACE);
            if now >= limit {
                if asked.is_some() {
                    return Some(Cause::Timeout);
                }
                self.ask_to_end(index);
                asked = Some(now);
                continue;
            }
            if self.pause(limit - now) {
                if self.is_handler {
                    self.let_handler_end(index);
                }
                return Some(Cause::Cancelled);
            }
        }
    }

    /// SIGTERM to the step's process group, and to the program itself where it has left it. The number is
    /// ours as long as the program is not reaped.
    fn ask_to_end(&self, index: usize) {
        if let Some(step) = self.steps.get(index)
            && killpg(step.pid, Signal::SIGTERM).is_err()
        {
            // Gone already, and about to be reaped.
            let _ = process::signal(step.process.as_fd(), Signal::SIGTERM);
        }
    }

    /// Asks a handler whose run is given up to end, and waits for it. The connection says nothing new.
    fn let_handler_end(&mut self, index: usize) {
        self.ask_to_end(index);
        let end = Instant::now() + GRACE;
        loop {
            self.reap();
            let now = Instant::now();
            if self.has_ended(index) || now >= end {
                return;
            }
            if self.pause_for(end - now, true).over {
                return;
            }
        }
    }

    /// Gives what is left some time to end by itself.
    fn wait_for_leftovers(&mut self, index: usize) -> Option<Cause> {
        let end = Instant::now() + LEFTOVERS;
        loop {
            let now = Instant::now();
            if now >= end {
                return Some(Cause::Leftovers);
            }
            if self.pause(end - now) {
                return Some(Cause::Cancelled);
            }
            self.reap();
            if !self.is_anything_left(index) {
                return None;
            }
        }
    }

    /// Waits for a child, the connection or the parent, at most so long. Yields whether the run is given up:
    /// the daemon has closed or sent a second request, or the parent has gone.
    fn pause(&mut self, most: Duration) -> bool {
        let woken = self.pause_for(most, self.is_alone);
        self.is_alone |= woken.closed && self.on_disconnect == OnDisconnect::Finish;
        woken.over || (woken.closed && !self.is_alone)
    }

    fn pause_for(&mut self, most: Duration, is_alone: bool) -> Woken {
        let mut woken = self.supervisor.pause(Some(self.children.as_fd()), is_alone, most);
        if let Some(by) = woken.ended_by.take() {
            self.asked_by = Some(by);
        }
        if woken.by_own {
            // Which child it was is wait4's to say; several signals become one anyway.
            while let Ok(Some(_)) = self.children.read_signal() {}
        }
        woken
    }

    /// Reaps whatever has ended.
    fn reap(&mut self) {
        reap(&mut self.steps, &mut self.orphans);
    }

    fn has_ended(&self, index: usize) -> bool {
        self.steps.get(index).is_none_or(|step| step.reaped.is_some())
    }

    /// The children that still wait for their turn.
    fn waiting(&self, index: usize) -> Vec<Pid> {
        self.steps.iter().skip(index + 1).map(|step| step.pid).collect()
    }

    fn is_anything_left(&mut self, index: usize) -> bool {
        match &mut self.group {
            Some(group) => group.is_populated(),
            None => tree::has_children_but(&self.waiting(index)),
        }
    }

    /// Ends all that this step has started, and the program itself where it has not ended.
    fn end_tree(&mut self, index: usize) {
        let waiting = self.waiting(index);
        let Self { group, steps, orphans, .. } = self;
        let by_group = group.as_mut().is_some_and(|group| group.end(TREE, || reap(steps, orphans)));
        // A child that has not yet come into its group is found by the walk, and so is everything without one.
        if !tree::end(&waiting, TREE, || reap(steps, orphans)) && !by_group {
            self.is_left = true;
            log::error("a run's processes did not end: the parent goes on with them");
        }
    }
}

/// Reaps all ended children: a step's own is noted, of any other only what it used.
fn reap(steps: &mut [Step], orphans: &mut Used) {
    while let Some(reaped) = process::reap() {
        match steps.iter_mut().find(|step| step.pid == reaped.pid && step.reaped.is_none()) {
            Some(step) => step.reaped = Some(reaped),
            None => {
                orphans.user += reaped.used.user;
                orphans.system += reaped.used.system;
                orphans.max_rss_kib = orphans.max_rss_kib.max(reaped.used.max_rss_kib);
            }
        }
    }
}

fn usage(started: Instant, own: Used, orphans: Used) -> Usage {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Usage {
        wall_us: micros(started.elapsed()),
        user_us: micros(own.user + orphans.user),
        system_us: micros(own.system + orphans.system),
        max_rss_kib: own.max_rss_kib.max(orphans.max_rss_kib),
    }
}
