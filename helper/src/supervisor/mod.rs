#![forbid(unsafe_code)]
//! One connection, one process: receives the only request, answers it, and where it is a run sees it through
//! to its end. Whatever goes wrong here ends here.

mod approval;
pub mod confine;
mod decide;
mod given;
mod launch;
mod prepare;
mod records;
mod run;
mod status;

use crate::args::Options;
use crate::audit::{Client, Kind, Record};
use crate::host::Host;
use crate::in_force::InForce;
use crate::shared::{Claim, Claimed, Coalesced, Purpose, Shared};
use crate::sys::{descriptors, process};
use crate::wire::{self, Received};
use crate::{log, tokens};
use gloveport_contract::catalog::Approval;
use gloveport_contract::packet::{Event, Note, Receipt, RefusalCode, Request, Run};
use gloveport_contract::token::ScopeRefusal;
use launch::Launch;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use prepare::Preparing;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A request comes with the connection; who has not sent it by then does not mean it.
const REQUEST_PATIENCE: Duration = Duration::from_secs(1);

/// What a supervisor inherits from the parent.
pub struct Supervisor<'a> {
    /// The command line.
    pub options: &'a Options,
    /// The host.
    pub host: &'a Host,
    /// The catalogue in force.
    pub in_force: Option<&'a InForce>,
    /// Which catalogue that is; the shared table says whether it still is.
    pub generation: u64,
    /// Why there is none, or why the newest one is not in force.
    pub reason: Option<&'a str>,
    /// Slots and coalesced records.
    pub shared: &'a Shared,
    /// The peer is root and not the daemon: it may ask for the status only.
    pub status_only: bool,
    /// The connection.
    pub connection: OwnedFd,
    /// Ends when the parent does.
    pub life: OwnedFd,
    /// The way to the audit writer.
    pub audit: Client,
}

/// Why a call does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind.
    pub code: RefusalCode,
    /// The reason, for the client.
    pub detail: String,
}

/// A caller, as far as it is counted.
struct Counted {
    /// A name that no other caller has.
    key: String,
    /// Calls in a minute.
    per_minute: Option<u32>,
    /// Runs at once.
    at_once: Option<u32>,
}

/// What ended a pause.
#[derive(Default)]
struct Woken {
    /// The descriptor of the caller's own.
    by_own: bool,
    /// The daemon has closed.
    closed: bool,
    /// The parent has gone, or the daemon has sent a second packet.
    over: bool,
    /// Who ends the run, where that is what the second packet says.
    ended_by: Option<String>,
}

