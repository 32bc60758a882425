#![forbid(unsafe_code)]
//! Why a server gave no answer.

use crate::failure::Failure;
use std::io;

/// Why there is no reply.
#[derive(Debug)]
pub enum Broken {
    /// The connection failed or ended.
    Connection(io::Error),
    /// So many bytes are announced at once, which is more than may be read.
    Large(usize),
    /// Not what the protocol has in that place.
    Protocol,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl Broken {
    /// Says it of a step.
    pub fn of(self, what: &str) -> Failure {
        match self {
            Self::Connection(error) => Failure::system(what, error),
            Self::Large(length) => Failure::refused(format!(
                "{what}: the server has {length} bytes at once, which is more than this action lets out; nothing of it was read"
            )),
            Self::Protocol => {
                Failure::refused(format!("{what}: the server does not speak the protocol of this handler"))
            }
        }
    }
}
