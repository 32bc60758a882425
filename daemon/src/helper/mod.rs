#![forbid(unsafe_code)]
//! The way to the helper: one connection, one request, then events until it closes.

mod blocking;
mod connection;
mod socket;
mod status;

pub use blocking::status_blocking;
pub use connection::Connection;
pub use status::{Status, status};

use gloveport_contract::packet::PacketError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Whom to expect at the other end of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A helper that root started.
    Root,
    /// A helper of our own user (`--same-user`), or root's.
    SameUser,
}

/// Why the helper could not be asked, or did not answer to the end.
#[derive(Debug)]
pub enum HelperError {
    /// Its socket cannot be connected to.
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        reason: io::Error,
    },
    /// Its backlog stayed full.
    Busy,
    /// Somebody else listens there; nothing was sent.
    Impostor {
        /// The socket.
        path: PathBuf,
        /// Whose socket it is.
        uid: u32,
    },
    /// The request does not fit into one packet; nothing was sent.
    TooLarge(PacketError),
    /// It closed the connection before the end.
    Lost,
    /// It sent what is no event, or one that does not belong here.
    Protocol(String),
}

impl HelperError {
    fn unreachable(path: &Path, reason: io::Error) -> Self {
        Self::Unreachable { path: path.to_path_buf(), reason }
    }
}

impl fmt::Display for HelperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { path, reason } => write!(
                f,
                "the helper cannot be reached at {}: {reason}. Is gloveport-helper running? \
                 `gloveport doctor` tells what is wrong",
                path.display()
            ),
            Self::Busy => f.write_str("the helper is busy: its queue stayed full. Try again later"),
            Self::Impostor { path, uid } => write!(
                f,
                "the socket {} belongs to uid {uid}, not to root: nothing was sent. Stop that program and \
                 restart gloveport-helper",
                path.display()
            ),
            Self::TooLarge(error) => {
                write!(f, "the call is too large: {error}. Shorten its arguments, or pass them as content")
            }
            Self::Lost => f.write_str(
                "the helper closed the connection before it had answered to the end; a run that had started \
                 has been ended with it. Its log says why (`journalctl -u gloveport-helper`)",
            ),
            Self::Protocol(what) => write!(
                f,
                "the helper answered out of order ({what}). Are gloveportd and gloveport-helper of one \
                 release? Restart both"
            ),
        }
    }
}

impl std::error::Error for HelperError {}
