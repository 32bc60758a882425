#![forbid(unsafe_code)]
//! Handing a descriptor from one process of the helper to another, with one byte that says what it is.

use crate::sys::descriptors;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

/// Sends it, never waiting.
///
/// # Errors
/// `EAGAIN` when the other side does not take any, `EPIPE` or `ECONNRESET` when it has gone.
pub fn send(way: impl AsFd, what: u8, descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let numbers = [descriptor.as_raw_fd()];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let rights = [ControlMessage::ScmRights(&numbers)];
    retry(|| sendmsg::<()>(way.as_fd().as_raw_fd(), &[IoSlice::new(&[what])], &rights, flags, None)).map(drop)
}

/// Takes the next one; `None` at the end. Waits for it unless the flags say otherwise.
///
/// # Errors
/// `EAGAIN` when there is none yet, or it came without a descriptor.
pub fn receive(way: impl AsFd, flags: MsgFlags) -> Result<Option<(u8, OwnedFd)>, Errno> {
    let mut byte = [0];
    let mut space = cmsg_space!(RawFd);
    let mut slices = [IoSliceMut::new(&mut byte)];
    let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = retry(|| {
        recvmsg::<()>(way.as_fd().as_raw_fd(), &mut slices, Some(&mut space), flags).map(|message| {
            let descriptor = message.cmsgs().ok().and_then(|mut messages| match messages.next() {
                Some(ControlMessageOwned::ScmRights(descriptors)) => descriptors.first().copied(),
                _ => None,
            });
            (message.bytes, descriptor)
        })
    })?;
    match message {
        (0, _) => Ok(None),
        (_, None) => Err(Errno::EAGAIN),
        (_, Some(number)) => {
            let descriptor = descriptors::inherited(number).map_err(|_| Errno::EAGAIN)?;
            let [what] = byte;
            Ok(Some((what, descriptor)))
        }
    }
}

/// Repeats a call that a signal interrupted.
pub fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}
