#![forbid(unsafe_code)]
//! The side of the audit chain that everybody but the writer sees.

use super::control::{self, Handed};
use super::record::Record;
use super::reply;
use crate::passing::retry;
use gloveport_contract::packet::Receipt;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{ReceiveTimeout, SendTimeout};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recv, send, setsockopt, shutdown, socketpair,
};
use nix::sys::time::TimeVal;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// How long a record may take, seconds. A disk that needs longer keeps every run waiting anyway.
const PATIENCE: i64 = 5;

/// Why there is no receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditError {
    /// The record cannot be made small enough.
    TooLarge,
    /// The writer has more to do than it can take.
    Busy,
    /// The writer is not there any more, or refused this client.
    Gone,
    /// The writer did not answer in time.
    Timeout,
    /// The record could not be written.
    NotWritten(Errno),
    /// A socket could not be made.
    System(Errno),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => f.write_str("the audit record is too large"),
            Self::Busy => f.write_str("the audit writer is busy: try again"),
            Self::Gone => f.write_str("the audit writer has ended: restart gloveport-helper"),
            Self::Timeout => write!(f, "the audit writer did not answer in {PATIENCE} s: look at the disk"),
            Self::NotWritten(errno) => {
                write!(f, "the audit log cannot be written: {}: make room for it", errno.desc())
            }
            Self::System(errno) => write!(f, "no way to the audit writer: {}", errno.desc()),
        }
    }
}

impl std::error::Error for AuditError {}

/// A way to the audit writer, for one process at a time.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
}

impl Client {
    /// Makes a way to the writer that listens at the other end of `control`.
    ///
    /// # Errors
    /// The writer is not there or busy, or descriptors have run out.
    pub fn pair(control: impl AsFd) -> Result<Self, AuditError> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(AuditError::System)?;
        let patience = TimeVal::new(PATIENCE, 0);
        setsockopt(&ours, ReceiveTimeout, &patience).map_err(AuditError::System)?;
        setsockopt(&ours, SendTimeout, &patience).map_err(AuditError::System)?;
        control::hand(control, Handed::Client, theirs.as_fd())?;
        Ok(Self { socket: ours })
    }

    /// Has a record appended, and waits for its receipt. A durable one is on disk then. Under
    /// `--audit-full continue` a record that cannot be written has the receipt number 0, and a gap is
    /// recorded as soon as that can be.
    ///
    /// # Errors
    /// It is not in the chain, or nobody knows.
    pub fn append(&self, record: &Record) -> Result<Receipt, AuditError> {
        let json = record.to_json().ok_or(AuditError::TooLarge)?;
        let mut packet = Vec::with_capacity(json.len() + 1);
        packet.push(u8::from(record.durable));
        packet.extend(json.as_bytes());
        let socket = self.socket.as_raw_fd();
        let mut answer = [0; reply::LENGTH + 1];
        let exchange = retry(|| send(socket, &packet, MsgFlags::MSG_NOSIGNAL))
            .and_then(|_| retry(|| recv(socket, &mut answer, MsgFlags::empty())));
        let length = match exchange {
            Ok(length) => length,
            Err(Errno::EAGAIN) => {
                // The answer would come before that of the next record and be taken for it.
                let _ = shutdown(socket, Shutdown::Both);
                return Err(AuditError::Timeout);
            }
            Err(errno) => return Err(failure(errno)),
        };
        let answer = answer.get(..length).and_then(reply::decode).ok_or(AuditError::Gone)?;
        answer.map_err(AuditError::NotWritten)
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(super) fn failure(errno: Errno) -> AuditError {
    match errno {
        Errno::EAGAIN => AuditError::Busy,
        Errno::EPIPE | Errno::ECONNRESET => AuditError::Gone,
        errno => AuditError::System(errno),
    }
}