impl Supervisor<'_> {
    /// Serves the connection and ends the process.
    pub fn serve(self) -> ! {
        let mine = [
            0,
            1,
            2,
            self.connection.as_raw_fd(),
            self.life.as_raw_fd(),
            self.audit.as_fd().as_raw_fd(),
            self.shared.as_fd().as_raw_fd(),
        ];
        if let Err(error) = descriptors::close_all_except(&mine) {
            log::error(format_args!("a supervisor could not close what is not its own: {error}"));
            process::exit(1);
        }
        match wire::receive(&self.connection, REQUEST_PATIENCE) {
            Received::Nothing => {}
            Received::Violation(what) => self.malformed(what),
            Received::Packet(bytes) => match Request::decode(&bytes) {
                Err(error) => self.malformed(&error.to_string()),
                Ok(Request::Status { page }) => self.send(&self.status(page)),
                Ok(Request::Run(_) | Request::Note(_)) if self.status_only => {}
                Ok(Request::Note(note)) => self.note(note),
                Ok(Request::End { .. }) => self.malformed("there is no run to end on this connection"),
                Ok(Request::Run(request)) => self.run(&request),
            },
        }
        process::exit(0)
    }

    fn send(&self, event: &Event) {
        // A peer that does not read its answer gets none.
        let _ = wire::send(&self.connection, event, &[]);
    }

    /// Records what is no request. The connection ends with this process: nothing is repaired.
    fn malformed(&self, what: &str) {
        self.record_coalesced(
            Coalesced::Malformed,
            Record { reason: Some(what.to_owned()), ..Record::new(Kind::Malformed) },
        );
    }

    /// Records a refusal that the daemon made itself, as its word.
    fn note(&self, note: Note) {
        self.record_coalesced(Coalesced::Notes, records::noted(note));
    }

    fn record_coalesced(&self, kind: Coalesced, record: Record) {
        match self.shared.admit(kind, now() / 60) {
            Ok(None) => {}
            Ok(Some(count)) => {
                let count = (count > 1).then_some(count);
                if let Err(error) = self.audit.append(&Record { count, ..record }) {
                    log::error(error);
                }
            }
            Err(error) => log::error(format_args!("the shared table: {error}")),
        }
    }

    fn run(&self, request: &Run) {
        let begun = Instant::now();
        let id = format!("{:x}-{}", millis(), Pid::this());
        let mut record = records::requested(request);
        let (refusal, busy) = match self.admit(request, &id, &mut record) {
            Ok(Some(launch)) => return launch.see_through(self, id, begun, record),
            Ok(None) => {
                let detail = "as many runs of this action are in progress as may be, or in total".to_owned();
                (Refusal { code: RefusalCode::Internal, detail }, true)
            }
            Err(refusal) => (refusal, false),
        };
        let receipt = self.refused(&refusal, busy, record);
        self.send(&if busy {
            Event::Busy
        } else {
            Event::Refused { code: refusal.code, detail: records::short(&refusal.detail), receipt }
        });
    }

    /// All that may refuse a call, a person among them. `None`: no slot.
    fn admit<'s>(
        &'s self,
        request: &Run,
        id: &str,
        record: &mut Record,
    ) -> Result<Option<Launch<'s>>, Refusal> {
        let (launch, caller) = self.prepare(request, record)?;
        self.count_call(&caller)?;
        if launch.action().approval == Approval::None {
            return Ok(self.claim(Purpose::Run, &launch, &caller)?.then_some(launch));
        }
        if !self.claim(Purpose::Wait, &launch, &caller)? {
            return Ok(None);
        }
        record.run = Some(id.to_owned());
        approval::wait(self, id, &launch, request, record)?;
        self.shared.free(Pid::this(), &[Purpose::Wait]).map_err(internal)?;
        // Minutes have passed: programs, paths, tokens and hours are looked at again.
        drop(launch);
        let (launch, caller) = self.prepare(request, record)?;
        Ok(self.claim(Purpose::Run, &launch, &caller)?.then_some(launch))
    }

    /// Decides by the rules, and makes everything ready.
    fn prepare<'s>(&'s self, request: &Run, record: &mut Record) -> Result<(Launch<'s>, Counted), Refusal> {
        decide::same_version(request)?;
        let tokens = tokens::load(&self.options.paths.tokens, self.options.same_user)
            .map_err(|error| Refusal { code: RefusalCode::Scope, detail: error.to_string() })?;
        let (known, scope) = decide::caller(request, &tokens)?;
        records::name_caller(record, &known);
        let in_force = self.in_force.ok_or_else(|| Refusal {
            code: RefusalCode::NoCatalog,
            detail: self.reason.unwrap_or("no catalogue is in force").to_owned(),
        })?;
        record.catalog = Some(gloveport_contract::catalog::hex(&in_force.digest));
        if let Some(action) = in_force.actions.get(&request.action) {
            records::name_arguments(record, action, &request.args);
        }
        let decided = decide::decide(request, scope, in_force, now())?;
        records::name_plan(record, &decided);
        let preparing = Preparing { host: self.host, in_force, same_user: self.options.same_user };
        let launch = Launch::prepare(self, preparing, decided, request)?;
        Ok((launch, Counted { key: known.key(), per_minute: scope.per_minute, at_once: scope.at_once }))
    }

    fn count_call(&self, caller: &Counted) -> Result<(), Refusal> {
        let Some(most) = caller.per_minute else {
            return Ok(());
        };
        match self.shared.count_call(&caller.key, most, ticks()).map_err(internal)? {
            None => Ok(()),
            Some(wait) => Err(out_of_scope(&ScopeRefusal::PerMinute(most, wait.as_secs() + 1))),
        }
    }

    /// Takes a slot; `false`: there is none.
    fn claim(&self, purpose: Purpose, launch: &Launch<'_>, caller: &Counted) -> Result<bool, Refusal> {
        let action = launch.action();
        let claim = Claim {
            pid: Pid::this(),
            action: &action.name,
            concurrency: action.concurrency(),
            caller: &caller.key,
            at_once: caller.at_once,
        };
        match self.shared.claim(purpose, claim).map_err(internal)? {
            Claimed::Yes => Ok(true),
            Claimed::Busy => Ok(false),
            Claimed::AtOnce => Err(out_of_scope(&ScopeRefusal::AtOnce(caller.at_once.unwrap_or_default()))),
        }
    }

    /// Whether the catalogue that this call was decided under is still in force. A person's yes is void
    /// without it.
    fn same_catalog(&self) -> Result<(), Refusal> {
        if self.shared.generation().map_err(internal)? == self.generation {
            return Ok(());
        }
        let detail = "another catalogue has come into force since this was asked for: call again";
        Err(Refusal { code: RefusalCode::Approval, detail: detail.to_owned() })
    }

    /// Waits, at most so long, for a descriptor of the caller's own, the connection while anybody is there, or
    /// the parent.
    fn pause(&self, own: Option<BorrowedFd<'_>>, is_alone: bool, most: Duration) -> Woken {
        // Rounded up, so that a wait does not end just before its time and is repeated at once.
        let most = most + Duration::from_micros(999);
        let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
        // The end of the parent is looked for in place of what there is not.
        let own = own.unwrap_or(self.life.as_fd());
        let peer = if is_alone { self.life.as_fd() } else { self.connection.as_fd() };
        let mut waited_for = [own, peer, self.life.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        if poll(&mut waited_for, timeout).is_err() {
            return Woken::default();
        }
        let [by_own, connection, life] = waited_for.map(|fd| fd.any().unwrap_or(false));
        let connection = connection && !is_alone;
        let second = if connection { wire::second(&self.connection) } else { None };
        let over = second.is_some() || life;
        let closed = connection && second.is_none();
        Woken { by_own, closed, over, ended_by: second.and_then(|packet| self.ended_by(&packet)) }
    }

    /// Who ends the run. Any other packet that follows a request ends it too, and is recorded.
    fn ended_by(&self, packet: &[u8]) -> Option<String> {
        match Request::decode(packet) {
            Ok(Request::End { by }) => Some(by),
            _ => {
                self.malformed("a second request came on one connection");
                None
            }
        }
    }

    /// Records a refusal.
    fn refused(&self, refusal: &Refusal, busy: bool, record: Record) -> Option<Receipt> {
        match self.audit.append(&records::refused(refusal, busy, record)) {
            Ok(receipt) => Some(receipt),
            Err(error) => {
                log::error(error);
                None
            }
        }
    }
}

fn out_of_scope(rule: &ScopeRefusal) -> Refusal {
    Refusal { code: RefusalCode::Scope, detail: rule.to_string() }
}

fn internal(error: std::io::Error) -> Refusal {
    Refusal { code: RefusalCode::Internal, detail: error.to_string() }
}

/// Milliseconds of the clock that all processes share and nobody sets.
fn ticks() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds since 1970-01-01 UTC.
fn now() -> u64 {
    millis() / 1000
}

fn millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
