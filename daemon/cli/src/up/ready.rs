#![forbid(unsafe_code)]
//! When both halves are ready, and what is said then.

use super::state::State;
use super::{Identity, UpArgs};
use crate::failure::{Failure, Outcome};
use crate::http::Endpoint;
use crate::mcp::Daemon;
use crate::{address, files, out};
use gloveportd::helper::{self, HelperError, Peer, Status};
use serde_json::{Map, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{BufReader, Lines};
use tokio::process::ChildStdout;

/// How long the two halves may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two looks at the helper.
const PAUSE: Duration = Duration::from_millis(20);

/// The daemon's lines on its standard output.
type Announced = Option<Lines<BufReader<ChildStdout>>>;

/// Waits until both halves are ready, says so, and then waits for ever.
///
/// # Errors
/// They do not become ready, or there is nobody to say it to.
pub async fn announce(
    args: &UpArgs,
    identity: &Identity,
    state: &State,
    token: &str,
    mut stdout: Announced,
) -> Outcome {
    let ready = tokio::time::timeout(PATIENCE, ready(state, token, &mut stdout)).await;
    let (status, endpoint) = ready.unwrap_or_else(|_| {
        Err(Failure::new(format!("helper and daemon are not ready after {} s", PATIENCE.as_secs())))
    })?;
    files::replace(&address::note_of(&state.paths), format!("{endpoint}\n").as_bytes(), 0o644, None)?;
    let text = if args.json {
        let line = json!({"endpoint": endpoint, "token": token, "socket": state.paths.helper_socket,
                          "state": state.directory()});
        format!("{line}\n")
    } else {
        welcome(&endpoint, token, &status, identity)
    };
    out::write(text.as_bytes()).map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
    // Further addresses are read, so that the daemon never waits for a reader.
    while let Some(Ok(Some(_))) = next(&mut stdout).await {}
    std::future::pending().await
}

async fn ready(state: &State, token: &str, stdout: &mut Announced) -> Result<(Status, String), Failure> {
    let status = helper_is_ready(&state.paths.helper_socket).await?;
    let address = first_address(stdout).await?;
    let endpoint = address::url(address);
    let daemon = Daemon { endpoint: Endpoint::parse(&endpoint)?, token: Some(token.to_owned()) };
    let ask = move || daemon.request("server/discover", Map::new(), Some(PATIENCE), |_| {});
    match tokio::task::spawn_blocking(ask).await {
        Ok(answer) => answer?,
        Err(error) => return Err(Failure::new(format!("cannot ask the daemon: {error}"))),
    };
    Ok((status, endpoint))
}

/// Waits until the helper answers with a catalogue in force.
async fn helper_is_ready(socket: &Path) -> Result<Status, Failure> {
    loop {
        match helper::status(socket, Peer::SameUser).await {
            Ok(status) if status.digest.is_some() => return Ok(status),
            Ok(status) => {
                let reason = status.reason.unwrap_or_else(|| "it does not say why".to_owned());
                return Err(Failure::new(format!("the helper takes no catalogue into force: {reason}")));
            }
            // It is starting, or ending; its end is noticed elsewhere.
            Err(HelperError::Lost | HelperError::Busy | HelperError::Unreachable { .. }) => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(Failure::new(error.to_string())),
        }
    }
}

async fn first_address(stdout: &mut Announced) -> Result<SocketAddr, Failure> {
    while let Some(Ok(Some(line))) = next(stdout).await {
        if let Some(address) = line.strip_prefix("listening ").and_then(|text| text.trim().parse().ok()) {
            return Ok(address);
        }
    }
    // The daemon closes its output when it ends, and then its own message is the one to show.
    std::future::pending().await
}

async fn next(stdout: &mut Announced) -> Option<std::io::Result<Option<String>>> {
    match stdout {
        Some(lines) => Some(lines.next_line().await),
        None => None,
    }
}

fn welcome(endpoint: &str, token: &str, status: &Status, identity: &Identity) -> String {
    let command = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("gloveport"));
    let command = if command == Path::new("/usr/bin/gloveport") { "gloveport".into() } else { command };
    let mut text = format!(
        "\ngloveport is running until Ctrl-C.\n\n  endpoint  {endpoint}\n  token     {token}\n\n\
         Paste into a shell, to give it to Claude Code, or to call it by hand:\n\n  \
         claude mcp add --transport http gloveport {endpoint} --header \"Authorization: Bearer {token}\"\n\n  \
         GLOVEPORT_URL={endpoint} GLOVEPORT_TOKEN={token} {} call execute_command '{{\"command\": \"df -h\"}}'\n\n\
         Other clients: {} client-config NAME\n",
        command.display(),
        command.display(),
    );
    if !status.unsupported.is_empty() {
        text.push_str(&format!(
            "{} actions are not supported on this host: `gloveport tools` tells which and why.\n",
            status.unsupported.len()
        ));
    }
    let missing: Vec<String> = status
        .layers
        .iter()
        .filter(|layer| !layer.present)
        .map(|layer| format!("{} ({})", layer.name, layer.detail))
        .collect();
    if !missing.is_empty() {
        text.push_str(&format!("Layers that this host lacks: {}.\n", missing.join(", ")));
    }
    if identity.same_user {
        text.push_str(
            "WARNING: --same-user: daemon, helper and programs are one user, nothing keeps them apart.\n",
        );
    }
    text.push('\n');
    text
}
