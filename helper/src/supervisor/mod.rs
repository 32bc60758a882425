#![forbid(unsafe_code)]
//! One connection, one process: receives the only request, answers it, and where it is a run sees it through
//! to its end. Whatever goes wrong here ends here.

mod confine;
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
use gloveport_contract::packet::{Event, Note, Receipt, RefusalCode, Request, Run};
use gloveport_contract::token::ScopeRefusal;
use launch::Launch;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use prepare::Preparing;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
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
        let mut record = records::requested(request);
        let (refusal, busy) = match self.launch(request, &mut record) {
            Ok(Some(launch)) => {
                let id = format!("{:x}-{}", millis(), Pid::this());
                return launch.see_through(self, id, begun, record);
            }
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

    /// All that may refuse a call. `None`: no slot.
    fn launch<'s>(&'s self, request: &Run, record: &mut Record) -> Result<Option<Launch<'s>>, Refusal> {
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
        if let Some(action) = in_force.catalog.action(&request.action) {
            records::name_arguments(record, action, &request.args);
        }
        let decided = decide::decide(request, scope, in_force, now())?;
        records::name_plan(record, &decided);
        if let Some(most) = scope.per_minute {
            let counted = self.shared.count_call(&known.key(), most, ticks()).map_err(internal)?;
            if let Some(wait) = counted {
                let rule = ScopeRefusal::PerMinute(most, wait.as_secs() + 1);
                return Err(Refusal { code: RefusalCode::Scope, detail: rule.to_string() });
            }
        }
        let preparing = Preparing { host: self.host, in_force, same_user: self.options.same_user };
        let launch = Launch::prepare(self, preparing, decided, request)?;
        let action = launch.action();
        let claim = Claim {
            pid: Pid::this(),
            action: &action.name,
            concurrency: action.concurrency(),
            caller: &known.key(),
            at_once: scope.at_once,
        };
        match self.shared.claim(Purpose::Run, claim).map_err(internal)? {
            Claimed::Yes => Ok(Some(launch)),
            Claimed::Busy => Ok(None),
            Claimed::AtOnce => {
                let rule = ScopeRefusal::AtOnce(claim.at_once.unwrap_or_default());
                Err(Refusal { code: RefusalCode::Scope, detail: rule.to_string() })
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
