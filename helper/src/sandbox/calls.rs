#![forbid(unsafe_code)]
//! The system calls of an ordinary program, and who needs each. What is not here gets EPERM.
//!
//! Never here: mounting, namespaces, tracing, other processes' memory, keyrings, modules, clocks, bpf,
//! io_uring (its requests never pass a filter), memfd_create (code out of nowhere), open_by_handle_at,
//! shmat and remap_file_pages (memory at a chosen address), mq_*, syslog.

use gloveport_contract::catalog::SyscallGroup;

/// A call and who needs it.
type Entry = (libc::c_long, &'static str);

/// Calls that pass with any arguments.
pub const BASE: &[Entry] = &[
    // Reading and writing what is open.
    (libc::SYS_read, "everything"),
    (libc::SYS_write, "everything"),
    (libc::SYS_readv, "systemctl, python3"),
    (libc::SYS_writev, "libc's stdio and assert"),
    (libc::SYS_pread64, "ld.so, dpkg-query"),
    (libc::SYS_pwrite64, "databases, ld"),
    (libc::SYS_preadv, "ripgrep, java"),
    (libc::SYS_pwritev, "java"),
    (libc::SYS_preadv2, "newer libc's preadv"),
    (libc::SYS_pwritev2, "newer libc's pwritev"),
    (libc::SYS_lseek, "head, tail, tar"),
    (libc::SYS_sendfile, "python3's shutil, busybox cat"),
    (libc::SYS_copy_file_range, "cat, cp"),
    (libc::SYS_splice, "cat on pipes, Rust's io::copy"),
    (libc::SYS_tee, "tee"),
    (libc::SYS_fadvise64, "cat, sort"),
    (libc::SYS_readahead, "tail of large files"),
    (libc::SYS_fsync, "dd, sort -o"),
    (libc::SYS_fdatasync, "dd"),
    (libc::SYS_sync_file_range, "dpkg"),
    (libc::SYS_flock, "lsblk, util-linux"),
    (libc::SYS_fallocate, "journalctl, dd"),
    (libc::SYS_ftruncate, "journal files, editors: needs a descriptor open for writing"),
    // Descriptors.
    (libc::SYS_close, "everything"),
    (libc::SYS_close_range, "python3, newer libc's closefrom"),
    (libc::SYS_dup, "everything that redirects"),
    (libc::SYS_dup3, "dash, python3"),
    (libc::SYS_fcntl, "everything"),
    (libc::SYS_pipe2, "threads that wake each other"),
    (libc::SYS_eventfd2, "GLib, Go, libuv"),
    (libc::SYS_timerfd_create, "systemctl's event loop"),
    (libc::SYS_timerfd_settime, "systemctl's event loop"),
    (libc::SYS_timerfd_gettime, "systemctl's event loop"),
    (libc::SYS_signalfd4, "journalctl, systemctl"),
    (libc::SYS_inotify_init1, "tail -f, journalctl -f"),
    (libc::SYS_inotify_add_watch, "tail -f, journalctl -f"),
    (libc::SYS_inotify_rm_watch, "tail -f"),
    (libc::SYS_epoll_create1, "systemctl, node, Go"),
    (libc::SYS_epoll_ctl, "systemctl, node, Go"),
    (libc::SYS_epoll_pwait, "node, Go"),
    (libc::SYS_epoll_pwait2, "newer systemd"),
    (libc::SYS_ppoll, "everything that waits"),
    (libc::SYS_pselect6, "vmstat, top"),
    // Files by name; Landlock says which.
    (libc::SYS_newfstatat, "everything"),
    (libc::SYS_fstat, "everything"),
    (libc::SYS_statx, "ls, stat, Rust"),
    (libc::SYS_statfs, "df, stat -f"),
    (libc::SYS_fstatfs, "find, ls"),
    (libc::SYS_faccessat, "ld.so (ld.so.preload), dash"),
    (libc::SYS_faccessat2, "find, test"),
    (libc::SYS_readlinkat, "readlink, ls -l"),
    (libc::SYS_getdents64, "ls, find"),
    (libc::SYS_getcwd, "pwd, python3"),
    (libc::SYS_chdir, "tar -C, find"),
    (libc::SYS_fchdir, "find, du"),
    (libc::SYS_umask, "tar, dash"),
    (libc::SYS_getxattr, "ls -l (ACLs, SELinux)"),
    (libc::SYS_lgetxattr, "ls -l"),
    (libc::SYS_fgetxattr, "journalctl, getfattr"),
    (libc::SYS_listxattr, "ls -l, getfattr"),
    (libc::SYS_llistxattr, "ls -l"),
    (libc::SYS_flistxattr, "tar --xattrs"),
    (libc::SYS_mkdirat, "programs that write"),
    (libc::SYS_unlinkat, "sort (its temporary files), programs that write"),
    (libc::SYS_renameat, "programs that write"),
    (libc::SYS_renameat2, "mv, programs that write"),
    (libc::SYS_linkat, "programs that write"),
    (libc::SYS_symlinkat, "programs that write"),
    // Memory.
    (libc::SYS_brk, "malloc"),
    (libc::SYS_munmap, "everything"),
    (libc::SYS_mprotect, "ld.so, malloc"),
    (libc::SYS_madvise, "malloc, threads' stacks"),
    (libc::SYS_mincore, "java, tcmalloc"),
    (libc::SYS_msync, "journal files, databases"),
    (libc::SYS_mlock, "gpg-like programs; bounded by RLIMIT_MEMLOCK"),
    (libc::SYS_munlock, "gpg-like programs"),
    (libc::SYS_membarrier, "java, liburcu"),
    (libc::SYS_get_mempolicy, "lscpu, java"),
    // Processes and threads.
    (libc::SYS_exit, "threads"),
    (libc::SYS_exit_group, "everything"),
    (libc::SYS_wait4, "programs that fork themselves"),
    (libc::SYS_waitid, "programs that fork themselves"),
    (libc::SYS_set_tid_address, "libc's start"),
    (libc::SYS_set_robust_list, "libc's start"),
    (libc::SYS_get_robust_list, "libc"),
    (libc::SYS_rseq, "libc's start"),
    (libc::SYS_futex, "threads, libc's locks"),
    (libc::SYS_sched_yield, "threads"),
    (libc::SYS_sched_getaffinity, "nproc, Go, sort"),
    (libc::SYS_sched_getparam, "threads"),
    (libc::SYS_sched_getscheduler, "threads, ps"),
    (libc::SYS_sched_get_priority_max, "threads"),
    (libc::SYS_sched_get_priority_min, "threads"),
    (libc::SYS_getpriority, "nice, ps"),
    (libc::SYS_ioprio_get, "iotop-like programs"),
    (libc::SYS_getcpu, "malloc, lscpu"),
    (libc::SYS_pidfd_open, "newer systemd, python3"),
    (libc::SYS_pidfd_send_signal, "newer systemd; Landlock's signal scope holds it"),
    (libc::SYS_setsid, "programs that make a daemon of themselves: the tree ends them"),
    (libc::SYS_setpgid, "timeout, dash"),
    (libc::SYS_getpgid, "dash, ps"),
    (libc::SYS_getsid, "ps"),
    (libc::SYS_getrusage, "time, node"),
    (libc::SYS_times, "dash, time"),
    (libc::SYS_capget, "ip, ping, capsh"),
    // Harmless without capabilities, and programs stop when they are refused.
    (libc::SYS_capset, "ip exits without a word, ping"),
    (libc::SYS_setuid, "ping"),
    (libc::SYS_setgid, "ping"),
    (libc::SYS_setreuid, "programs that drop privilege"),
    (libc::SYS_setregid, "programs that drop privilege"),
    (libc::SYS_setresuid, "programs that drop privilege"),
    (libc::SYS_setresgid, "programs that drop privilege"),
    (libc::SYS_setgroups, "programs that drop privilege"),
    // Who and where.
    (libc::SYS_getpid, "everything"),
    (libc::SYS_gettid, "threads"),
    (libc::SYS_getppid, "dash, ps"),
    (libc::SYS_getuid, "everything"),
    (libc::SYS_geteuid, "everything"),
    (libc::SYS_getgid, "everything"),
    (libc::SYS_getegid, "everything"),
    (libc::SYS_getresuid, "ssh, python3"),
    (libc::SYS_getresgid, "ssh, python3"),
    (libc::SYS_getgroups, "id, test"),
    (libc::SYS_uname, "uname, everything static"),
    (libc::SYS_sysinfo, "free, uptime, sort"),
    (libc::SYS_getrandom, "malloc, hash tables"),
    // Signals.
    (libc::SYS_rt_sigaction, "everything"),
    (libc::SYS_rt_sigprocmask, "everything"),
    (libc::SYS_rt_sigreturn, "signal handlers"),
    (libc::SYS_rt_sigsuspend, "dash"),
    (libc::SYS_rt_sigpending, "python3"),
    (libc::SYS_rt_sigtimedwait, "systemctl"),
    (libc::SYS_rt_sigqueueinfo, "sigqueue(3) to itself; Landlock's signal scope holds it"),
    (libc::SYS_sigaltstack, "Rust, Go, java"),
    (libc::SYS_kill, "timeout; Landlock's signal scope holds it"),
    (libc::SYS_tkill, "old libc's raise"),
    (libc::SYS_tgkill, "abort, Go"),
    (libc::SYS_restart_syscall, "the kernel, after a stop"),
    // Time.
    (libc::SYS_clock_gettime, "everything without vDSO"),
    (libc::SYS_clock_getres, "python3, java"),
    (libc::SYS_clock_nanosleep, "sleep"),
    (libc::SYS_nanosleep, "sleep of old libc"),
    (libc::SYS_gettimeofday, "everything without vDSO"),
    (libc::SYS_getitimer, "python3"),
    (libc::SYS_setitimer, "timeout, ping"),
    // Old names that only x86-64 has; libc still uses several.
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, "ld.so"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, "ld.so, libc"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_getdents, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_dup2, "dash, libc"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_pipe, "libc"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "libc's resolver, ss"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "vmstat, ping"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_create, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "systemctl, node"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_eventfd, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_signalfd, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_inotify_init, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_fork, "static programs; the new process is in the same domain"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_vfork, "posix_spawn of old libc; without an exec it can only end"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_getpgrp, "dash"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_getrlimit, "dash, java"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_setrlimit, "dash, java: lowering only"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_pause, "pause(2)"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_alarm, "ping, old programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_time, "old programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "programs that write"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "programs that write"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "programs that write"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "programs that write"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, "programs that write"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_symlink, "programs that write"),
];

