//! Every raw system call of the helper: the only modules of the project with `unsafe`, one operation per
//! block. Each function takes and returns owned or borrowed descriptors and `io::Result`, so that nobody
//! outside needs to know a number.

pub mod descriptors;
pub mod execute;
pub mod kernel;
pub mod memory;
pub mod mount;
pub mod process;

use std::io;

/// Turns -1 into the error that errno names.
fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
