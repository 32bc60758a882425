//! System calls that no confined program needs.
//!
//! Each is made with arguments that cannot do anything: where no filter stands in the way the kernel answers
//! EFAULT, EBADF, EINVAL or the like, and says by that that the call itself was open.

use crate::raw::{self, Outcome};
use crate::{number, text};
use serde_json::{Value, json};

/// Not a valid address, descriptor, command or length for anything.
const BAD: usize = usize::MAX;

const CALLS: &[(&str, libc::c_long)] = &[
    ("acct", libc::SYS_acct),
    ("add_key", libc::SYS_add_key),
    ("adjtimex", libc::SYS_adjtimex),
    ("bpf", libc::SYS_bpf),
    ("clock_settime", libc::SYS_clock_settime),
    ("delete_module", libc::SYS_delete_module),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("finit_module", libc::SYS_finit_module),
    ("fsopen", libc::SYS_fsopen),
    ("init_module", libc::SYS_init_module),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("kcmp", libc::SYS_kcmp),
    ("kexec_load", libc::SYS_kexec_load),
    ("keyctl", libc::SYS_keyctl),
    ("memfd_create", libc::SYS_memfd_create),
    ("mount", libc::SYS_mount),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("move_mount", libc::SYS_move_mount),
    ("move_pages", libc::SYS_move_pages),
    ("mq_open", libc::SYS_mq_open),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("open_tree", libc::SYS_open_tree),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("pivot_root", libc::SYS_pivot_root),
    ("process_madvise", libc::SYS_process_madvise),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("ptrace", libc::SYS_ptrace),
    ("quotactl", libc::SYS_quotactl),
    ("reboot", libc::SYS_reboot),
    ("remap_file_pages", libc::SYS_remap_file_pages),
    ("request_key", libc::SYS_request_key),
    ("seccomp", libc::SYS_seccomp),
    ("setdomainname", libc::SYS_setdomainname),
    ("sethostname", libc::SYS_sethostname),
    ("setns", libc::SYS_setns),
    ("settimeofday", libc::SYS_settimeofday),
    ("shmat", libc::SYS_shmat),
    ("swapon", libc::SYS_swapon),
    ("syslog", libc::SYS_syslog),
    ("umount2", libc::SYS_umount2),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("vmsplice", libc::SYS_vmsplice),
];

/// Calls that an action gets by naming their group.
const GROUPED: &[(&str, &str, libc::c_long)] = &[
    ("handles", "name_to_handle_at", libc::SYS_name_to_handle_at),
    ("numa", "mbind", libc::SYS_mbind),
    ("numa", "migrate_pages", libc::SYS_migrate_pages),
    ("numa", "set_mempolicy", libc::SYS_set_mempolicy),
    ("timers", "timer_create", libc::SYS_timer_create),
    ("timers", "timer_delete", libc::SYS_timer_delete),
    ("timers", "timer_getoverrun", libc::SYS_timer_getoverrun),
    ("timers", "timer_gettime", libc::SYS_timer_gettime),
    ("timers", "timer_settime", libc::SYS_timer_settime),
];

/// The attacks of this module.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    match subcommand {
        // calls: all of them, as JSON.
        "calls" => {
            println!("{:#}", calls());
            raw::exit(0)
        }
        // grouped: the calls of every group, as JSON.
        "grouped" => {
            println!("{:#}", grouped());
            raw::exit(0)
        }
        // call NUMBER ARG…: any.
        "call" => {
            let words: Vec<usize> = (1..args.len()).map(|at| number(args, at)).collect();
            Some(raw::call(number(args, 0) as libc::c_long, &words))
        }
        // int80, x32: the same kernel by its other doors.
        #[cfg(target_arch = "x86_64")]
        "int80" => Some(int80()),
        #[cfg(target_arch = "x86_64")]
        "x32" => {
            const X32: libc::c_long = 0x4000_0000;
            Some(raw::call(X32 | libc::SYS_getpid, &[]))
        }
        // ioctl NAME: a dangerous request on stdin; `high` puts a bit where a careless filter does not look.
        "ioctl" => Some(ioctl(text(args, 0), text(args, 1))),
        _ => None,
    }
}

fn calls() -> Value {
    Value::Object(CALLS.iter().map(|(name, call)| ((*name).to_owned(), answer(*call))).collect())
}

fn grouped() -> Value {
    let answers = GROUPED.iter().map(|(group, name, call)| json!([group, name, answer(*call)]));
    Value::Array(answers.collect())
}

/// What the kernel says to a call that cannot do anything.
fn answer(call: libc::c_long) -> Value {
    match raw::call(call, &[BAD; 6]) {
        Ok(_) => json!("ok"),
        Err(errno) => json!(raw::name(errno)),
    }
}

fn ioctl(name: &str, bits: &str) -> Outcome {
    let request = match name {
        "tiocsti" => libc::TIOCSTI as usize,
        // TIOCLINUX: pastes into a console.
        _ => 0x541c,
    };
    let high = if bits == "high" { 1 << 32 } else { 0 };
    raw::call(libc::SYS_ioctl, &[0, request | high, raw::pointer("x")])
}

/// getpid(2) of the 32-bit table.
#[cfg(target_arch = "x86_64")]
fn int80() -> Outcome {
    const GETPID: i32 = 20;
    let mut returned = GETPID;
    // SAFETY: the call takes no argument and touches no memory; the kernel keeps every other register.
    unsafe { std::arch::asm!("int 0x80", inout("eax") returned, options(nostack)) };
    if returned < 0 { Err(-returned) } else { Ok(returned.cast_unsigned() as usize) }
}
