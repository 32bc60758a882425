#![forbid(unsafe_code)]
//! What a supervisor gives up once its children are forked: every capability but CAP_KILL, and every system
//! call that it will not need to wait, to signal and to tell.

use crate::privilege;
use crate::sandbox::packed;
use crate::sandbox::seccomp::{Rules, all_of, masked};
use caps::{Capability, CapsHashSet};
use nix::sys::prctl;
use seccompiler::{BackendError, BpfProgram, apply_filter};
use std::fmt;

/// The calls that remain, and what for.
const CALLS: &[(libc::c_long, &str)] = &[
    (libc::SYS_read, "the signal descriptor, /proc, a child's report"),
    (libc::SYS_write, "opening a gate, cgroup files, the log"),
    (libc::SYS_close, "descriptors that were handed over"),
    (libc::SYS_lseek, "cgroup files are read again"),
    (libc::SYS_fstat, "reading /proc"),
    (libc::SYS_newfstatat, "reading /proc"),
    (libc::SYS_statx, "reading /proc"),
    (libc::SYS_getdents64, "reading /proc/PID/task"),
    (libc::SYS_fcntl, "reading a directory, the lock of the shared table"),
    (libc::SYS_pread64, "the shared table"),
    (libc::SYS_pwrite64, "the shared table"),
    (libc::SYS_sendmsg, "events"),
    (libc::SYS_sendto, "audit records"),
    (libc::SYS_recvfrom, "receipts, the end of the connection"),
    (libc::SYS_shutdown, "an audit writer that does not answer"),
    (libc::SYS_ppoll, "waiting"),
    (libc::SYS_wait4, "reaping"),
    (libc::SYS_waitid, "whether there are children"),
    (libc::SYS_kill, "ending a step politely, by its group"),
    (libc::SYS_pidfd_open, "ending a tree"),
    (libc::SYS_pidfd_send_signal, "ending a tree"),
    (libc::SYS_getpid, "listing one's own children"),
    (libc::SYS_getppid, "the parent's end"),
    (libc::SYS_clock_gettime, "time, where the vDSO has none"),
    (libc::SYS_clock_nanosleep, "between two passes over a tree"),
    (libc::SYS_nanosleep, "between two passes over a tree"),
    (libc::SYS_brk, "malloc"),
    (libc::SYS_mmap, "malloc"),
    (libc::SYS_munmap, "malloc"),
    (libc::SYS_mremap, "malloc"),
    (libc::SYS_madvise, "malloc"),
    (libc::SYS_futex, "libc's locks"),
    (libc::SYS_rt_sigprocmask, "libc's abort"),
    (libc::SYS_rt_sigreturn, "libc"),
    (libc::SYS_restart_syscall, "the kernel, after a stop"),
    (libc::SYS_tgkill, "libc's abort"),
    (libc::SYS_gettid, "libc's abort"),
    (libc::SYS_exit_group, "the end"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "waiting"),
];

/// Why it could not be given up.
#[derive(Debug)]
pub enum ConfineError {
    /// Capabilities.
    Capabilities,
    /// The filter could not be loaded.
    Load,
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capabilities => f.write_str("the supervisor's capabilities could not be given up"),
            Self::Load => f.write_str("the supervisor's own filter could not be loaded"),
        }
    }
}

/// Gives it up, for good. Under `--same-user` there are no capabilities.
///
/// # Errors
/// What could not be given up. Nothing may start then.
pub fn confine(same_user: bool, filter: &BpfProgram) -> Result<(), ConfineError> {
    if !same_user {
        privilege::keep_only(&CapsHashSet::from([Capability::CAP_KILL]))
            .map_err(|_| ConfineError::Capabilities)?;
    }
    prctl::set_no_new_privs().map_err(|_| ConfineError::Load)?;
    apply_filter(filter).map_err(|_| ConfineError::Load)
}

/// The filter of every supervisor, made once at the start.
///
/// # Errors
/// What seccompiler does not take; on an architecture it does not know, its name.
pub fn filter() -> Result<BpfProgram, BackendError> {
    let mut rules = Rules::default();
    for (call, _) in CALLS {
        rules.always(*call);
    }
    // Files are opened for reading only: /proc.
    rules.when(libc::SYS_openat, all_of([masked(2, libc::O_ACCMODE as u32, libc::O_RDONLY as u32)?])?);
    packed::pack(rules.into_map(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_built() {
        assert!(!filter().unwrap().is_empty());
    }
}
