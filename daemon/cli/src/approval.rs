#![forbid(unsafe_code)]
//! `gloveport pending`, `approve` and `deny`: calls that wait for a person, and what the person says.

use crate::failure::{Failure, Outcome};
use crate::{accounts, files, out};
use clap::Args;
use gloveport_contract::approval::{Answer, Decision, Pending, is_id};
use gloveportd::paths::Paths;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _};
use std::path::Path;
use std::time::Duration;

/// How often `--watch` looks for new calls.
const LOOK: Duration = Duration::from_millis(300);
/// Longest text of one argument that is shown to a person, characters; `--json` shows all of it.
const SHOWN: usize = 400;

/// The calls that wait for approval
#[derive(Debug, Args)]
pub struct PendingArgs {
    /// Print one line of JSON: a list, with the whole of every argument
    #[arg(long)]
    json: bool,
}

/// Let a call that waits run, once and exactly as shown
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// Its id, as `gloveport pending` shows it
    #[arg(required_unless_present = "watch", conflicts_with = "watch")]
    id: Option<String>,
    /// Show calls as they come, and ask about each
    #[arg(long)]
    watch: bool,
}

/// Refuse a call that waits
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// Its id, as `gloveport pending` shows it
    id: String,
    /// Why; the client is told
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Runs `gloveport pending`.
///
/// # Errors
/// The directory cannot be read.
pub fn pending(args: &PendingArgs, paths: &Paths) -> Outcome {
    let waiting = all(&paths.pending)?;
    if args.json {
        out::json(&waiting);
    } else if waiting.is_empty() {
        out::line("nothing waits for approval");
    } else {
        waiting.iter().for_each(|call| out::text(&for_person(call)));
        out::line("gloveport approve ID, or gloveport deny ID --reason TEXT");
    }
    Ok(0)
}

/// Runs `gloveport approve`.
///
/// # Errors
/// Nothing waits under that id, or the decision cannot be written.
pub fn approve(args: &ApproveArgs, paths: &Paths) -> Outcome {
    match &args.id {
        Some(id) => decide(&paths.pending, &find(&paths.pending, id)?, Answer::Approve, ""),
        None => watch(&paths.pending),
    }
}

/// Runs `gloveport deny`.
///
/// # Errors
/// Nothing waits under that id, or the decision cannot be written.
pub fn deny(args: &DenyArgs, paths: &Paths) -> Outcome {
    decide(&paths.pending, &find(&paths.pending, &args.id)?, Answer::Deny, &args.reason)
}

/// Shows calls as they come and asks about each. Ends with its terminal.
fn watch(directory: &Path) -> Outcome {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("`approve --watch` asks, and there is no terminal to ask on")
            .remedy("`gloveport pending --json`, then `gloveport approve ID`"));
    }
    out::note("waiting for calls that need approval; end with Ctrl-C");
    let mut asked = BTreeSet::new();
    loop {
        let waiting = all(directory)?;
        // An id that has gone never comes back.
        asked.retain(|id| waiting.iter().any(|call| call.id == *id));
        for call in waiting {
            if !asked.insert(call.id.clone()) {
                continue;
            }
            out::text(&for_person(&call));
            let Some(answer) = ask("Let it run? [y]es, [n]o, anything else leaves it waiting: ")? else {
                return Ok(0);
            };
            let decided = match answer.as_str() {
                "y" | "yes" => decide(directory, &call, Answer::Approve, ""),
                "n" | "no" => {
                    let reason = ask("Why? The client is told: ")?.unwrap_or_default();
                    decide(directory, &call, Answer::Deny, &reason)
                }
                _ => continue,
            };
            if let Err(failure) = decided {
                out::note(failure);
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// A line from the terminal; `None` when it has closed.
fn ask(question: &str) -> Result<Option<String>, Failure> {
    out::text(question);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let length = read.map_err(|error| Failure::new(format!("cannot read from the terminal: {error}")))?;
    Ok((length > 0).then(|| line.trim().to_owned()))
}

/// Puts a decision about exactly this call where the helper looks for it.
fn decide(directory: &Path, call: &Pending, answer: Answer, reason: &str) -> Outcome {
    // It may have been given up since it was shown.
    find(directory, &call.id)?;
    let decision = Decision { answer, digest: call.digest.clone(), by: who(), reason: reason.to_owned() };
    let bytes = serde_json::to_vec(&decision).map_err(|error| Failure::new(error.to_string()))?;
    files::replace(&directory.join(format!("{}.decision", call.id)), &bytes, 0o600, None)?;
    let word = if answer == Answer::Approve { "approved" } else { "denied" };
    out::line(format!("{word}: {} ({})", out::printable(&call.action), call.id));
    Ok(0)
}

/// The person who decides, for the record: the one behind sudo.
pub fn who() -> String {
    std::env::var("SUDO_USER").unwrap_or_else(|_| accounts::name_of(rustix::process::getuid().as_raw()))
}

/// What waits under that id.
fn find(directory: &Path, id: &str) -> Result<Pending, Failure> {
    let nothing = || {
        Failure::new(format!("nothing waits for approval under `{}`", out::printable(id)))
            .remedy("`gloveport pending` lists what does; what was given up or has timed out is gone")
    };
    if !is_id(id) {
        return Err(nothing());
    }
    read(&directory.join(format!("{id}.json")))?.ok_or_else(nothing)
}

/// Everything that waits, the oldest first.
fn all(directory: &Path) -> Result<Vec<Pending>, Failure> {
    let unreadable = |error: io::Error| files::denied("read", directory, &error);
    let mut waiting = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            waiting.extend(read(&path)?);
        }
    }
    waiting.sort_by(|a, b| (&a.since, &a.id).cmp(&(&b.since, &b.id)));
    Ok(waiting)
}

/// One call; `None` when it is gone.
fn read(path: &Path) -> Result<Option<Pending>, Failure> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::denied("read", path, &error)),
    }
}

