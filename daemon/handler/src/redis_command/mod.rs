#![forbid(unsafe_code)]
//! `redis_command`: one reading command of a short list, over a connection of its own.

mod command;
mod resp;

use crate::answer::{Answer, text_or_base64};
use crate::call::Call;
use crate::credential::Credential;
use crate::failure::{Failure, refuse};
use crate::net::{self, Stream};
use resp::{Broken, Reply};
use serde_json::{Value, json};
use std::io::BufReader;
use std::time::Duration;

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an answer to a command of our own.
const SHORT: usize = 4096;

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let words = call.texts("command")?;
    let name = command::check(&words, &call.config)?;
    let server = call.config.server.as_deref().unwrap_or_default();
    let credential = Credential::receive(call)?;

    let mut stream = net::connect(server, PATIENCE)?;
    if credential.ca.is_some() {
        stream = net::tls::upgrade(stream, net::host_of(server), &credential)?;
    }
    let mut redis = BufReader::new(stream);
    if let Some(password) = &credential.password {
        let mut login = vec!["AUTH"];
        login.extend(credential.user.as_deref());
        login.push(password);
        own(&mut redis, &login, "the login")?;
    }
    if let Some(db) = call.config.db {
        own(&mut redis, &["SELECT", &db.to_string()], "choosing the database")?;
    }
    let reply = ask(&mut redis, &words, call.budget()).map_err(|broken| broken.of(name))?;
    Ok(Answer::new(json!({ "command": name, "value": value(reply)? })))
}

fn ask(redis: &mut BufReader<Box<dyn Stream>>, words: &[&str], most: usize) -> Result<Reply, Broken> {
    resp::send(redis.get_mut(), words)?;
    let mut budget = most;
    resp::receive(redis, &mut budget)
}

/// A command of our own, of which only success matters. What the server says of it holds no secret: it
/// never repeats a password.
fn own(redis: &mut BufReader<Box<dyn Stream>>, words: &[&str], what: &str) -> Result<(), Failure> {
    match ask(redis, words, SHORT).map_err(|broken| broken.of(what))? {
        Reply::Error(text) => refuse(format!("{what} was refused by the server: {text}")),
        _ => Ok(()),
    }
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
