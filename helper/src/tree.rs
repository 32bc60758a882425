#![forbid(unsafe_code)]
//! Ending everything that a program has started, where no cgroup does it.
//!
//! The process is a subreaper, so whatever loses its parent becomes its child: the whole tree is always
//! below. It is frozen first (SIGSTOP, until a whole pass finds nothing running) and killed then: a fork
//! bomb that is only killed outruns the killer, and stopped processes keep the places that RLIMIT_NPROC
//! counts. Every signal goes through a descriptor of the process, opened before its parent is compared, so
//! that a number which has been given to a stranger in between is never signalled.

use crate::sys::process;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::fs;
use std::os::fd::AsFd as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two passes: long enough for a signal to arrive, far below what anybody notices.
const PAUSE: Duration = Duration::from_micros(300);

/// A process as /proc shows it.
struct Seen {
    /// `R`, `S`, `T`, `Z`, …
    state: char,
    parent: Pid,
}

/// Whether this process has children other than the spared ones.
pub fn has_children_but(spared: &[Pid]) -> bool {
    // One call where /proc takes six, for what most runs leave behind: nothing.
    process::has_children() && children(Pid::this()).iter().any(|child| !spared.contains(child))
}

/// Ends all descendants but the spared children and what is below them. `reap` is called between passes.
/// Yields whether nothing is left.
pub fn end(spared: &[Pid], patience: Duration, mut reap: impl FnMut()) -> bool {
    if !has_children_but(spared) {
        return true;
    }
    let end = Instant::now() + patience;
    // Half of the time to freeze: what then still runs is killed all the same.
    let freeze_until = Instant::now() + patience / 2;
    while Instant::now() < freeze_until {
        let mut running = 0;
        visit(spared, &mut |state, process| {
            if !matches!(state, 'T' | 't' | 'Z' | 'X' | '?') {
                running += 1;
                // It may have ended since: nothing to stop then.
                let _ = process::signal(process, Signal::SIGSTOP);
            }
        });
        reap();
        if running == 0 {
            break;
        }
        sleep(PAUSE);
    }
    loop {
        let mut left = 0;
        visit(spared, &mut |_, process| {
            left += 1;
            let _ = process::signal(process, Signal::SIGKILL);
        });
        reap();
        if left == 0 {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(PAUSE);
    }
}

/// Calls `act` with every descendant that is not spared.
fn visit(spared: &[Pid], act: &mut dyn FnMut(char, std::os::fd::BorrowedFd<'_>)) {
    let own = Pid::this();
    let mut pending = vec![own];
    while let Some(parent) = pending.pop() {
        for child in children(parent) {
            if parent == own && spared.contains(&child) {
                continue;
            }
            let Ok(handle) = process::open(child) else { continue };
            let state = match look(child) {
                Some(seen) if seen.parent == parent => seen.state,
                // Hidden from us (hidepid), but a child of ours keeps its number until we reap it.
                None if parent == own => '?',
                // Its parent has ended, or the number is a stranger's: another pass will tell.
                _ => continue,
            };
            act(state, handle.as_fd());
            pending.push(child);
        }
    }
}

/// The children of all threads of a process.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .map(Pid::from_raw)
        .collect()
}

fn look(pid: Pid) -> Option<Seen> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// State and parent from a line of /proc/PID/stat. The name, in brackets, may hold anything.
fn parse(stat: &str) -> Option<Seen> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Seen { state, parent: Pid::from_raw(parent) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_move_the_fields() {
        let seen = parse("123 (a) R 1 (b) T 77 123 123 0 -1").unwrap();
        assert_eq!((seen.state, seen.parent), ('T', Pid::from_raw(77)));
        assert!(parse("123 (a").is_none());
    }

    #[test]
    fn a_spared_child_lives_and_every_other_ends() {
        // In a process of its own: here it would end the children of other tests.
        let own = std::env::current_exe().unwrap();
        let name = "tree::tests::among_its_own_children";
        let status = Command::new(own).args([name, "--exact", "--ignored", "--test-threads=1"]).status();
        assert!(status.unwrap().success());
    }

    #[test]
    #[ignore = "is the process that the test above starts"]
    fn among_its_own_children() {
        let spawn = || Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let mut spared = spawn();
        let mut other = spawn();
        let keep = [Pid::from_raw(i32::try_from(spared.id()).unwrap())];
        assert!(has_children_but(&keep));
        assert!(end(&keep, Duration::from_secs(5), || {
            let _ = other.try_wait();
        }));
        assert!(spared.try_wait().unwrap().is_none());
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
}
