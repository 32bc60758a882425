#![forbid(unsafe_code)]
//! The last moment before a half of gloveport starts: the socket that root made becomes descriptor 3, where
//! a service manager would have put it (sd_listen_fds(3)), and this process becomes the program.
//!
//! `gloveport up` starts itself for this, because the variable `LISTEN_PID` must hold the number of the very
//! process that becomes the program, which only that process knows. It needs no code between fork and exec.

use crate::failure::{Failure, Outcome};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The word that asks for it. It is no command for people: no help, no page and no completion has it.
pub const WORD: &str = "handover";
/// The first descriptor that is passed (`SD_LISTEN_FDS_START`).
const FIRST: i32 = 3;

/// What becomes of this process.
#[derive(Debug, PartialEq, Eq)]
pub struct Handover {
    /// The process that started this one; the program ends when it does.
    parent: i32,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Handover {
    /// What a command line asks for, without the program's name: [`WORD`], the parent, the program and its
    /// arguments. `None` where it is for people.
    pub fn asked(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        if words.next()? != WORD {
            return None;
        }
        let parent = words.next()?.to_str()?.parse().ok()?;
        Some(Self { parent, program: words.next()?.into(), arguments: words.collect() })
    }
}

/// Becomes the program, with stdin as its descriptor 3 and `/dev/null` as its stdin.
///
/// # Errors
/// It only returns when that failed.
pub fn run(args: &Handover) -> Outcome {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_word_with_all_that_it_needs_is_a_handover() {
        let asked = |line: &str| Handover::asked(line.split(' ').map(OsString::from));
        let arguments = ["--state".into(), "/s".into()].to_vec();
        let expected = Handover { parent: 7, program: "/bin/x".into(), arguments };
        assert_eq!(asked("handover 7 /bin/x --state /s"), Some(expected));
        for line in ["doctor", "handover", "handover 7", "handover x /bin/x", "up handover 7 /bin/x"] {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
