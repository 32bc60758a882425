#![forbid(unsafe_code)]
//! What an account may do beside the commands of its action. A server looks at an account's rights before
//! anything else, so a command that changes nothing tells whether its kind is permitted.

use super::command::is_listed;
use super::connection::{self, Redis};
use super::resp::Reply;
use crate::check::Finding;
use crate::credential::Credential;
use crate::failure::Failure;
use gloveport_contract::catalog::{BuiltinConfig, REDIS_COMMANDS};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most bytes of an answer to a probe.
const SHORT: usize = 64 * 1024;
/// Stands for a key that does not exist.
const NO_KEY: &str = "{}";

/// A command that changes nothing for each kind that the handler never sends: nothing is written at the end of
/// a key that is not there, nothing deleted, a script does nothing, a setting of no name is shown.
const BEYOND: [(&str, &[&str]); 5] = [
    ("write keys (SETRANGE)", &["SETRANGE", NO_KEY, "0", ""]),
    ("delete keys (DEL)", &["DEL", NO_KEY]),
    ("run scripts (EVAL)", &["EVAL", "return 0", "0"]),
    ("read and change the settings of the server (CONFIG)", &["CONFIG", "GET", NO_KEY]),
    ("manage accounts (ACL)", &["ACL", "USERS"]),
];

/// Logs in and asks.
///
/// # Errors
/// The server cannot be reached, or refuses the account.
pub fn examine(config: &BuiltinConfig, credential: &Credential) -> Result<Vec<Finding>, Failure> {
    let mut redis = connection::open(config, credential)?;
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let key = format!("gloveport-doctor-{}-{nanos}", std::process::id());
    let mut may = |words: &[&str]| {
        let words: Vec<&str> = words.iter().map(|word| if *word == NO_KEY { &key } else { *word }).collect();
        is_permitted(&mut redis, &words)
    };
    let user = credential.user.as_deref().unwrap_or("default");
    let place = format!("the account {user} at {}", config.server.as_deref().unwrap_or_default());
    let (mut beyond, mut others, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (what, words) in BEYOND {
        if may(words)? {
            beyond.push(what);
        }
    }
    for command in REDIS_COMMANDS {
        match (is_listed(command, config), may(&harmless(command))?) {
            (true, false) => missing.push(command),
            (false, true) => others.push(command),
            _ => {}
        }
    }
    let remedy = remedy(user, config);
    let warn = |text: String| Finding::warn(format!("{place} {text}"), remedy.clone());
    let mut findings = Vec::new();
    if !beyond.is_empty() {
        findings.push(warn(format!("may {}", beyond.join(", "))));
    }
    if !others.is_empty() {
        findings.push(warn(format!("may use commands that the action does not list: {}", others.join(", "))));
    }
    if !missing.is_empty() {
        findings.push(warn(format!("may not use commands that the action lists: {}", missing.join(", "))));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(format!("{place} may do what the action lists and nothing else")));
    }
    Ok(findings)
}

/// A command of the handler as it answers at once and shows nothing.
fn harmless(command: &'static str) -> Vec<&'static str> {
    match command {
        "HGET" => vec!["HGET", NO_KEY, "x"],
        "SCAN" => vec!["SCAN", "0", "COUNT", "1"],
        "INFO" => vec!["INFO", "none"],
        _ => vec![command, NO_KEY],
    }
}

/// Whether the account's rights let a command through. That a key is not the account's is said only of a
/// command that is; a command that the server does not have is nobody's.
fn is_permitted(redis: &mut Redis, words: &[&str]) -> Result<bool, Failure> {
    let name = words.first().copied().unwrap_or_default();
    Ok(match connection::ask(redis, words, SHORT).map_err(|broken| broken.of(name))? {
        Reply::Error(text) => {
            let refused = text.starts_with("NOPERM") && text.contains("to run the");
            !refused && !text.starts_with("ERR unknown command") && !text.starts_with("NOAUTH")
        }
        _ => true,
    })
}

/// The rule that leaves an account what the action needs.
fn remedy(user: &str, config: &BuiltinConfig) -> String {
    let commands = REDIS_COMMANDS.into_iter().filter(|command| is_listed(command, config));
    let mut rule: Vec<String> =
        commands.map(|command| format!("+{}", command.to_ascii_lowercase())).collect();
    if config.db.is_some() {
        rule.push("+select".to_owned());
    }
    format!("ACL SETUSER {user} resetkeys ~PATTERN resetchannels -@all {}", rule.join(" "))
}
