#![forbid(unsafe_code)]
//! Between the parent and the audit writer: what is handed over, and the one thing that is asked for. A packet is
//! one byte, and from the parent a descriptor with it, for the writer can open nothing.

use super::client::{AuditError, failure};
use crate::passing::{self, retry};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// The writer's word: the log is full.
const FULL: u8 = b'f';

/// What the parent hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// The writer's end of a client's socket.
    Client,
    /// The next log: the one before is full.
    Next,
    /// A new log: the one before is no longer at its place.
    Log,
    /// A new head: the one before is no longer at its place.
    Head,
}

impl Handed {
    const ALL: [(Self, u8); 4] =
        [(Self::Client, b'c'), (Self::Next, b'n'), (Self::Log, b'l'), (Self::Head, b'h')];
}

/// Hands something over, never waiting.
///
/// # Errors
/// The writer is not there, or has more to do than it can take.
pub fn hand(control: impl AsFd, what: Handed, descriptor: BorrowedFd<'_>) -> Result<(), AuditError> {
    let byte = Handed::ALL.iter().find(|(handed, _)| *handed == what).map_or(0, |(_, byte)| *byte);
    passing::send(control, byte, descriptor).map_err(failure)
}

/// Takes what was handed over; `None` at the end of the helper.
///
/// # Errors
/// `EAGAIN` when there is nothing yet.
pub(super) fn take(control: impl AsFd) -> Result<Option<(Handed, OwnedFd)>, Errno> {
    let Some((byte, descriptor)) = passing::receive(control, MsgFlags::MSG_DONTWAIT)? else {
        return Ok(None);
    };
    let what = Handed::ALL.iter().find(|(_, known)| *known == byte).ok_or(Errno::EINVAL)?;
    Ok(Some((what.0, descriptor)))
}

/// Asks for the next log. Where the parent is busy, the writer asks again.
pub(super) fn ask_for_next(control: BorrowedFd<'_>) {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let _ = retry(|| send(control.as_raw_fd(), &[FULL], flags));
}

/// Whether the writer has asked for the next log.
pub fn is_asked_for_next(control: BorrowedFd<'_>) -> bool {
    let mut byte = [0];
    let read: Result<usize, Errno> = retry(|| recv(control.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT));
    read == Ok(1) && byte == [FULL]
}
