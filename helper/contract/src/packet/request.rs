#![forbid(unsafe_code)]
//! What the daemon may ask.

use super::{Argument, Content};
use bincode::{Decode, Encode};
use std::fmt;

/// Version of the packets. Both halves are of one release; another version is refused by name.
pub const VERSION: u32 = 1;

/// One packet from the daemon. A connection carries one, and behind a [`Request::Run`] at most a
/// [`Request::End`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Request {
    /// What is in force? Answered by one [`super::Event::StatusReply`].
    Status {
        /// Page of the list of unsupported actions, from 0.
        page: u32,
    },
    /// Run an action.
    Run(Box<Run>),
    /// Record a refusal that the daemon made itself. Answered by closing.
    Note(Note),
    /// End the run of this connection now, whatever its action says of a closed connection. Never the first.
    End {
        /// Who wants that, for the record: the daemon's word.
        by: String,
    },
}

/// A call, pre-validated.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Run {
    /// [`VERSION`].
    pub version: u32,
    /// SHA-256 of the catalogue that the daemon validated against.
    pub digest: [u8; 32],
    /// The token that the client presented; `None` for a local-socket user.
    pub token: Option<String>,
    /// Who calls, as far as the daemon says.
    pub caller: Caller,
    /// The action's name.
    pub action: String,
    /// Its arguments, as given.
    pub args: Vec<Argument>,
    /// The argv of each step that the daemon rendered; the helper renders its own and compares.
    pub argv: Vec<Vec<Vec<u8>>>,
    /// What will come by stdin.
    pub content: Option<Content>,
}

// Tokens and arguments do not reach a log by way of {:?}.
impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("action", &self.action)
            .field("args", &self.args)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// Who calls. Except for the token this is the daemon's word, and recorded as such.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct Caller {
    /// `http`, `path`, `argument`, `local`, `stdio`.
    pub via: String,
    /// Peer address, or the local user's name.
    pub peer: String,
    /// The uid of a local-socket user.
    pub uid: Option<u32>,
    /// Client name and version, where it says so.
    pub client: String,
    /// The client's own request id.
    pub request: String,
}

/// A refusal that the daemon made itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Note {
    /// Who was refused.
    pub caller: Caller,
    /// The tool that was named; may be empty.
    pub action: String,
    /// The rule that refused.
    pub rule: String,
    /// What was said to the client, without values.
    pub detail: String,
}
