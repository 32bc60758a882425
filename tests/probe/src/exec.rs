//! Ways to a second program image.

use crate::raw::{self, Outcome};
use crate::{number, text};

const EMPTY_PATH: usize = libc::AT_EMPTY_PATH as usize;

/// The attacks of this module. What they execute prints for itself; `errno` means that it did not start.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    Some(match subcommand {
        // exec2 PATH ARG…: execve(2).
        "exec2" => execve(text(args, 0), args),
        // execveat FD PATH FLAGS
        "execveat" => execveat(number(args, 0), raw::pointer(text(args, 1)), number(args, 2)),
        // execveat-file PATH: opened, then executed by descriptor.
        "execveat-file" => open(text(args, 0)).and_then(|fd| execveat(fd, raw::pointer(""), EMPTY_PATH)),
        // execveat-k PATH: at the descriptor where the first image sat.
        "execveat-k" => execveat(descriptor_limit(), raw::pointer(text(args, 0)), EMPTY_PATH),
        // execveat-onto-k PATH: the file put at that descriptor first, the limit raised first.
        "execveat-onto-k" => execveat_onto_k(text(args, 0)),
        // memfd-exec PATH: a copy in memory, executed by descriptor.
        "memfd-exec" => memfd_exec(text(args, 0)),
        // ldso PATH: the loader as the program, PATH as its argument.
        "ldso" => execve(LOADER, &[LOADER, text(args, 0)]),
        // fork-exec PATH ARG…: in a child.
        "fork-exec" => in_child(|| execve(text(args, 0), args)),
        // thread-exec PATH ARG…: in a second thread.
        "thread-exec" => in_thread(args),
        _ => return None,
    })
}

#[cfg(target_arch = "x86_64")]
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const LOADER: &str = "/lib/ld-linux-aarch64.so.1";

fn execve(path: &str, argv: &[&str]) -> Outcome {
    raw::call(libc::SYS_execve, &[raw::pointer(path), raw::list(argv), raw::list(&[])])
}

fn execveat(fd: usize, path: usize, flags: usize) -> Outcome {
    raw::call(libc::SYS_execveat, &[fd, path, raw::list(&["second"]), raw::list(&[]), flags])
}

fn open(path: &str) -> Outcome {
    let flags = libc::O_PATH as usize;
    raw::call(libc::SYS_openat, &[libc::AT_FDCWD as usize, raw::pointer(path), flags])
}

/// RLIMIT_NOFILE: the helper puts the executable at exactly this number.
pub fn descriptor_limit() -> usize {
    let limit: &mut libc::rlimit64 = Box::leak(Box::new(libc::rlimit64 { rlim_cur: 0, rlim_max: 0 }));
    let place = std::ptr::from_mut(limit) as usize;
    let _ = raw::call(libc::SYS_prlimit64, &[0, libc::RLIMIT_NOFILE as usize, 0, place]);
    limit.rlim_cur as usize
}

fn execveat_onto_k(path: &str) -> Outcome {
    let k = descriptor_limit();
    let higher = Box::leak(Box::new(libc::rlimit64 { rlim_cur: k as u64 + 1, rlim_max: k as u64 + 1 }));
    let raised = raw::call(
        libc::SYS_prlimit64,
        &[0, libc::RLIMIT_NOFILE as usize, std::ptr::from_mut(higher) as usize, 0],
    );
    let fd = open(path)?;
    let put = raw::call(libc::SYS_dup3, &[fd, k, 0]);
    execveat(k, raw::pointer(""), EMPTY_PATH).or(raised.and(put))
}

fn memfd_exec(path: &str) -> Outcome {
    let fd = raw::call(libc::SYS_memfd_create, &[raw::pointer("copy"), 0])?;
    let program = std::fs::read(path).map_err(|error| error.raw_os_error().unwrap_or(0))?;
    let length = program.len();
    raw::call(libc::SYS_write, &[fd, raw::bytes(program), length])?;
    execveat(fd, raw::pointer(""), EMPTY_PATH)
}

/// Lets a child do it: its errno is its exit status.
fn in_child(attempt: impl FnOnce() -> Outcome) -> Outcome {
    let child = raw::fork()?;
    if child == 0 {
        raw::exit(attempt().err().unwrap_or(0));
    }
    match raw::wait(child)? {
        status if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) != 0 => Err(libc::WEXITSTATUS(status)),
        status => Ok(status.cast_unsigned() as usize),
    }
}

fn in_thread(args: &[&str]) -> Outcome {
    let argv: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let attempt = std::thread::spawn(move || {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        execve(text(&argv, 0), &argv)
    });
    attempt.join().unwrap_or(Err(libc::EAGAIN))
}
