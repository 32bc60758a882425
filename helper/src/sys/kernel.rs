//! What a process asks the kernel about itself, and what it gives up for good.

use super::check;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// The kernel's Landlock ABI; 0 where there is none.
pub fn landlock_abi() -> u32 {
    const VERSION: libc::c_ulong = 1;
    let attributes: *const u8 = ptr::null();
    // SAFETY: with the VERSION flag the call takes a null pointer and size 0, and touches no memory.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attributes, 0usize, VERSION) };
    u32::try_from(abi).unwrap_or(0)
}

/// Puts the process under a Landlock ruleset, for good.
///
/// # Errors
/// `EPERM` without no_new_privs, `E2BIG` above the most layers.
pub fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes a descriptor and flags, and touches no memory.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Removes every capability but these numbers from the bounding set, newer ones than this program knows too.
///
/// # Errors
/// `EPERM` without CAP_SETPCAP.
pub fn drop_bounding(keep: &[u8]) -> io::Result<()> {
    for capability in 0..64_u8 {
        if keep.contains(&capability) {
            continue;
        }
        // SAFETY: PR_CAPBSET_DROP takes one number and touches no memory.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) };
        match check(dropped.into()) {
            Ok(_) => {}
            // Past the kernel's last capability.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sets the securebits (capabilities(7)).
///
/// # Errors
/// `EPERM` without CAP_SETPCAP.
pub fn set_securebits(bits: u32) -> io::Result<()> {
    // SAFETY: PR_SET_SECUREBITS takes one number and touches no memory.
    let result = unsafe { libc::prctl(libc::PR_SET_SECUREBITS, libc::c_ulong::from(bits), 0, 0, 0) };
    check(result.into()).map(drop)
}

/// Replaces the session keyring by a new, empty one.
///
/// # Errors
/// `ENOSYS` or `EPERM` where keyrings are built out or closed off; `EDQUOT` over the user's quota.
pub fn join_new_keyring() -> io::Result<()> {
    let name: *const libc::c_char = ptr::null();
    // SAFETY: a null name asks for an anonymous keyring; no memory is touched.
    check(unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, name) }).map(drop)
}

/// One short extended attribute of a file.
///
/// # Errors
/// `ENODATA` where it is not set, `ENOTSUP` where the file system has none.
pub fn attribute(path: &Path, name: &str) -> io::Result<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let name = CString::new(name)?;
    let mut value = vec![0_u8; 64];
    // SAFETY: both names end in NUL, and the buffer is writable for the length that is given.
    let length =
        unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    let length = check(length as libc::c_long)?;
    value.truncate(usize::try_from(length).unwrap_or(0));
    Ok(value)
}
