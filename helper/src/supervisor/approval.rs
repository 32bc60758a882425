#![forbid(unsafe_code)]
//! Holding a call until a person has decided. The daemon can neither decide nor change what was decided about:
//! the decision names the digest of exactly what will run, once, under this catalogue.

use super::given::input;
use super::launch::Launch;
use super::{Refusal, Supervisor};
use crate::audit::{self, Kind, Record};
use crate::pending;
use gloveport_contract::approval::{Answer, Content, Decision, Pending};
use gloveport_contract::catalog::hex;
use gloveport_contract::packet::{Event, RefusalCode, Run};
use gloveport_contract::plan::StepKind;
use hmac_sha256::Hash;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a decision is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Waits for a person to decide about a call.
///
/// # Errors
/// The answer was no, there was none in time, or the call is void.
pub fn wait(
    supervisor: &Supervisor<'_>,
    id: &str,
    launch: &Launch<'_>,
    request: &Run,
    record: &Record,
) -> Result<(), Refusal> {
    let directory = &supervisor.options.paths.pending;
    let waiting = describe(id, launch, request, record);
    pending::show(directory, &waiting)
        .map_err(|error| refused(RefusalCode::Internal, format!("{}: {error}", directory.display())))?;
    let result = held(supervisor, directory, &waiting, record);
    pending::forget(directory, id);
    result
}

fn held(
    supervisor: &Supervisor<'_>,
    directory: &Path,
    waiting: &Pending,
    record: &Record,
) -> Result<(), Refusal> {
    note(supervisor, Record { kind: Kind::AwaitingApproval, ..record.clone() })?;
    supervisor.send(&Event::AwaitingApproval { id: waiting.id.clone(), timeout_ms: waiting.timeout_ms });
    let end = Instant::now() + Duration::from_millis(waiting.timeout_ms);
    loop {
        supervisor.same_catalog()?;
        let decision = pending::decision(directory, &waiting.id)
            .map_err(|problem| refused(RefusalCode::Approval, problem))?;
        if let Some(decision) = decision {
            return decided(supervisor, waiting, decision, record);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let detail = "nobody has decided in time: ask again when somebody is there to approve it";
            return Err(refused(RefusalCode::Approval, detail.into()));
        }
        let woken = supervisor.pause(None, false, left.min(LOOK));
        if let Some(by) = woken.ended_by {
            return Err(refused(RefusalCode::Approval, format!("{by} ended the call while it waited")));
        }
        if woken.closed || woken.over {
            return Err(refused(RefusalCode::Approval, "the call was given up while it waited".into()));
        }
    }
}

/// Records a decision and follows it, where it is about this call.
fn decided(
    supervisor: &Supervisor<'_>,
    waiting: &Pending,
    decision: Decision,
    record: &Record,
) -> Result<(), Refusal> {
    if decision.digest != waiting.digest {
        let detail = "the decision names the digest of something else: look at it again, and call again";
        return Err(refused(RefusalCode::Approval, detail.into()));
    }
    let is_yes = decision.answer == Answer::Approve;
    let record = Record {
        kind: Kind::Decided,
        decision: Some(if is_yes { audit::Decision::Allow } else { audit::Decision::Refuse }),
        decided_by: Some(decision.by),
        reason: (!decision.reason.is_empty()).then(|| decision.reason.clone()),
        durable: true,
        ..record.clone()
    };
    note(supervisor, record)?;
    match (is_yes, decision.reason.as_str()) {
        (true, _) => Ok(()),
        (false, "") => Err(refused(RefusalCode::Approval, "a person said no".into())),
        (false, reason) => Err(refused(RefusalCode::Approval, format!("a person said no: {reason}"))),
    }
}

fn note(supervisor: &Supervisor<'_>, record: Record) -> Result<(), Refusal> {
    supervisor.audit.append(&record).map(drop).map_err(|error| refused(RefusalCode::Audit, error.to_string()))
}

fn refused(code: RefusalCode, detail: String) -> Refusal {
    Refusal { code, detail }
}

/// What a person sees.
fn describe(id: &str, launch: &Launch<'_>, request: &Run, record: &Record) -> Pending {
    let action = launch.action();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let scripts = launch.plan().steps.iter().filter_map(|step| match step.kind {
        StepKind::Script { body, .. } => Some((step.name.to_owned(), hex(&Hash::hash(body.as_bytes())))),
        _ => None,
    });
    Pending {
        id: id.to_owned(),
        since: audit::now(),
        timeout_ms: u64::try_from(action.approval_timeout().as_millis()).unwrap_or(u64::MAX),
        action: action.name.clone(),
        risk: action.risk,
        caller: text(&record.caller),
        caller_proof: record.caller_proof.map_or("", audit::CallerProof::as_str).to_owned(),
        peer: text(&record.peer),
        client: text(&record.client),
        run_as: action.run_as().to_owned(),
        cwd: launch.plan().cwd.path.clone(),
        args: record.args.clone(),
        argv: record.argv.clone(),
        content: request
            .content
            .map(|content| Content { length: content.length, sha256: hex(&content.sha256) }),
        scripts: scripts.collect(),
        catalog: hex(&request.digest),
        digest: hex(&digest(id, launch, request)),
    }
}

/// The digest of exactly what would run. Every part goes in with its length, so that no two calls make the
/// same bytes; the id makes it good for one call only.
fn digest(id: &str, launch: &Launch<'_>, request: &Run) -> [u8; 32] {
    let mut hash = Hash::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let (action, plan) = (launch.action(), launch.plan());
    for text in ["gloveport approval 1", id, &action.name, action.run_as(), &plan.cwd.path] {
        part(text.as_bytes());
    }
    part(&request.digest);
    part(input(action, request).to_string().as_bytes());
    part(&request.content.map_or(0, |content| content.length).to_le_bytes());
    part(&request.content.map_or([0; 32], |content| content.sha256));
    for step in &plan.steps {
        part(step.name.as_bytes());
        part(&(step.argv.len() as u64).to_le_bytes());
        step.argv.iter().for_each(|argument| part(argument));
        if let StepKind::Script { body, .. } = step.kind {
            part(body.as_bytes());
        }
    }
    hash.finalize()
}
