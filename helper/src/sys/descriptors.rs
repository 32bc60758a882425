//! Descriptors: the ones that are handed over by number, and the sweeps that close all others.

use super::check;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Takes over a descriptor that this process was started with, such as a listening socket of `LISTEN_FDS`.
///
/// # Errors
/// `EBADF` when nothing is open there.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD takes no third argument and touches no memory.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    check(flags.into())?;
    // SAFETY: the number is open, as just seen, and nobody else in this process owns it: it came with exec.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A packet of a process of our own, and the descriptor that came with it; the length is 0 when that process
/// has ended without a word.
///
/// # Errors
/// Those of recvmsg(2).
pub fn receive(socket: BorrowedFd<'_>, packet: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut control = nix::cmsg_space!([RawFd; 1]);
    let mut packet = [IoSliceMut::new(packet)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut packet, Some(&mut control), flags)?;
    let mut sent = None;
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            sent = numbers.first().copied();
        }
    }
    // SAFETY: the kernel has just made this descriptor for us, and there was room for no second one.
    Ok((message.bytes, sent.map(|number| unsafe { OwnedFd::from_raw_fd(number) })))
}

/// Puts a copy at a fixed number, closing what was there. Equal numbers are no special case for callers:
/// the flag is set either way.
///
/// # Errors
/// `EBADF` when the number is above RLIMIT_NOFILE.
pub fn place(source: BorrowedFd<'_>, number: RawFd, close_on_exec: bool) -> io::Result<()> {
    let flags = if close_on_exec { libc::FD_CLOEXEC } else { 0 };
    if source.as_raw_fd() == number {
        // SAFETY: F_SETFD takes an int and touches no memory.
        return check(unsafe { libc::fcntl(number, libc::F_SETFD, flags) }.into()).map(drop);
    }
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    // SAFETY: dup3 takes three integers; what it closes at `number` is by contract owned by nobody.
    check(unsafe { libc::dup3(source.as_raw_fd(), number, flags) }.into()).map(drop)
}

/// A copy, closed by exec, at the lowest free number from `from` upwards.
///
/// # Errors
/// `EMFILE`.
pub fn duplicate(source: BorrowedFd<'_>, from: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes an int and touches no memory.
    let fd = unsafe { libc::fcntl(source.as_raw_fd(), libc::F_DUPFD_CLOEXEC, from) };
    check(fd.into())?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Marks everything from `first` upwards to be closed by exec (close_range(2), Linux 5.11).
///
/// # Errors
/// Those of the call.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes every descriptor that is not listed. For the moment after a fork in which the process begins a
/// new life: nothing it forgets to name survives. Values that still own closed numbers must never be dropped,
/// so only functions that do not return may call this.
///
/// # Errors
/// Those of close_range(2).
pub fn close_all_except(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    let mut first = 0;
    for kept in keep {
        if kept > first {
            close_range(first, kept - 1, 0)?;
        }
        first = first.max(kept.saturating_add(1));
    }
    close_range(first, u32::MAX, 0)
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: close_range takes three integers and touches no memory.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}
