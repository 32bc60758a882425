//! Making a file system that is mounted nowhere (fsopen(2), Linux 5.2).

use super::check;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

// Of linux/mount.h; libc does not have them all.
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
/// NOSUID, NODEV, NOEXEC.
const ATTRIBUTES: libc::c_uint = 2 | 4 | 8;

/// Begins a file system of that type.
///
/// # Errors
/// `EPERM` without CAP_SYS_ADMIN over the mount namespace, `ENODEV` for an unknown type.
pub fn open(kind: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name ends in NUL and lives for the call, which only reads it.
    own(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })
}

/// Sets an option, as mount(8) has it.
///
/// # Errors
/// `EINVAL` for an option or a value that the type does not know.
pub fn set(file_system: BorrowedFd<'_>, key: &CStr, value: &CStr) -> io::Result<()> {
    let (fd, key, value) = (file_system.as_raw_fd(), key.as_ptr(), value.as_ptr());
    // SAFETY: both texts end in NUL and live for the call, which only reads them.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_SET_STRING, key, value, 0) }).map(drop)
}

/// Makes it, with the options that were set.
///
/// # Errors
/// Those of mount(2).
pub fn create(file_system: BorrowedFd<'_>) -> io::Result<()> {
    let (fd, none) = (file_system.as_raw_fd(), ptr::null::<libc::c_char>());
    // SAFETY: this command takes null pointers and touches no memory.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, none, none, 0) }).map(drop)
}

/// Its root directory, below which nothing is executed, set-uid or a device. It lives as long as this
/// descriptor and its copies.
///
/// # Errors
/// Those of mount(2).
pub fn mount(file_system: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let fd = file_system.as_raw_fd();
    // SAFETY: the call takes three integers and touches no memory.
    own(unsafe { libc::syscall(libc::SYS_fsmount, fd, FSMOUNT_CLOEXEC, ATTRIBUTES) })
}

fn own(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(check(result)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
