//! Processes: forking, waiting with resource usage, and signals that cannot hit a stranger.

use super::check;
use nix::sched::CloneFlags;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Forks. The helper has one thread, so the child may do everything that the parent may.
///
/// # Errors
/// Those of fork(2).
pub fn fork() -> io::Result<ForkResult> {
    // SAFETY: single-threaded (nothing in this crate starts a thread), so no lock is held by another thread.
    Ok(unsafe { nix::unistd::fork() }?)
}

/// Forks into new namespaces. In a new PID namespace the child is process 1, sees no number outside, and when it ends the
/// kernel ends everything in it.
///
/// # Errors
/// Those of clone(2): `EPERM` without CAP_SYS_ADMIN, unless a user namespace is among them.
pub fn fork_into(namespaces: CloneFlags) -> io::Result<ForkResult> {
    let flags = namespaces.bits() | libc::SIGCHLD;
    // SAFETY: as for fork: without CLONE_VM the child has memory of its own, and its stack is a copy of ours;
    // one thread, so no lock is held by another.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    match i32::try_from(pid).map_err(io::Error::other)? {
        0 => Ok(ForkResult::Child),
        pid => Ok(ForkResult::Parent { child: Pid::from_raw(pid) }),
    }
}

/// Ends the process without running destructors: after a fork they belong to the parent's life.
pub fn exit(status: i32) -> ! {
    // SAFETY: _exit touches no memory of this process and does not return.
    unsafe { libc::_exit(status) }
}

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// Its number, free from now on.
    pub pid: Pid,
    /// Exit status, when it ended by itself.
    pub exited: Option<i32>,
    /// Signal, when one ended it.
    pub signaled: Option<i32>,
    /// What it and its waited-for descendants used.
    pub used: Used,
}

/// Resource usage.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// User time.
    pub user: Duration,
    /// System time.
    pub system: Duration,
    /// Peak resident set, KiB.
    pub max_rss_kib: u64,
}

/// Reaps one ended child; `None` when no child has ended, or there is none.
pub fn reap() -> Option<Reaped> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live locals of the types that wait4 writes.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    if pid <= 0 {
        return None;
    }
    // SAFETY: rusage is plain numbers: zeroed memory is a value of it, whether or not wait4 wrote it.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    Some(Reaped {
        pid: Pid::from_raw(pid),
        exited: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signaled: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        used: Used {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        },
    })
}

/// Whether this process has any child, ended or not.
pub fn has_children() -> bool {
    let mut found = MaybeUninit::<libc::siginfo_t>::zeroed();
    let wanted = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: the pointer is to a live local of the type that waitid writes.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), wanted) };
    // Whoever cannot tell has some.
    !matches!(check(result.into()), Err(error) if error.raw_os_error() == Some(libc::ECHILD))
}

/// A descriptor that stands for exactly this process, whatever becomes of its number.
///
/// # Errors
/// `ESRCH` when it has gone.
pub fn open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Signals the process that a descriptor of [`open`] stands for.
///
/// # Errors
/// `ESRCH` when it has gone.
pub fn signal(process: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    let info: *const libc::siginfo_t = std::ptr::null();
    let (fd, signal) = (process.as_raw_fd(), signal as libc::c_int);
    // SAFETY: a null siginfo is what the call takes for "as kill(2) would".
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, info, 0) }).map(drop)
}

/// Default disposition for every signal: exec keeps ignored ones, and Rust's runtime ignores SIGPIPE. By the
/// system call itself, since libc's signal(3) leaves two out that it keeps for itself, and these are inherited too.
///
/// # Errors
/// Never for signals that have a disposition; those that have none are skipped.
pub fn reset_signals() -> io::Result<()> {
    /// struct sigaction of the kernel: SIG_DFL is zero, and so are no flags and an empty mask.
    const DEFAULT: [u64; 4] = [0; 4];
    let before: *mut u64 = std::ptr::null_mut();
    for number in 1..=64 {
        // SAFETY: the call reads DEFAULT, which is as long as the structure, and writes nowhere.
        let set = unsafe { libc::syscall(libc::SYS_rt_sigaction, number, DEFAULT.as_ptr(), before, 8_usize) };
        match check(set) {
            // SIGKILL and SIGSTOP.
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
