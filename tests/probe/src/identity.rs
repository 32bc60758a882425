//! Ways to become somebody else, or to reach other processes.

use crate::raw::{self, Outcome};
use crate::{number, text};

const NEW_USER: usize = libc::CLONE_NEWUSER as usize;

/// The attacks of this module.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    let pid = number(args, 0);
    Some(match subcommand {
        // setuid UID, setgid GID
        "setuid" => raw::call(libc::SYS_setresuid, &[pid, pid, pid]),
        "setgid" => raw::call(libc::SYS_setresgid, &[pid, pid, pid]),
        "setgroups" => raw::call(libc::SYS_setgroups, &[0, 0]),
        // capabilities: all of them, asked for.
        "capabilities" => capabilities(),
        // unshare FLAGS: new namespaces of one's own; a user namespace by default.
        "unshare" => raw::call(libc::SYS_unshare, &[if pid == 0 { NEW_USER } else { pid }]),
        // clone-namespace: a child in a user namespace.
        "clone-namespace" => raw::call(libc::SYS_clone, &[NEW_USER | libc::SIGCHLD as usize]).map(child),
        // clone3: the same by the newer call, whose flags no filter sees.
        "clone3" => clone3(),
        // Another process: PID.
        "ptrace" => raw::call(libc::SYS_ptrace, &[libc::PTRACE_ATTACH as usize, pid]),
        "ptrace-seize" => raw::call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, pid]),
        "read-memory" => read_memory(pid),
        "environment" => std::fs::read(format!("/proc/{pid}/environ")).map(|text| text.len()).map_err(errno),
        "descriptors" => std::fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count).map_err(errno),
        // kill PID SIGNAL
        "kill" => raw::call(libc::SYS_kill, &[pid, number(args, 1)]),
        "kill-by-descriptor" => raw::call(libc::SYS_pidfd_open, &[pid, 0])
            .and_then(|fd| raw::call(libc::SYS_pidfd_send_signal, &[fd, number(args, 1), 0, 0])),
        "prlimit" => limit(pid, libc::RLIMIT_CPU as usize, 1),
        "renice" => raw::call(libc::SYS_setpriority, &[libc::PRIO_PROCESS as usize, pid, 19]),
        "affinity" => {
            raw::call(libc::SYS_sched_setaffinity, &[pid, 8, raw::bytes(1_u64.to_ne_bytes().to_vec())])
        }
        // setrlimit RESOURCE VALUE, for itself.
        "setrlimit" => limit(0, pid, number(args, 1)),
        // with-session-key NAME PROGRAM ARG…: starts a program in a session keyring that holds a key.
        "with-session-key" => with_session_key(args),
        // personality PERSONA
        "personality" => raw::call(libc::SYS_personality, &[pid]),
        "setsid" => raw::call(libc::SYS_setsid, &[]),
        "title" => {
            let name = raw::pointer(text(args, 0));
            raw::call(libc::SYS_prctl, &[libc::PR_SET_NAME as usize, name])
        }
        _ => return None,
    })
}

fn errno(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// What a process does that an attack has made: it ends.
fn child(pid: usize) -> usize {
    if pid == 0 {
        raw::exit(0);
    }
    pid
}

fn limit(pid: usize, resource: usize, value: usize) -> Outcome {
    let wanted = raw::bytes([value as u64; 2].map(u64::to_ne_bytes).concat());
    raw::call(libc::SYS_prlimit64, &[pid, resource, wanted, 0])
}

fn capabilities() -> Outcome {
    const VERSION_3: u32 = 0x2008_0522;
    let header = raw::bytes([VERSION_3, 0].map(u32::to_ne_bytes).concat());
    let all = raw::bytes(vec![0xff; 24]);
    raw::call(libc::SYS_capset, &[header, all])
}

fn with_session_key(args: &[&str]) -> Outcome {
    const JOIN: usize = libc::KEYCTL_JOIN_SESSION_KEYRING as usize;
    const SESSION: usize = usize::MAX - 2;
    raw::call(libc::SYS_keyctl, &[JOIN, 0])?;
    let (kind, name) = (raw::pointer("user"), raw::pointer(text(args, 0)));
    raw::call(libc::SYS_add_key, &[kind, name, raw::pointer("secret"), 6, SESSION])?;
    let argv = args.get(1..).unwrap_or_default();
    raw::call(libc::SYS_execve, &[raw::pointer(text(argv, 0)), raw::list(argv), raw::list(&[])])
}

fn clone3() -> Outcome {
    // struct clone_args, version 0: eight numbers, the first holds the flags, the fifth the signal.
    let mut args = [0_u64; 8];
    args[0] = NEW_USER as u64;
    args[4] = libc::SIGCHLD as u64;
    let place = raw::bytes(args.map(u64::to_ne_bytes).concat());
    raw::call(libc::SYS_clone3, &[place, 64]).map(child)
}

fn read_memory(pid: usize) -> Outcome {
    let into: &mut [u8; 8] = Box::leak(Box::new([0; 8]));
    let local: &mut [usize; 2] = Box::leak(Box::new([into.as_ptr() as usize, 8]));
    let remote: &mut [usize; 2] = Box::leak(Box::new([0x40_0000, 8]));
    let (local, remote) = (local.as_ptr() as usize, remote.as_ptr() as usize);
    raw::call(libc::SYS_process_vm_readv, &[pid, local, 1, remote, 1, 0])
}
