#![forbid(unsafe_code)]
//! `redis_command`: one reading command of a short list, over a connection of its own.

pub mod account;
mod command;
mod connection;
mod resp;

use crate::answer::{Answer, text_or_base64};
use crate::call::Call;
use crate::credential::Credential;
use crate::failure::{Failure, refuse};
use resp::Reply;
use serde_json::{Value, json};

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let words = call.texts("command")?;
    let name = command::check(&words, &call.config)?;
    let mut redis = connection::open(&call.config, &Credential::receive(call)?)?;
    let reply = connection::ask(&mut redis, &words, call.budget()).map_err(|broken| broken.of(name))?;
    Ok(Answer::new(json!({ "command": name, "value": value(reply)? })))
}

fn value(reply: Reply) -> Result<Value, Failure> {
    Ok(match reply {
        Reply::Error(text) => return refuse(explained(&text)),
        Reply::Status(text) => text.into(),
        Reply::Integer(number) => number.into(),
        Reply::Nothing => Value::Null,
        Reply::Bytes(bytes) => text_or_base64(&bytes),
        Reply::List(replies) => Value::Array(replies.into_iter().map(value).collect::<Result<_, _>>()?),
    })
}

/// An error of the server, with the way out where there is one.
fn explained(text: &str) -> String {
    let mut words = text.split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some(kind @ ("MOVED" | "ASK")), Some(slot), Some(place)) => format!(
            "{kind}: slot {slot} of this cluster is at {place}, and redirects are not followed: an action with that server reaches it"
        ),
        (Some("NOAUTH"), ..) => format!("{text} (the action names no credential, or one without a password)"),
        (Some("NOPERM"), ..) => format!("{text} (the account's ACL does not allow this command or key)"),
        _ => format!("the server answered: {text}"),
    }
}
