#![forbid(unsafe_code)]
//! What goes into the audit chain about one request. A token never does, and a secret parameter cannot: the
//! catalogue's check keeps it out of every argv.

use super::Refusal;
use super::decide::{Decided, Known};
use crate::audit::{self, CallerProof, Decision, Kind, Record};
use gloveport_contract::catalog::{Action, Risk};
use gloveport_contract::limits;
use gloveport_contract::packet::{Argument, Caller, Note, Run, Value};

/// What is known of a call before anything is decided.
pub fn requested(run: &Run) -> Record {
    Record {
        action: Some(run.action.clone()),
        content: run.content.as_ref().map(Into::into),
        ..caller(&run.caller, Record::new(Kind::Refused))
    }
}

fn caller(caller: &Caller, record: Record) -> Record {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Record {
        caller_proof: Some(CallerProof::DaemonSays),
        uid: caller.uid,
        via: given(&caller.via),
        peer: given(&caller.peer),
        client: given(&caller.client),
        request: given(&caller.request),
        ..record
    }
}

/// Adds who calls.
pub fn name_caller(record: &mut Record, known: &Known) {
    record.caller = Some(known.name.clone());
    record.token_id.clone_from(&known.token_id);
    record.caller_proof = Some(known.proof);
}

/// Adds the arguments as given.
pub fn name_arguments(record: &mut Record, action: &Action, arguments: &[Argument]) {
    let shown = |argument: &Argument| {
        let secret = action.params.get(&argument.name).is_some_and(|param| param.secret);
        let value = if secret { "[secret]".to_owned() } else { shown(&argument.value) };
        format!("{}={value}", argument.name)
    };
    record.args = arguments.iter().map(shown).collect();
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Text(bytes) => audit::text(bytes),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(&item.clone().into())).collect();
            format!("[{}]", items.join(", "))
        }
    }
}

/// Adds what would run.
pub fn name_plan(record: &mut Record, decided: &Decided<'_>) {
    record.risk = Some(decided.action.risk);
    // What changes the host is on disk before it starts.
    record.durable = decided.action.risk > Risk::Read;
    record.run_as = Some(decided.action.run_as().to_owned());
    let texts = |argv: &Vec<Vec<u8>>| argv.iter().map(|argument| audit::text(argument)).collect();
    record.argv = decided.plan.steps.iter().map(|step| texts(&step.argv)).collect();
}

/// A refusal.
pub fn refused(refusal: &Refusal, busy: bool, record: Record) -> Record {
    Record {
        kind: Kind::Refused,
        decision: Some(Decision::Refuse),
        rule: Some(if busy { "busy" } else { audit::rule(refusal.code) }.to_owned()),
        reason: Some(refusal.detail.clone()),
        durable: false,
        ..record
    }
}

/// A refusal that the daemon reports.
pub fn noted(note: Note) -> Record {
    Record {
        action: (!note.action.is_empty()).then_some(note.action),
        decision: Some(Decision::Refuse),
        rule: Some(note.rule),
        reason: Some(note.detail),
        ..caller(&note.caller, Record::new(Kind::Noted))
    }
}

/// A text cut to what a packet's detail may have.
pub fn short(text: &str) -> String {
    let mut text = text.to_owned();
    while text.len() > limits::DETAIL {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gloveport_contract::packet::Scalar;

    #[test]
    fn a_secret_argument_leaves_its_name_and_nothing_else() {
        let action: Action = serde_json::from_str(
            r#"{"name": "a", "description": "d", "risk": "read", "exec": ["/bin/true"],
                "params": {"key": {"type": "string", "secret": true}, "list": {"type": "list",
                           "items": {"type": "integer"}}}}"#,
        )
        .unwrap();
        let argument = |name: &str, value| Argument { name: name.into(), value };
        let list = Value::List(vec![Scalar::Integer(1), Scalar::Text(b"\xff".to_vec())]);
        let mut record = Record::new(Kind::Refused);
        name_arguments(&mut record, &action, &[argument("key", "hunter2".into()), argument("list", list)]);
        assert_eq!(record.args, ["key=[secret]", r"list=[1, \xff]"]);
    }

    #[test]
    fn a_reason_fits_its_packet() {
        assert!(short(&"ä".repeat(limits::DETAIL)).len() <= limits::DETAIL);
        assert_eq!(short("why"), "why");
    }
}
