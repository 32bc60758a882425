#![forbid(unsafe_code)]
//! The runs that the daemon knows of, and ending one. Both over the local socket, where the kernel says who
//! asks: root, or a local user about their own.

use crate::approval::who;
use crate::failure::{Failure, Outcome};
use crate::http::{self, Answer, Endpoint};
use crate::mcp::Daemon;
use crate::{clock, out};
use gloveportd::mcp::ledger::Seen;
use serde::Deserialize;
use serde_json::json;
use std::io;
use std::time::Duration;

/// The daemon has these in memory: it takes no longer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Runs {
    runs: Vec<Seen>,
}

/// The runs of this user; root's are all.
///
/// # Errors
/// The daemon does not answer, or this user may not call.
pub fn list(socket: &Endpoint) -> Result<Vec<Seen>, Failure> {
    let mut answer = ask(socket, "GET", "/runs", b"")?;
    let body = answer.read_whole().map_err(|error| Failure::new(error.to_string()))?;
    match (answer.status, serde_json::from_slice::<Runs>(&body)) {
        (200, Ok(runs)) => Ok(runs.runs),
        _ => Err(Failure::new("this user may not see runs")
            .remedy("ask as root (sudo), or have root allow it: gloveport token allow-user USER")),
    }
}

/// Prints what [`list`] found.
pub fn print(runs: &Result<Vec<Seen>, Failure>) {
    // That the daemon does not answer, or that this user is nobody to it, has been said.
    let Some(runs) = runs.as_ref().ok().filter(|runs| !runs.is_empty()) else {
        return;
    };
    let titles = ["RUN", "ACTION", "CALLER", "SINCE", "STATE", "FOR", "BYTES"];
    let rows = runs.iter().map(|run| {
        let time = match (run.elapsed_ms, run.kept_for_s) {
            (_, Some(left)) => format!("kept {left} s more"),
            (elapsed, None) => format!("{} s", elapsed.unwrap_or_default() / 1000),
        };
        let since = clock::rfc3339(run.since);
        let (action, caller) = (out::printable(&run.action), out::printable(&run.caller));
        vec![run.run.clone(), action, caller, since, run.state.clone(), time, run.bytes.to_string()]
    });
    let rows: Vec<Vec<String>> = [titles.map(str::to_owned).to_vec()].into_iter().chain(rows).collect();
    out::text(&format!("\n{}", out::table(&rows)));
}

/// Ends a run.
///
/// # Errors
/// There is none of that id that this user may end.
pub fn end(socket: &Endpoint, id: &str) -> Outcome {
    let nothing = || {
        Failure::new(format!("no run `{}` is in progress that this user may end", out::printable(id)))
            .remedy("`gloveport status` lists them; root may end any (sudo), a local user their own")
    };
    if !gloveport_contract::approval::is_id(id) {
        return Err(nothing());
    }
    let wish = json!({"by": who()}).to_string();
    let answer = ask(socket, "POST", &format!("/runs/{id}/end"), wish.as_bytes())?;
    if answer.status != 204 {
        return Err(nothing());
    }
    out::line(format!("ended: {id}"));
    Ok(0)
}

fn ask(socket: &Endpoint, method: &str, path: &str, body: &[u8]) -> Result<Answer, Failure> {
    let daemon = Daemon { endpoint: socket.with_path(path), token: None };
    let broken = |error: io::Error| daemon.unreachable(&error);
    let stream = daemon.connect()?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    http::send(stream, &daemon.endpoint, method, &[], body).map_err(broken)
}
