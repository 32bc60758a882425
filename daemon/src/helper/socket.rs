#![forbid(unsafe_code)]
//! System calls on the helper's socket: connect without blocking, know the peer, receive with descriptors.

use super::{HelperError, Peer};
use gloveport_contract::limits;
use gloveport_contract::packet::Event;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// How long a full backlog is waited for. The kernel has no event for "there is room again".
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two attempts.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// Descriptors of one event: two pipes of a step, and the one of its stdin.
const DESCRIPTORS: usize = 3;
/// One byte more than a packet may have, so that a longer one shows.
pub(super) const BUFFER: usize = limits::PACKET + 1;

/// One attempt. `None`: the backlog is full (a blocking connect would wait for ever).
pub(super) fn try_connect(path: &Path) -> Result<Option<OwnedFd>, HelperError> {
    let attempt = || {
        let fd = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        match rustix::net::connect(&fd, &SocketAddrUnix::new(path)?) {
            Ok(()) => Ok(Some(fd)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(errno) => Err(io::Error::from(errno)),
        }
    };
    attempt().map_err(|reason| HelperError::unreachable(path, reason))
}

/// Whose socket it is, by the kernel's word.
pub(super) fn check_peer(fd: &OwnedFd, path: &Path, peer: Peer) -> Result<(), HelperError> {
    let uid = rustix::net::sockopt::socket_peercred(fd)
        .map_err(|errno| HelperError::unreachable(path, errno.into()))?
        .uid
        .as_raw();
    let own = rustix::process::geteuid().as_raw();
    if uid == 0 || (peer == Peer::SameUser && uid == own) {
        Ok(())
    } else {
        Err(HelperError::Impostor { path: path.to_path_buf(), uid })
    }
}

/// Sends one packet, whole or not at all. A peer that has already answered and closed (`Busy`) is no error:
/// its answer waits to be read.
pub(super) fn send(fd: impl AsFd, packet: &[u8]) -> io::Result<()> {
    match rustix::net::send(&fd, packet, SendFlags::NOSIGNAL) {
        Ok(_) | Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// A packet as it came.
pub(super) struct Received {
    /// Its length; 0 is the end.
    pub length: usize,
    /// Whether something of it was lost.
    pub truncated: bool,
    /// Its descriptors, in order.
    pub descriptors: Vec<OwnedFd>,
}

/// Receives one packet.
///
/// # Errors
/// `WouldBlock` when there is none yet. A closed peer shows as ECONNRESET once, before the packets that are
/// still queued: those follow, so that error is swallowed here.
pub(super) fn receive(fd: impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    loop {
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(buffer)];
        let message = match rustix::net::recvmsg(&fd, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::CONNRESET | rustix::io::Errno::INTR) => continue,
            result => result?,
        };
        let mut descriptors = Vec::new();
        for item in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = item {
                descriptors.extend(received);
            }
        }
        return Ok(Received {
            length: message.bytes,
            truncated: message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC),
            descriptors,
        });
    }
}

/// The event in a packet; `None` at the end.
pub(super) fn decode(received: &Received, buffer: &[u8]) -> Result<Option<Event>, HelperError> {
    let bytes = match buffer.get(..received.length) {
        Some([]) => return Ok(None),
        Some(bytes) if !received.truncated => bytes,
        _ => return Err(HelperError::Protocol("a packet larger than the largest".into())),
    };
    Event::decode(bytes).map(Some).map_err(|error| HelperError::Protocol(error.to_string()))
}