/// Landlock has no right for metadata: a program that may write nothing may not change modes, owners, times
/// and attributes of what its account owns either.
pub const METADATA: &[Entry] = &[
    (libc::SYS_fchmod, "cp, tar"),
    (libc::SYS_fchmodat, "chmod, tar"),
    (libc::SYS_fchown, "cp, tar"),
    (libc::SYS_fchownat, "chown, tar"),
    (libc::SYS_utimensat, "touch, cp, tar"),
    (libc::SYS_setxattr, "cp -a"),
    (libc::SYS_lsetxattr, "cp -a"),
    (libc::SYS_fsetxattr, "cp -a"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, "chmod"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, "chown"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, "chown -h"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_utimes, "old programs"),
];

/// Calls that can truncate, for kernels where Landlock (ABI 3) holds truncation.
pub const OPENING: &[Entry] = &[
    (libc::SYS_openat, "everything"),
    (libc::SYS_openat2, "newer tar and systemd"),
    (libc::SYS_truncate, "programs that write"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "static programs"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, "old programs"),
];

/// What remains of them below ABI 3, with the place of their flags: not truncate(2), not creat(2).
pub const OPENING_FLAGS: &[(libc::c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Requests of ioctl(2) that change nothing on a device; all there is below Landlock ABI 5.
pub const HARMLESS_IOCTLS: &[libc::Ioctl] = &[
    libc::TCGETS,
    libc::TIOCGWINSZ,
    libc::TIOCGPGRP,
    libc::FIONREAD,
    libc::FIONBIO,
    libc::FIOCLEX,
    libc::FIONCLEX,
];

/// Options of prctl(2). Never PR_SET_MM (memory at a chosen address) and never PR_SET_SECCOMP.
pub const PRCTL: &[libc::c_int] = &[
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_PDEATHSIG,
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_DUMPABLE,
    libc::PR_SET_DUMPABLE,
    libc::PR_GET_KEEPCAPS,
    libc::PR_SET_KEEPCAPS,
    libc::PR_CAPBSET_READ,
    libc::PR_CAP_AMBIENT,
    libc::PR_GET_SECUREBITS,
    libc::PR_GET_SECCOMP,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_SET_TIMERSLACK,
    libc::PR_GET_TIMERSLACK,
    libc::PR_GET_THP_DISABLE,
    libc::PR_SET_VMA,
];

/// ARCH_SET_GS, ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_GS and ARCH_CET_STATUS; never ARCH_MAP_VDSO_*, which map
/// memory at a chosen address.
#[cfg(target_arch = "x86_64")]
pub const ARCH_PRCTL: [u32; 5] = [0x1001, 0x1002, 0x1003, 0x1004, 0x3001];

/// The calls of a named group.
pub fn group(group: SyscallGroup) -> &'static [libc::c_long] {
    match group {
        SyscallGroup::Handles => &[libc::SYS_name_to_handle_at],
        SyscallGroup::Numa => &[libc::SYS_set_mempolicy, libc::SYS_mbind, libc::SYS_migrate_pages],
        SyscallGroup::Timers => &[
            libc::SYS_timer_create,
            libc::SYS_timer_settime,
            libc::SYS_timer_gettime,
            libc::SYS_timer_getoverrun,
            libc::SYS_timer_delete,
        ],
    }
}
