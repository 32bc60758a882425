#![forbid(unsafe_code)]
//! `gloveport status`: what is running and what is in force, and ending a run.

mod runs;

use crate::failure::{Failure, Outcome};
use crate::http::Endpoint;
use crate::{address, health, out};
use clap::Args;
use gloveport_contract::catalog::hex;
use gloveport_contract::packet::Unsupported;
use gloveportd::helper::Status;
use gloveportd::paths::Paths;
use rustix::fs::Access;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is running and what is in force; ends with 1 where something is not, or cannot be told.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// End a run, by the id that is shown: root any, a local user their own
    #[arg(long, value_name = "ID", conflicts_with = "json")]
    end: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A run that cannot be ended. What does not answer is part of the answer.
pub fn run(args: &StatusArgs, paths: &Paths) -> Outcome {
    let socket = Endpoint::local(&paths.mcp_socket);
    if let Some(id) = &args.end {
        return runs::end(&socket, id);
    }
    let helper = health::helper(paths);
    let local = health::daemon(&socket);
    let runs = runs::list(&socket);
    let url = address::of_daemon(paths);
    let tcp = Endpoint::parse(&url).map_err(Failure::new).and_then(|endpoint| health::daemon(&endpoint));
    let daemon_ok = [&local, &tcp].into_iter().any(|answer| answer.as_deref() == Ok("ok"));
    let is_well = daemon_ok && helper.as_ref().is_ok_and(|status| status.digest.is_some());
    if args.json {
        let daemon = json!({"local": answer_json(&local), "url": url, "tcp": answer_json(&tcp)});
        let helper = helper_json(&helper, paths);
        out::json(&json!({"ok": is_well, "helper": helper, "daemon": daemon, "runs": runs.ok()}));
    } else {
        print_helper(&helper, paths);
        print_answer("local socket", &paths.mcp_socket.display().to_string(), &local);
        print_answer("endpoint", &url, &tcp);
        runs::print(&runs);
    }
    Ok(u8::from(!is_well))
}

fn answer_json(answer: &Result<String, Failure>) -> Value {
    match answer {
        Ok(status) => json!({"running": true, "status": status}),
        Err(failure) => json!({"running": false, "error": failure.what(), "remedy": failure.way_out()}),
    }
}

/// Whether this user may not ask the helper, which says nothing of the helper.
fn is_denied(paths: &Paths) -> bool {
    rustix::fs::access(&paths.helper_socket, Access::WRITE_OK) == Err(Errno::ACCESS)
}

fn helper_json(answer: &Result<Status, Failure>, paths: &Paths) -> Value {
    let status = match answer {
        Ok(status) => status,
        Err(failure) => {
            let running = if is_denied(paths) { Value::Null } else { Value::Bool(false) };
            return json!({"running": running, "error": failure.what(), "remedy": failure.way_out()});
        }
    };
    let layers: Vec<Value> = status
        .layers
        .iter()
        .map(|layer| json!({"name": layer.name, "present": layer.present, "detail": layer.detail}))
        .collect();
    let unsupported: Vec<Value> = status
        .unsupported
        .iter()
        .map(|action| json!({"action": action.action, "reason": action.reason}))
        .collect();
    json!({"running": true, "digest": status.digest.map(|digest| hex(&digest)), "reason": status.reason,
           "runs": status.runs, "layers": layers, "unsupported": unsupported})
}

fn print_helper(answer: &Result<Status, Failure>, paths: &Paths) {
    let status = match answer {
        Ok(status) => status,
        Err(failure) if is_denied(paths) => {
            return out::line(format!("helper        cannot be asked by this user: {failure}"));
        }
        Err(failure) => return out::line(format!("helper        not running: {failure}")),
    };
    out::line(format!("helper        running, {} runs in progress", status.runs));
    match &status.digest {
        Some(digest) => out::line(format!("catalogue     SHA-256 {}", hex(digest))),
        None => out::line("catalogue     none in force"),
    }
    if let Some(reason) = &status.reason {
        out::line(format!("              {}", out::printable(reason)));
    }
    for (reason, actions) in by_reason(&status.unsupported) {
        out::line(format!("unsupported   {}: {}", actions.join(" "), out::printable(reason)));
    }
    for layer in &status.layers {
        let sign = if layer.present { "yes" } else { "NO" };
        out::line(format!("layer         {} {sign}: {}", layer.name, layer.detail));
    }
}

/// One missing program or account can keep many actions from running.
fn by_reason(unsupported: &[Unsupported]) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for action in unsupported {
        reasons.entry(&action.reason).or_default().push(&action.action);
    }
    reasons
}

fn print_answer(title: &str, place: &str, answer: &Result<String, Failure>) {
    match answer {
        Ok(status) => out::line(format!("{title:<13} {place}: {status}")),
        Err(failure) => out::line(format!("{title:<13} {place}: {}", failure.what())),
    }
}
