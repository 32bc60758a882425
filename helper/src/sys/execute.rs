//! The one exec of a run, and the page that makes it the only one.
//!
//! execveat(2) is called with a path pointer to an empty string in a page at the lowest address that the
//! kernel lets anybody map. After the exec that page is gone, and the run's filter keeps every later
//! mapping away from it: the only execveat that the filter lets through can never be repeated.

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::RawFd;
use std::ptr;

/// A page of zeros at a fixed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardPage {
    /// Where it is.
    pub address: usize,
    /// Its size in bytes.
    pub size: usize,
}

impl GuardPage {
    /// Maps it. Done once in the parent: forks inherit it.
    ///
    /// # Errors
    /// `EEXIST` when something is there, `EPERM` when the address is below what this host permits.
    pub fn map(address: usize, size: usize) -> io::Result<Self> {
        // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping, and a new private page aliases nothing.
        let mapped = unsafe {
            libc::mmap(
                ptr::without_provenance_mut(address),
                size,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if mapped.addr() == address {
            Ok(Self { address, size })
        } else {
            Err(io::Error::from_raw_os_error(libc::EEXIST))
        }
    }
}

/// Pointers to strings with a null at the end, as exec takes them.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Executes the program at the descriptor `executable`. Returns only on failure.
pub fn execute(executable: RawFd, page: GuardPage, argv: &[CString], environment: &[CString]) -> io::Error {
    let argv = pointers(argv);
    let environment = pointers(environment);
    // SAFETY: the page holds zeros, so the path is the empty string; both arrays end in null and, like the
    // strings they point to, outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            executable,
            page.address,
            argv.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}
