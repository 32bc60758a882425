//! Honest and dishonest processes: what a program prints, how it ends, and what it leaves behind.
//!
//! Everything that goes on for long ends by itself after [`DEADLINE`], so that a sandbox that fails to end it
//! costs a test and not the machine.

use crate::{number, raw, text};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// How long anything may go on, milliseconds.
const DEADLINE: usize = 20_000;

/// Does it; the exit code, where it comes back.
pub fn act(subcommand: &str, args: &[&str]) -> Option<i32> {
    let time = number(args, 0);
    match subcommand {
        // print WORD…, complain WORD…: one word a line, to stdout or stderr.
        "print" => args.iter().for_each(|word| println!("{word}")),
        "complain" => args.iter().for_each(|word| eprintln!("{word}")),
        // bytes HEX: exactly these.
        "bytes" => bytes(text(args, 0)),
        // flood BYTES: that much of one letter.
        "flood" => return Some(flood(number(args, 0))),
        // stdin: how much came.
        "stdin" => return Some(stdin()),
        "exit" => return Some(number(args, 0) as i32),
        // signal N: to itself.
        "signal" => {
            let _ = raw::call(libc::SYS_kill, &[std::process::id() as usize, number(args, 0)]);
        }
        // sleep MS; print-sleep MS WORD: says something first.
        "sleep" => raw::sleep(time.min(DEADLINE)),
        "print-sleep" => {
            println!("{}", text(args, 1));
            raw::sleep(time.min(DEADLINE));
        }
        // ignore-term MS: sleeps through every polite signal.
        "ignore-term" => {
            ignore_signals();
            raw::sleep(time.min(DEADLINE));
        }
        // stop MS: stopped, it cannot answer any signal but SIGKILL.
        "stop" => {
            let _ = raw::call(libc::SYS_kill, &[std::process::id() as usize, libc::SIGSTOP as usize]);
        }
        // daemon MS: a double-forked grandchild in a session of its own that ignores TERM; then sleeps MS.
        "daemon" => {
            daemonise(true);
            raw::sleep(time.min(DEADLINE));
        }
        // orphan: a background child that holds stdout; ends at once.
        "orphan" => {
            daemonise(false);
            println!("started");
        }
        // chain: each child starts the next one and ends.
        "chain" => chain(),
        // bomb, setsid-bomb: forks until the limit, and again.
        "bomb" => bomb(false),
        "setsid-bomb" => bomb(true),
        // tree N: N sleeping children.
        "tree" => {
            for _ in 0..number(args, 0) {
                if raw::fork() == Ok(0) {
                    raw::sleep(DEADLINE);
                    raw::exit(0);
                }
            }
            raw::sleep(DEADLINE);
        }
        // fill PATH BYTES: a new file of that size.
        "fill" => return Some(fill(text(args, 0), number(args, 1))),
        // memory BYTES: that much, and every page of it used.
        "memory" => memory(number(args, 0)),
        // parent: what of the parent can be read: environment, descriptors, memory.
        "parent" => parent(),
        // threads N: that many at once; how many came to be.
        "threads" => println!("{}", threads(number(args, 0))),
        _ => return None,
    }
    Some(0)
}

fn bytes(hex: &str) {
    let pairs = (0..hex.len()).step_by(2).filter_map(|at| hex.get(at..at + 2));
    let bytes: Vec<u8> = pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    let _ = std::io::stdout().write_all(&bytes);
    let _ = std::io::stdout().flush();
}

fn flood(mut left: usize) -> i32 {
    let mut piece = vec![b'x'; 65536];
    let mut out = std::io::stdout();
    while left > 0 {
        piece.truncate(left);
        if out.write_all(&piece).is_err() {
            return 1;
        }
        left -= piece.len();
    }
    i32::from(out.flush().is_err())
}

fn fill(path: &str, bytes: usize) -> i32 {
    let Ok(mut file) = std::fs::File::create(path) else { return 1 };
    let mut zeros = std::io::repeat(0).take(bytes as u64);
    i32::from(std::io::copy(&mut zeros, &mut file).is_err())
}

fn memory(bytes: usize) {
    let mut taken: Vec<u8> = Vec::new();
    match taken.try_reserve_exact(bytes) {
        Ok(()) => {
            taken.resize(bytes, 1);
            println!("ok");
        }
        Err(_) => println!("errno ENOMEM"),
    }
}

fn parent() {
    let place = format!("/proc/{}", std::os::unix::process::parent_id());
    let said = |result: std::io::Result<()>| match result {
        Ok(()) => "ok".to_owned(),
        Err(error) => raw::name(error.raw_os_error().unwrap_or(0)),
    };
    let environment = said(std::fs::read(format!("{place}/environ")).map(drop));
    let descriptors = said(std::fs::read_dir(format!("{place}/fd")).map(drop));
    let memory = said(std::fs::File::open(format!("{place}/mem")).map(drop));
    println!("{environment} {descriptors} {memory}");
}

fn stdin() -> i32 {
    let mut text = Vec::new();
    match std::io::stdin().read_to_end(&mut text) {
        Ok(length) => {
            println!("{length}");
            0
        }
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

fn ignore_signals() {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Leaves a process behind that no process group and no session leads to, and prints its pid.
fn daemonise(quiet: bool) {
    let Ok(child) = raw::fork() else { return };
    if child != 0 {
        let _ = raw::wait(child);
        return;
    }
    let _ = raw::call(libc::SYS_setsid, &[]);
    if raw::fork() != Ok(0) {
        raw::exit(0);
    }
    ignore_signals();
    println!("pid {}", std::process::id());
    if quiet {
        for fd in 0..3 {
            let _ = raw::call(libc::SYS_close, &[fd]);
        }
    }
    raw::sleep(DEADLINE);
    raw::exit(0);
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_millis(DEADLINE as u64)
}

fn chain() {
    let end = deadline();
    ignore_signals();
    while Instant::now() < end {
        match raw::fork() {
            Ok(0) => {
                let _ = raw::call(libc::SYS_setsid, &[]);
            }
            Ok(_) => raw::exit(0),
            Err(_) => raw::sleep(1),
        }
    }
}

fn bomb(own_session: bool) {
    let end = deadline();
    ignore_signals();
    while Instant::now() < end {
        match raw::fork() {
            Ok(0) if own_session => {
                let _ = raw::call(libc::SYS_setsid, &[]);
            }
            Ok(_) => {}
            Err(_) => raw::sleep(1),
        }
    }
}

fn threads(count: usize) -> usize {
    let started = (0..count).map(|_| {
        let thread = std::thread::Builder::new().stack_size(64 * 1024);
        thread.spawn(|| raw::sleep(200))
    });
    started.collect::<Vec<_>>().into_iter().flatten().filter_map(|thread| thread.join().ok()).count()
}
