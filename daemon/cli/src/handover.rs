#![forbid(unsafe_code)]
//! The last moment before a half of gloveport starts: the socket that root made becomes descriptor 3, where
//! a service manager would have put it (sd_listen_fds(3)), and this process becomes the program.
//!
//! `gloveport up` starts itself for this, because the variable `LISTEN_PID` must hold the number of the very
//! process that becomes the program, which only that process knows. It needs no code between fork and exec.

use crate::failure::{Failure, Outcome};
use clap::Args;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The first descriptor that is passed (`SD_LISTEN_FDS_START`).
const FIRST: i32 = 3;

/// What becomes of this process.
#[derive(Debug, Args)]
pub struct HandoverArgs {
    /// The process that started this one; the program ends when it does
    parent: i32,
    /// The program
    program: PathBuf,
    /// Its arguments
    arguments: Vec<OsString>,
}

/// Becomes the program, with stdin as its descriptor 3 and `/dev/null` as its stdin.
///
/// # Errors
/// It only returns when that failed.
pub fn run(args: &HandoverArgs) -> Outcome {
    let failed = |what: &str, error: std::io::Error| {
        Failure::new(format!("{what} {}: {error}", args.program.display()))
    };
    let socket = fcntl_dupfd_cloexec(std::io::stdin(), FIRST)
        .map_err(|errno| failed("cannot hand the socket to", errno.into()))?;
    if socket.as_raw_fd() != FIRST {
        return Err(Failure::new(format!(
            "cannot hand the socket to {}: descriptor {FIRST} is in use",
            args.program.display()
        ))
        .remedy("whoever started `gloveport up` left it open: close it with `3<&-`"));
    }
    fcntl_setfd(&socket, FdFlags::empty())
        .map_err(|errno| failed("cannot hand the socket to", errno.into()))?;
    // Without this a killed `gloveport up` would leave its two halves behind.
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|errno| failed("cannot tie to its parent", errno.into()))?;
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(args.parent) {
        return Err(Failure::new("`gloveport up` has ended"));
    }
    let error = Command::new(&args.program)
        .args(&args.arguments)
        .env("LISTEN_FDS", "1")
        .env("LISTEN_PID", std::process::id().to_string())
        .stdin(Stdio::null())
        .exec();
    Err(failed("cannot start", error))
}
