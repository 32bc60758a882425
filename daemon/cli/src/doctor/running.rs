#![forbid(unsafe_code)]
//! What runs: the helper, its layers and actions, the daemon and its listeners.

use super::Check;
use crate::failure::Failure;
use crate::http::Endpoint;
use crate::{address, health};
use gloveport_contract::packet::Layer;
use gloveportd::config::Config;
use gloveportd::helper::Status;
use gloveportd::paths::Paths;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

/// Actions that are named one by one.
const NAMED: usize = 5;

/// Looks at what runs.
pub fn examine(paths: &Paths, helper: &Result<Status, Failure>) -> Vec<Check> {
    let mut checks = Vec::new();
    match helper {
        Ok(status) => {
            checks.push(catalog(status));
            checks.extend(status.layers.iter().map(layer));
            checks.push(unsupported(status));
        }
        Err(failure) => checks.push(Check::failure("helper", failure)),
    }
    checks.push(match health::daemon(&Endpoint::local(&paths.mcp_socket)) {
        Ok(status) if status == "ok" => {
            Check::ok("daemon", format!("answers at {}", paths.mcp_socket.display()))
        }
        Ok(status) => Check::fail(
            "daemon",
            format!("answers, but no action can run: {status}"),
            "see `helper` and `catalogue`",
        ),
        Err(failure) => Check::failure("daemon", &failure),
    });
    checks.extend(listeners(paths));
    checks
}

fn layer(layer: &Layer) -> Check {
    let detail = format!("{}: {}", layer.name, layer.detail);
    // What an older version of a layer does not hold stands behind a colon.
    if layer.present && !layer.detail.contains(": ") {
        return Check::ok("layers", detail);
    }
    let remedy = match layer.name.as_str() {
        "cgroup" => "start the helper as the package's unit does, with a delegated cgroup v2",
        "landlock" => "use a newer kernel; until then actions that promise what it lacks are refused",
        _ => "actions that promise it are refused until it is there",
    };
    Check::warn("layers", detail, remedy)
}

fn catalog(status: &Status) -> Check {
    match (&status.digest, &status.reason) {
        (Some(_), None) => {
            Check::ok("helper", format!("running, a catalogue is in force, {} runs", status.runs))
        }
        (Some(_), Some(reason)) => Check::warn(
            "helper",
            format!("the newest catalogue was not taken, the one before is in force: {reason}"),
            "build and sign it again",
        ),
        (None, reason) => Check::fail(
            "helper",
            format!("no catalogue is in force: {}", reason.as_deref().unwrap_or("none was found")),
            "nothing runs until one is: `gloveport init`, or build and sign your own",
        ),
    }
}

/// A catalogue that loads is no proof that each action runs.
fn unsupported(status: &Status) -> Check {
    let count = status.unsupported.len();
    if count == 0 {
        return Check::ok("actions", "this host has what every action needs");
    }
    let mut named: Vec<String> = status
        .unsupported
        .iter()
        .take(NAMED)
        .map(|action| format!("{}: {}", action.action, action.reason))
        .collect();
    if count > NAMED {
        named.push(format!("and {} more (`gloveport status`)", count - NAMED));
    }
    Check::warn(
        "actions",
        format!("{count} actions cannot run on this host\n{}", named.join("\n")),
        "install what they need, or leave them out of the catalogue",
    )
}

/// Whether each address is ours, nobody's or somebody else's.
fn listeners(paths: &Paths) -> Vec<Check> {
    let noted = std::fs::read_to_string(address::note_of(paths)).ok();
    let addresses: Vec<String> = match noted {
        Some(url) => vec![url.trim().to_owned()],
        None => {
            let listen = Config::load(&paths.daemon_config).unwrap_or_default().listen;
            listen.into_iter().map(address::url).collect()
        }
    };
    addresses.iter().map(|url| listener(url)).collect()
}

fn listener(url: &str) -> Check {
    let answer = Endpoint::parse(url).map(|endpoint| health::daemon(&endpoint));
    match answer {
        Ok(Ok(_)) => Check::ok("listen", format!("{url} is gloveport's")),
        Ok(Err(failure)) if is_taken(url) => Check::fail(
            "listen",
            format!("another program listens at {url}: {}", failure.what()),
            "`ss -ltnp` shows it: end it, or set `listen` in daemon.toml",
        ),
        _ => Check::warn(
            "listen",
            format!("nothing listens at {url}"),
            "start the daemon; it listens on TCP only once a token exists: gloveport token add --name NAME",
        ),
    }
}

fn is_taken(url: &str) -> bool {
    let address =
        url.strip_prefix("http://").and_then(|rest| rest.split('/').next()?.parse::<SocketAddr>().ok());
    address.is_some_and(|address| {
        TcpListener::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
    })
}
