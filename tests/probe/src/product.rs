//! The product's own confinement, taken apart: the filters of a running program are copied, and another
//! program is started under them with one rule left out.
//!
//! What the helper loads is thereby tried rule by rule, and the helper needs no switch for it. Landlock is
//! left out altogether: what holds here holds without it.

use crate::raw::{self, Outcome};
use crate::{address_space, number, text};
use std::fs;
use std::path::Path;

/// RLIMIT_NOFILE of a run, and the descriptor of its executable.
const K: usize = 256;
const ALLOW: u32 = 0x7fff_0000;
const LOAD: u16 = 0x20;
const EQUALS: u16 = 0x15;
const HAS_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;
/// The lower half of the fourth argument, in struct seccomp_data.
const FLAGS: u32 = 16 + 3 * 8;

/// An instruction of a filter: code, both jumps, operand (struct sock_filter).
type Instruction = (u16, u8, u8, u32);

/// The attacks of this module.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    Some(match subcommand {
        // copy-filters PID DIRECTORY: each filter of a running process, the oldest one first.
        "copy-filters" => copy_filters(number(args, 0), text(args, 1)),
        // confined DIRECTORY UID WITHOUT PROGRAM ARG…: a program under those filters, without one rule.
        "confined" => confined(args),
        _ => return None,
    })
}

fn copy_filters(pid: usize, directory: &str) -> Outcome {
    let ptrace = |request: u32, address: usize, data: usize| {
        raw::call(libc::SYS_ptrace, &[request as usize, pid, address, data])
    };
    ptrace(libc::PTRACE_SEIZE, 0, 0)?;
    ptrace(libc::PTRACE_INTERRUPT, 0, 0)?;
    raw::wait(pid)?;
    const GET_FILTER: u32 = 0x420c;
    let mut copied = 0;
    // The length is asked for first; beyond the last filter there is none.
    while let Ok(length) = ptrace(GET_FILTER, copied, 0) {
        let program = vec![0_u8; length * 8].leak();
        ptrace(GET_FILTER, copied, program.as_mut_ptr() as usize)?;
        let file = Path::new(directory).join(copied.to_string());
        fs::write(file, program).map_err(|error| error.raw_os_error().unwrap_or(0))?;
        copied += 1;
    }
    ptrace(libc::PTRACE_DETACH, 0, 0)?;
    if copied == 0 { Err(libc::ENOENT) } else { Ok(copied) }
}

/// The instructions that let pass what a rule would refuse. They come before all others.
fn exception(rule: &str) -> Vec<Instruction> {
    let whole =
        |call: libc::c_long| vec![(LOAD, 0, 0, 0), (EQUALS, 0, 1, call as u32), (RETURN, 0, 0, ALLOW)];
    // With none of these flags.
    let without = |call: libc::c_long, flags: i32| {
        vec![
            (LOAD, 0, 0, 0),
            (EQUALS, 0, 3, call as u32),
            (LOAD, 0, 0, FLAGS),
            (HAS_BITS, 1, 0, flags as u32),
            (RETURN, 0, 0, ALLOW),
        ]
    };
    match rule {
        "execve" => whole(libc::SYS_execve),
        "execveat" => whole(libc::SYS_execveat),
        "mmap" => whole(libc::SYS_mmap),
        "mmap-address" => {
            let placing = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_GROWSDOWN;
            without(libc::SYS_mmap, placing)
        }
        "mremap" => whole(libc::SYS_mremap),
        #[cfg(target_arch = "x86_64")]
        "arch_prctl" => whole(libc::SYS_arch_prctl),
        "shmat" => {
            [libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl].into_iter().flat_map(whole).collect()
        }
        "memfd_create" => [libc::SYS_memfd_create, libc::SYS_execveat].into_iter().flat_map(whole).collect(),
        "prctl" => whole(libc::SYS_prctl),
        "personality" => whole(libc::SYS_personality),
        "prlimit64" => whole(libc::SYS_prlimit64),
        "sched_setaffinity" => whole(libc::SYS_sched_setaffinity),
        "clone" => whole(libc::SYS_clone),
        "clone3" => whole(libc::SYS_clone3),
        "ioctl" => whole(libc::SYS_ioctl),
        "remap_file_pages" => whole(libc::SYS_remap_file_pages),
        _ => Vec::new(),
    }
}

fn confined(args: &[&str]) -> Outcome {
    let [directory, _, rule, argv @ ..] = args else { return Err(libc::EINVAL) };
    let program = text(argv, 0);
    let uid = number(args, 1);
    let filters = read_filters(directory, rule)?;
    let page = address_space::page_size();
    let path = address_space::lowest_page();
    let here = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    address_space::mmap(path, page, here as usize)?;
    let flags = (libc::O_PATH | libc::O_CLOEXEC) as usize;
    let file = raw::call(libc::SYS_openat, &[libc::AT_FDCWD as usize, raw::pointer(program), flags])?;
    raw::call(libc::SYS_dup3, &[file, K, libc::O_CLOEXEC as usize])?;
    // Nothing but the standard streams, as in a run.
    raw::call(libc::SYS_close_range, &[3, usize::MAX, libc::CLOSE_RANGE_CLOEXEC as usize])?;
    // A quarter of 47 bits of addresses, and a stack of 8 MiB.
    limit(libc::RLIMIT_AS, if *rule == "address-space" { usize::MAX } else { 1 << 45 })?;
    limit(libc::RLIMIT_STACK, if *rule == "stack" { 100 << 40 } else { 8 << 20 })?;
    limit(libc::RLIMIT_NOFILE, K)?;
    raw::call(libc::SYS_setgroups, &[0, 0])?;
    raw::call(libc::SYS_setresgid, &[uid; 3])?;
    raw::call(libc::SYS_setresuid, &[uid; 3])?;
    raw::call(libc::SYS_prctl, &[libc::PR_SET_NO_NEW_PRIVS as usize, 1])?;
    let argv = raw::list(argv);
    let environment = raw::list(&["PATH=/usr/bin:/bin", "LANG=C.UTF-8"]);
    for program in filters {
        raw::call(libc::SYS_seccomp, &[libc::SECCOMP_SET_MODE_FILTER as usize, 0, program])?;
    }
    raw::call(libc::SYS_execveat, &[K, path, argv, environment, libc::AT_EMPTY_PATH as usize])
}

fn limit(resource: libc::__rlimit_resource_t, value: usize) -> Outcome {
    let both = raw::bytes([value, value].map(usize::to_ne_bytes).concat());
    raw::call(libc::SYS_prlimit64, &[0, resource as usize, both, 0])
}

/// The addresses of the filters (struct sock_fprog), the oldest one first, each behind the exception.
fn read_filters(directory: &str, rule: &str) -> Result<Vec<usize>, i32> {
    let mut filters = Vec::new();
    while let Ok(copy) = fs::read(Path::new(directory).join(filters.len().to_string())) {
        let mut program = Vec::new();
        for (code, yes, no, operand) in exception(rule) {
            program.extend(code.to_ne_bytes());
            program.extend([yes, no]);
            program.extend(operand.to_ne_bytes());
        }
        program.extend(copy);
        let length = program.len() / 8;
        filters.push(raw::bytes([length, raw::bytes(program)].map(usize::to_ne_bytes).concat()));
    }
    if filters.is_empty() { Err(libc::ENOENT) } else { Ok(filters) }
}