/// A call as a person reads it. Every text comes from an agent, so nothing of it may move the cursor.
fn for_person(call: &Pending) -> String {
    let shown = |text: &str| {
        let text = out::printable(text);
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => {
                format!("{}… ({} characters)", text.get(..end).unwrap_or_default(), text.chars().count())
            }
            None => text,
        }
    };
    let mut lines = vec![
        format!("{}  {} ({})", call.id, shown(&call.action), call.risk.as_str()),
        format!("  since    {}, held for {} s", call.since, call.timeout_ms / 1000),
        format!(
            "  who      {} ({}) {} {}",
            shown(&call.caller),
            call.caller_proof,
            shown(&call.peer),
            shown(&call.client)
        ),
    ];
    for argv in &call.argv {
        let words: Vec<String> = argv.iter().map(|word| format!("{:?}", shown(word))).collect();
        lines.push(format!("  runs     {}", words.join(" ")));
    }
    lines.extend(call.args.iter().map(|argument| format!("  with     {}", shown(argument))));
    if let Some(content) = &call.content {
        lines.push(format!("  content  {} bytes, sha256 {}", content.length, content.sha256));
    }
    lines.push(format!("  as       {} in {}", shown(&call.run_as), shown(&call.cwd)));
    lines.push(format!("  digest   {}\n", call.digest));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Pending {
        let text = format!(
            r#"{{"id": "{id}", "since": "2026-01-02T03:04:05.678Z", "timeout_ms": 600000, "action": "restart",
                "risk": "dangerous", "caller": "ci", "caller_proof": "token", "peer": "127.0.0.1:4",
                "client": "evil\u001b[2J", "run_as": "root", "cwd": "/", "args": ["unit=a b"],
                "argv": [["/usr/bin/systemctl", "restart", "a b"]], "content": null, "scripts": {{}},
                "catalog": "c", "digest": "d{id}"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_person_sees_where_each_argument_ends_and_no_control_character() {
        let shown = for_person(&call("1a-2"));
        assert!(shown.contains(r#"runs     "/usr/bin/systemctl" "restart" "a b""#), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn a_decision_names_what_was_shown_and_nothing_else_can_be_decided() {
        let directory = std::env::temp_dir().join(format!("gloveport-approval-{}", std::process::id()));
        files::directory(&directory, 0o700).unwrap();
        fs::write(directory.join("1a-2.json"), serde_json::to_vec(&call("1a-2")).unwrap()).unwrap();
        assert_eq!(all(&directory).unwrap(), [call("1a-2")]);
        assert_eq!(decide(&directory, &call("1a-2"), Answer::Deny, "not now").unwrap(), 0);
        let written: Decision =
            serde_json::from_slice(&fs::read(directory.join("1a-2.decision")).unwrap()).unwrap();
        assert_eq!((written.answer, written.digest.as_str()), (Answer::Deny, "d1a-2"));
        for wrong in ["1a-3", "../1a-2", ""] {
            assert!(find(&directory, wrong).unwrap_err().what().starts_with("nothing waits"), "{wrong}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
