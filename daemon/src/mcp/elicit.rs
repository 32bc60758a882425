#![forbid(unsafe_code)]
//! Telling a client's user what a person at the host is asked, where the client can show it. The user can
//! withdraw the call, and that is all: an approval is given at the host, and no answer of a client is one.

use super::envelope::{Answer, Members};
use gloveport_contract::catalog::Action;
use gloveport_contract::plan::Plan;
use gloveport_contract::units::Millis;
use serde_json::{Value, json};

/// The name of the one question, in both eras.
const QUESTION: &str = "approval";
/// Longest argv that is shown, characters: a dialog is no pager, and root is shown the whole.
const SHOWN: usize = 600;

/// Whether a client can show a form, by its capabilities. Before there was a choice, an empty object said so.
pub fn is_declared(capabilities: Option<&Value>) -> bool {
    let modes = capabilities.and_then(|all| all.get("elicitation")).and_then(Value::as_object);
    modes.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

/// What a person at the host is asked.
pub fn question(action: &Action, plan: &Plan<'_>) -> String {
    let words = |argv: &Vec<Vec<u8>>| {
        let words: Vec<String> =
            argv.iter().map(|word| format!("{:?}", String::from_utf8_lossy(word))).collect();
        let line = words.join(" ");
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}… ({} bytes)", line.get(..end).unwrap_or_default(), line.len()),
            None => line,
        }
    };
    let lines: Vec<String> = plan.steps.iter().map(|step| format!("\n  {}", words(&step.argv))).collect();
    let time = u64::try_from(action.approval_timeout().as_millis()).unwrap_or(u64::MAX);
    format!(
        "{} (risk: {}) must be approved by a person at the host, with `gloveport approve`, within {}. It would \
         run as {} in {}:{}\nAn answer here approves nothing; declining withdraws the call.",
        action.name,
        action.risk.as_str(),
        Millis(time),
        action.run_as(),
        plan.cwd.path,
        lines.concat()
    )
}

/// A form without a field: there is nothing to fill in.
fn form(message: &str) -> Members {
    let schema = json!({"type": "object", "properties": {}});
    Members::from_iter([("message".to_owned(), json!(message)), ("requestedSchema".to_owned(), schema)])
}

/// The members of a modern result that asks before anything is sent to the helper.
pub fn input_required(message: &str) -> Members {
    let mut params = form(message);
    params.insert("mode".to_owned(), json!("form"));
    let request = json!({"method": "elicitation/create", "params": params});
    Members::from_iter([
        ("resultType".to_owned(), json!("input_required")),
        ("inputRequests".to_owned(), json!({QUESTION: request})),
    ])
}

/// Whether a modern client's user goes on; `None` where the user was not asked yet.
pub fn goes_on(responses: Option<&Members>) -> Option<bool> {
    let answer = responses?.get(QUESTION)?;
    Some(answer.get("action").and_then(Value::as_str) == Some("accept"))
}

/// The request that tells a client of the `initialize` revisions while its call waits.
pub fn request(run: &str, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id(run), "method": "elicitation/create", "params": form(message)})
}

/// The notification that the question needs no answer any more.
pub fn settled(run: &str) -> Value {
    let params = json!({"requestId": id(run), "reason": "it was decided at the host"});
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
}

fn id(run: &str) -> String {
    format!("{QUESTION}-{run}")
}

/// The run that a client's user withdraws by this answer. A dialog that was only closed says nothing.
pub fn withdrawn(answer: &Answer) -> Option<&str> {
    let action = answer.result.as_ref()?.get("action")?.as_str()?;
    let run = answer.id.as_str()?.strip_prefix(QUESTION)?.strip_prefix('-')?;
    (action == "decline").then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_what_must_be_declared() {
        for (capabilities, expected) in [
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
            (json!({"elicitation": true}), false),
            (json!({}), false),
        ] {
            assert_eq!(is_declared(Some(&capabilities)), expected, "{capabilities}");
        }
        assert!(!is_declared(None));
    }

    #[test]
    fn only_a_plain_no_withdraws_a_call_that_waits() {
        let answer =
            |id: &str, action: &str| Answer { id: json!(id), result: Some(json!({"action": action})) };
        assert_eq!(withdrawn(&answer("approval-1a-2", "decline")), Some("1a-2"));
        for (id, action) in [("approval-1a-2", "accept"), ("approval-1a-2", "cancel"), ("1a-2", "decline")] {
            assert_eq!(withdrawn(&answer(id, action)), None, "{id} {action}");
        }
        assert_eq!(withdrawn(&Answer { id: json!("approval-1a-2"), result: None }), None);
    }

    #[test]
    fn before_a_call_is_sent_anything_but_accept_withdraws_it() {
        let with = |value: Value| goes_on(value.as_object());
        assert_eq!(with(json!({"approval": {"action": "accept", "content": {}}})), Some(true));
        assert_eq!(with(json!({"approval": {"action": "cancel"}})), Some(false));
        assert_eq!(with(json!({"approval": 1})), Some(false));
        assert_eq!(with(json!({"other": {"action": "accept"}})), None);
        assert_eq!(goes_on(None), None);
    }
}
