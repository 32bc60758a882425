#![forbid(unsafe_code)]
//! From a call to its report: planned, sent to the helper, its output read, redacted and filtered.

mod budget;
mod collect;
mod drive;
mod escapes;
mod filter;
pub mod live;
mod notes;
mod outcome;
mod present;
mod redact;
pub mod report;

use crate::helper::Peer;
use crate::metrics::Metrics;
use crate::paths::Paths;
use crate::policy::{Policy, Snapshot};
use collect::Treatment;
use drive::Job;
use filter::FilterPlan;
use gloveport_contract::catalog::Action;
use gloveport_contract::packet::{self, Content, Note, RefusalCode, Request, VERSION};
use gloveport_contract::plan::{self, Refusal, StepKind};
use live::Live;
use notes::Notes;
use redact::Redaction;
use report::{Call, Failure, Progress, Report};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Connections to the helper that wait for its first answer. It takes up to 32 runs at once; more in its
/// backlog would only make each of them wait.
const CONNECTING: usize = 32;
/// The rule of a note where nobody was recognised.
const NOBODY: &str = "token";

/// Runs actions. Cheap to clone.
#[derive(Clone)]
pub struct Runner(Arc<Inner>);

struct Inner {
    policy: Policy,
    socket: PathBuf,
    peer: Peer,
    connecting: Arc<Semaphore>,
    notes: Notes,
    metrics: Metrics,
}

