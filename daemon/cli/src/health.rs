#![forbid(unsafe_code)]
//! Whether the two halves answer.

use crate::failure::Failure;
use crate::http::{self, Endpoint};
use crate::mcp::Daemon;
use gloveportd::helper::{HelperError, Status, status_blocking};
use gloveportd::paths::Paths;
use serde_json::Value;
use std::io;
use std::time::Duration;

/// A sign of life takes no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the helper says is in force.
///
/// # Errors
/// It cannot be asked: why, and the way out.
pub fn helper(paths: &Paths) -> Result<Status, Failure> {
    status_blocking(&paths.helper_socket).map_err(|error| {
        let failure = Failure::new(match &error {
            HelperError::Unreachable { path, reason } => {
                format!("the helper cannot be reached at {}: {reason}", path.display())
            }
            other => other.to_string(),
        });
        let HelperError::Unreachable { reason, .. } = error else { return failure };
        match reason.kind() {
            io::ErrorKind::PermissionDenied => failure.remedy("ask as root (sudo)"),
            io::ErrorKind::ConnectionRefused => {
                failure.remedy("the socket was left behind by a helper that has ended: start it (`systemctl start gloveport-helper.socket`, or `gloveport up`)")
            }
            io::ErrorKind::NotFound => failure.remedy(
                "start it (`systemctl start gloveport-helper.socket`, or `gloveport up`), or name its state directory with --state DIR",
            ),
            _ => failure,
        }
    })
}

/// What the daemon at an endpoint says of itself: `ok`, or why no action can run.
///
/// # Errors
/// It does not answer.
pub fn daemon(endpoint: &Endpoint) -> Result<String, Failure> {
    let place = Daemon { endpoint: endpoint.with_path("/healthz"), token: None };
    let broken = |error: io::Error| place.unreachable(&error);
    let stream = place.connect()?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    let mut answer = http::send(stream, &place.endpoint, "GET", &[], b"").map_err(broken)?;
    let body: Value = serde_json::from_slice(&answer.read_whole().map_err(broken)?).unwrap_or_default();
    match body.get("status").and_then(Value::as_str) {
        Some(status) if answer.status == 200 => Ok(status.to_owned()),
        _ => Err(Failure::new(format!("what answers at {endpoint} is not gloveport")).remedy(
            "another program has that address (`ss -ltnp` shows it): end it, or set `listen` in daemon.toml",
        )),
    }
}
