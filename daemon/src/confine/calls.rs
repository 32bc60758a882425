#![forbid(unsafe_code)]
//! The system calls of the daemon: a table, each with who needs it. Whatever is not here answers EPERM.

use seccompiler::{
    BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition as Condition, SeccompRule as Rule,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Calls that pass with any arguments.
const ANY: &[(i64, &str)] = &[
    (libc::SYS_read, "pipes, files"),
    (libc::SYS_write, "log lines, pipes"),
    (libc::SYS_readv, "hyper"),
    (libc::SYS_writev, "hyper"),
    (libc::SYS_pread64, "std: files"),
    (libc::SYS_close, "everything"),
    (libc::SYS_lseek, "std: files"),
    (libc::SYS_fstat, "std: files"),
    (libc::SYS_statx, "std: metadata"),
    (libc::SYS_newfstatat, "std: metadata where statx is missing"),
    (libc::SYS_getcwd, "std: absolute paths"),
    (libc::SYS_recvfrom, "sockets"),
    (libc::SYS_sendto, "sockets"),
    (libc::SYS_recvmsg, "the helper's events"),
    (libc::SYS_sendmsg, "sockets"),
    (libc::SYS_accept4, "listeners"),
    (libc::SYS_connect, "the helper, sd_notify; only AF_UNIX sockets can be made"),
    (libc::SYS_shutdown, "hyper"),
    (libc::SYS_getsockopt, "SO_PEERCRED, SO_ERROR"),
    (libc::SYS_setsockopt, "TCP_NODELAY"),
    (libc::SYS_getsockname, "tokio"),
    (libc::SYS_getpeername, "tokio"),
    (libc::SYS_epoll_create1, "tokio"),
    (libc::SYS_epoll_ctl, "tokio"),
    (libc::SYS_epoll_pwait, "tokio"),
    (libc::SYS_eventfd2, "tokio"),
    (libc::SYS_ppoll, "std"),
    (libc::SYS_futex, "threads"),
    (libc::SYS_munmap, "allocator, stacks"),
    (libc::SYS_mremap, "allocator"),
    (libc::SYS_madvise, "allocator, stacks"),
    (libc::SYS_brk, "allocator"),
    (libc::SYS_set_robust_list, "threads"),
    (libc::SYS_rseq, "threads"),
    (libc::SYS_sigaltstack, "std: stack overflow"),
    (libc::SYS_rt_sigaction, "tokio: signals"),
    (libc::SYS_rt_sigprocmask, "threads"),
    (libc::SYS_rt_sigreturn, "tokio: signals"),
    (libc::SYS_restart_syscall, "sleeping through a stop"),
    (libc::SYS_sched_yield, "threads"),
    (libc::SYS_sched_getaffinity, "tokio: number of workers"),
    (libc::SYS_gettid, "threads"),
    (libc::SYS_getpid, "sd_notify, abort"),
    (libc::SYS_getuid, "same-user check"),
    (libc::SYS_geteuid, "same-user check"),
    (libc::SYS_tgkill, "abort; the Landlock scope keeps signals inside"),
    (libc::SYS_exit, "threads"),
    (libc::SYS_exit_group, "the end"),
    (libc::SYS_clock_gettime, "where the vDSO does not answer"),
    (libc::SYS_clock_nanosleep, "std"),
    (libc::SYS_nanosleep, "std"),
    (libc::SYS_getrandom, "hash maps, session ids"),
];

/// The same, where the architecture still has the older form.
#[cfg(target_arch = "x86_64")]
const OLDER: &[(i64, &str)] = &[
    (libc::SYS_poll, "std"),
    (libc::SYS_epoll_wait, "tokio"),
    (libc::SYS_stat, "libc"),
    (libc::SYS_lstat, "libc"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[(i64, &str)] = &[];

/// Calls that a library shall believe to be missing. They stand in the allow-list as well: of two filters
/// that refuse, the one loaded last would name the error.
const ABSENT: &[i64] = &[libc::SYS_clone3];

/// The rules of the filter that answers ENOSYS.
pub(super) fn absent() -> Rules {
    ABSENT.iter().map(|call| (*call, Vec::new())).collect()
}

/// The allow-list.
pub(super) fn allowed() -> Result<Rules, BackendError> {
    let named = ANY.iter().chain(OLDER).map(|(call, _)| call);
    let mut rules: Rules = named.chain(ABSENT).map(|call| (*call, Vec::new())).collect();
    // Threads, never processes.
    let thread = (libc::CLONE_THREAD | libc::CLONE_VM).unsigned_abs();
    rules.insert(libc::SYS_clone, vec![Rule::new(vec![bits(0, thread, thread)?])?]);
    // Sockets to the helper and to sd_notify; pairs for tokio's signals.
    let unix = libc::AF_UNIX.unsigned_abs();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        rules.insert(call, vec![Rule::new(vec![equal(0, unix)?])?]);
    }
    // Files for reading only.
    let writing = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC).unsigned_abs();
    let reading = libc::O_RDONLY.unsigned_abs();
    rules.insert(libc::SYS_openat, vec![Rule::new(vec![bits(2, writing, reading)?])?]);
    // Memory that is never code.
    let execute = libc::PROT_EXEC.unsigned_abs();
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![Rule::new(vec![bits(2, execute, 0)?])?]);
    }
    // Non-blocking mode; no other ioctl.
    rules.insert(libc::SYS_ioctl, one_of(1, [libc::FIONBIO as u32, libc::FIOCLEX as u32])?);
    let fcntl = [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD_CLOEXEC];
    rules.insert(libc::SYS_fcntl, one_of(1, fcntl.map(i32::unsigned_abs))?);
    // Names of threads and of the allocator's areas.
    rules.insert(
        libc::SYS_prctl,
        one_of(0, [libc::PR_SET_NAME.unsigned_abs(), libc::PR_SET_VMA.unsigned_abs()])?,
    );
    // Reading its own limits (the size of a stack); the new limit is absent and the process is itself.
    let own = vec![equal(0, 0)?, Condition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?];
    rules.insert(libc::SYS_prlimit64, vec![Rule::new(own)?]);
    Ok(rules)
}

/// A condition on a 32-bit argument.
fn equal(argument: u8, value: u32) -> Result<Condition, BackendError> {
    Condition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value.into())
}

/// A condition on some bits of a 32-bit argument.
fn bits(argument: u8, mask: u32, value: u32) -> Result<Condition, BackendError> {
    Condition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask.into()), value.into())
}

/// Alternatives for a 32-bit argument.
fn one_of<const N: usize>(argument: u8, values: [u32; N]) -> Result<Vec<Rule>, BackendError> {
    values.into_iter().map(|value| Rule::new(vec![equal(argument, value)?])).collect()
}
