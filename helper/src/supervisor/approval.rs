#![forbid(unsafe_code)]
//! Holding a call until a person has decided. The daemon can neither decide nor change what was decided about:
//! the decision names the digest of exactly what will run, once, under this catalogue.

use super::given::input;
use super::launch::Launch;
use super::{Refusal, Supervisor};
use crate::audit::{self, Kind, Record};
use crate::pending;
use gloveport_contract::approval::{Answer, Content, Decision, Pending};
use gloveport_contract::catalog::{Action, hex};
use gloveport_contract::packet::{Event, RefusalCode, Run};
use gloveport_contract::plan::{Plan, StepKind};
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
        digest: hex(&digest(id, action, launch.plan(), request)),
    }
}

/// The digest of exactly what would run. Every part goes in with its length, so that no two calls make the
/// same bytes; the id makes it good for one call only.
fn digest(id: &str, action: &Action, plan: &Plan<'_>, request: &Run) -> [u8; 32] {
    let mut hash = Hash::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use gloveport_contract::packet::{self, Argument, Caller, VERSION};
    use gloveport_contract::plan;
    use serde_json::{Value, json};

    const SCRIPT: &str = "echo one";

    /// A call of this action: what its digest is.
    fn of(id: &str, catalog: u8, action: &Value, word: &str, content: packet::Content) -> [u8; 32] {
        let action: Action = serde_json::from_value(action.clone()).unwrap();
        let args = vec![Argument { name: "word".into(), value: word.into() }];
        let plan = plan::plan(&action, &args, Some(&content)).unwrap();
        let request = Run {
            version: VERSION,
            digest: [catalog; 32],
            token: None,
            caller: Caller::default(),
            action: action.name.clone(),
            args,
            argv: Vec::new(),
            content: Some(content),
        };
        digest(id, &action, &plan, &request)
    }

    fn action() -> Value {
        json!({
            "name": "a", "description": "d", "risk": "write", "run_as": "root", "cwd": "/srv",
            "params": {"word": {"type": "string"}, "text": {"type": "content", "max_length": 10}},
            "script": {"file": "s", "interpreter": "/bin/sh", "args": ["{word}", "fixed"], "body": SCRIPT},
        })
    }

    #[test]
    fn each_part_of_a_call_is_in_its_digest() {
        let content = |length, sha256| packet::Content { length, sha256: [sha256; 32] };
        let plain = of("1", 1, &action(), "x", content(3, 1));
        assert_eq!(of("1", 1, &action(), "x", content(3, 1)), plain, "the same is the same");
        let with = |pointer: &str, value: Value| {
            let mut action = action();
            *action.pointer_mut(pointer).unwrap() = value;
            of("1", 1, &action, "x", content(3, 1))
        };
        for (part, other) in [
            ("the call", of("2", 1, &action(), "x", content(3, 1))),
            ("the catalogue", of("1", 2, &action(), "x", content(3, 1))),
            ("an argument, and with it an argv", of("1", 1, &action(), "y", content(3, 1))),
            ("the content's length", of("1", 1, &action(), "x", content(4, 1))),
            ("the content", of("1", 1, &action(), "x", content(3, 2))),
            ("the action", with("/name", json!("b"))),
            ("the account", with("/run_as", json!("daemon"))),
            ("the directory", with("/cwd", json!("/"))),
            ("the script", with("/script/body", json!("echo two"))),
            ("the interpreter", with("/script/interpreter", json!("/bin/bash"))),
            ("the script's arguments", with("/script/args", json!(["{word}", "other"]))),
            ("where an argument ends", with("/script/args", json!(["{word}", "fix", "ed"]))),
        ] {
            assert_ne!(other, plain, "{part} is not in the digest");
        }
    }
}
