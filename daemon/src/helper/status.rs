#![forbid(unsafe_code)]
//! What is in force at the helper.

use super::{Connection, HelperError, Peer};
use gloveport_contract::packet::{Event, Layer, Request, Unsupported, VERSION};
use std::path::Path;
use std::time::Duration;

/// The helper's answer to `Status`, all pages of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// SHA-256 of the catalogue in force.
    pub digest: Option<[u8; 32]>,
    /// Why none is in force, or why the newest one is not.
    pub reason: Option<String>,
    /// The kernel layers and whether they are there.
    pub layers: Vec<Layer>,
    /// Actions that this host cannot run.
    pub unsupported: Vec<Unsupported>,
    /// Runs in progress.
    pub runs: u32,
}

/// An answer must come within this time: it costs the helper no more than a packet.
pub(super) const ANSWER: Duration = Duration::from_secs(5);
/// The largest catalogue with the longest reasons fills no more pages than this.
pub(super) const PAGES: u32 = 256;

impl Status {
    /// Adds a page. Returns whether another follows.
    pub(super) fn add(&mut self, event: Option<Event>) -> Result<bool, HelperError> {
        let Some(event) = event else {
            return Err(HelperError::Lost);
        };
        let Event::StatusReply { version, digest, reason, layers, unsupported, more, runs } = event else {
            return Err(HelperError::Protocol("expected its status".into()));
        };
        if version != VERSION {
            return Err(HelperError::Protocol(format!("it speaks version {version}, this is {VERSION}")));
        }
        self.unsupported.extend(unsupported);
        (self.digest, self.reason, self.layers, self.runs) = (digest, reason, layers, runs);
        Ok(more)
    }
}

/// Asks the helper what is in force.
///
/// # Errors
/// All of [`HelperError`].
pub async fn status(path: &Path, peer: Peer) -> Result<Status, HelperError> {
    let mut status = Status::default();
    for page in 0..PAGES {
        let answer = async {
            let mut connection = Connection::open(path, peer, &Request::Status { page }).await?;
            connection.next().await
        };
        let event = tokio::time::timeout(ANSWER, answer).await.unwrap_or(Err(HelperError::Busy))?;
        if !status.add(event.map(|(event, _)| event))? {
            break;
        }
    }
    Ok(status)
}