impl Runner {
    /// A runner that asks the helper of these paths.
    pub fn new(paths: &Paths, peer: Peer, policy: Policy) -> Self {
        let socket = paths.helper_socket.clone();
        let notes = Notes::new(paths.clone(), peer);
        let connecting = Arc::new(Semaphore::new(CONNECTING));
        Self(Arc::new(Inner { policy, socket, peer, connecting, notes, metrics: Metrics::default() }))
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Runs one action. Dropping the future closes the connection to the helper: that ends the run, unless the
    /// action says `on_disconnect: finish`; then its output is lost.
    ///
    /// # Errors
    /// Why there is no report.
    pub async fn run(
        &self,
        call: Call,
        live: Arc<Live>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<Report, Failure> {
        let started = Instant::now();
        let present = self.0.metrics.run();
        let result = match self.attempt(&call, &live, &progress).await {
            Err(Failure::Refused { code: RefusalCode::Stale, .. }) => match self.0.policy.refresh().await {
                Ok(()) => self.attempt(&call, &live, &progress).await,
                Err(error) => Err(Failure::Helper(error.to_string())),
            },
            result => result,
        };
        drop(present);
        // Names that are no actions would be a way to fill the memory.
        let unknown = [RefusalCode::UnknownAction, RefusalCode::NoCatalog];
        if !matches!(&result, Err(Failure::Refused { code, .. }) if unknown.contains(code)) {
            self.0.metrics.ended(&call.action, &result, started.elapsed());
        }
        result
    }

    /// Has a refusal recorded that the helper never saw. Never waits; more than the helper should be
    /// bothered with are counted and left out.
    pub fn note(&self, note: Note) {
        if note.rule == NOBODY {
            return self.note_stranger(note);
        }
        self.0.metrics.refused(&note.rule);
        self.0.notes.send(note);
    }

    /// The same for somebody without a valid token: those have a room of their own, and cannot use up that
    /// of valid callers.
    pub fn note_stranger(&self, note: Note) {
        self.0.metrics.refused(&note.rule);
        self.0.notes.send_stranger(note);
    }

    async fn attempt(
        &self,
        call: &Call,
        live: &Arc<Live>,
        progress: &mpsc::Sender<Progress>,
    ) -> Result<Report, Failure> {
        let snapshot = self.0.policy.snapshot();
        let job = self.prepare(call, &snapshot, live)?;
        drop(snapshot);
        let (socket, peer) = (self.0.socket.clone(), self.0.peer);
        let (slots, progress) = (self.0.connecting.clone(), progress.clone());
        // A task of its own, which dies with us.
        let mut task = JoinSet::new();
        task.spawn(async move { job.run(&socket, peer, slots, progress).await });
        let gone = || Failure::Helper("the run was interrupted: the daemon is stopping".into());
        task.join_next().await.and_then(Result::ok).unwrap_or_else(|| Err(gone()))
    }

    /// Checks the call as the helper will, and renders what it will compare.
    fn prepare(&self, call: &Call, snapshot: &Snapshot, live: &Arc<Live>) -> Result<Job, Failure> {
        let catalog = snapshot.catalog.as_ref().map_err(|reason| refused(RefusalCode::NoCatalog, reason))?;
        let action = catalog
            .action(&call.action)
            .ok_or_else(|| refused(RefusalCode::UnknownAction, format!("unknown action {}", call.action)))?;
        let filter =
            FilterPlan::new(action, &call.filters).map_err(|problem| self.refuse(call, "filter", problem))?;
        let content = call
            .content
            .as_deref()
            .map(|bytes| Content { length: bytes.len() as u64, sha256: hmac_sha256::Hash::hash(bytes) });
        let plan = plan::plan(action, &call.args, content.as_ref()).map_err(|refusal| match refusal {
            Refusal::Argument { .. } => refused(RefusalCode::Argument, refusal.to_string()),
            Refusal::Command(_) => refused(RefusalCode::Command, refusal.to_string()),
        })?;
        let document = plan.steps.iter().any(|step| matches!(step.kind, StepKind::Handler(_)));
        let treatment = self.treatment(call, action, filter, document)?;
        let request = Request::Run(Box::new(packet::Run {
            version: VERSION,
            digest: snapshot.digest.unwrap_or_default(),
            token: call.token.clone(),
            caller: call.caller.clone(),
            action: call.action.clone(),
            args: call.args.clone(),
            argv: plan.steps.iter().map(|step| step.argv.clone()).collect(),
            content,
        }));
        // Before anything is sent, so that the caller learns what is too large.
        request.encode().map_err(|error| {
            let problem = format!("{error}: shorten the arguments, or pass them as content");
            self.refuse(call, "size", problem)
        })?;
        Ok(Job {
            request,
            action: call.action.clone(),
            steps: plan.steps.iter().map(|step| step.name.to_owned()).collect(),
            content: call.content.as_deref().map(Arc::from),
            timeout: plan.timeout,
            treatment,
            live: live.clone(),
        })
    }

    fn treatment(
        &self,
        call: &Call,
        action: &Action,
        filter: FilterPlan,
        document: bool,
    ) -> Result<Treatment, Failure> {
        let secret = |name: &str| action.params.get(name).is_some_and(|param| param.secret);
        let literals = call.args.iter().filter(|arg| secret(&arg.name)).filter_map(|arg| match &arg.value {
            packet::Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        });
        let redaction = Redaction::new(&action.redact, literals)
            .map_err(|problem| self.refuse(call, "redact", format!("{}: {problem}", action.name)))?;
        Ok(Treatment {
            redaction,
            filter,
            escapes: action.output.escapes,
            limit: usize::try_from(action.max_output()).unwrap_or(usize::MAX),
            max_scan: action.max_scan(),
            document,
        })
    }

    /// A call that is not sent: recorded by its rule, without the values of the caller.
    fn refuse(&self, call: &Call, rule: &str, problem: String) -> Failure {
        self.note(Note {
            caller: call.caller.clone(),
            action: call.action.clone(),
            rule: rule.to_owned(),
            detail: format!("refused by the rule {rule}"),
        });
        Failure::Invalid(problem)
    }
}

fn refused(code: RefusalCode, detail: impl Into<String>) -> Failure {
    Failure::Refused { code, detail: detail.into(), receipt: None }
}

#[cfg(test)]
mod tests;
