#![forbid(unsafe_code)]
//! Supervisors that are forked ahead of need and wait for a connection: otherwise each call would begin with a
//! fork. What they were forked with is what they decide by, so none of them outlives a catalogue.

use crate::passing;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, socketpair};
use nix::unistd::Pid;
use std::os::fd::{AsFd as _, OwnedFd};

/// How many: the next is forked when a run has ended, and each costs memory while it waits.
pub const AHEAD: usize = 1;

/// What the byte beside a connection says.
const STATUS_ONLY: u8 = b's';
const ANYTHING: u8 = b'a';

/// A supervisor that waits. It ends when this is dropped.
#[derive(Debug)]
pub struct Ahead {
    /// Its process.
    pub pid: Pid,
    way: OwnedFd,
}

impl Ahead {
    /// Two ends of a way: the parent's and the supervisor's.
    ///
    /// # Errors
    /// Descriptors have run out.
    pub fn way() -> Result<(OwnedFd, OwnedFd), Errno> {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
    }

    /// A supervisor that waits at the other end.
    pub fn new(pid: Pid, way: OwnedFd) -> Self {
        Self { pid, way }
    }

    /// Gives it its connection. `false`: it is not there any more.
    pub fn hand_over(self, connection: &OwnedFd, status_only: bool) -> bool {
        let what = if status_only { STATUS_ONLY } else { ANYTHING };
        passing::send(&self.way, what, connection.as_fd()).is_ok()
    }
}

/// In the supervisor: waits for its connection; whether the peer may ask for the status only. `None` when it
/// is not needed any more.
pub fn wait(way: &OwnedFd) -> Option<(OwnedFd, bool)> {
    let (what, connection) = passing::receive(way, MsgFlags::empty()).ok()??;
    Some((connection, what != ANYTHING))
}
