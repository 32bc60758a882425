//! What runs on this machine, as `/proc` tells it.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its real user.
    pub uid: u32,
    /// Its state, as `/proc/PID/stat` has it: `R`, `S`, `Z` and so on.
    pub state: char,
    /// Its command line, words separated by spaces; its name in brackets where it has none.
    pub command: String,
}

/// Every process, zombies too.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("reading /proc");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(read).collect()
}

/// One process; `None` where it is gone.
pub fn read(pid: u32) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()
    };
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    Some(Process {
        pid,
        parent: field("PPid")?.parse().ok()?,
        uid: field("Uid")?.parse().ok()?,
        state: field("State")?.chars().next()?,
        command: if command.is_empty() { format!("[{}]", field("Name")?) } else { command },
    })
}

/// The processes of a user.
pub fn of(uid: u32) -> Vec<Process> {
    all().into_iter().filter(|process| process.uid == uid).collect()
}

/// The children of a process, and theirs.
pub fn descendants(of: u32) -> Vec<Process> {
    let everything = all();
    let mut found = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for child in everything.iter().filter(|process| process.parent == parent) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// How many descriptors a process has open.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count).unwrap_or(0)
}

/// Resident memory of a process, KiB.
pub fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Everything that a process has mapped to write to and that can be read.
///
/// # Panics
/// Where the process is not there.
pub fn memory(pid: u32) -> Vec<u8> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("the maps");
    let mut file = File::open(format!("/proc/{pid}/mem")).expect("the memory");
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let bound = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let mut part = vec![0; usize::try_from(bound(to) - bound(from)).expect("a size")];
        if file.seek(SeekFrom::Start(bound(from))).is_ok() && file.read_exact(&mut part).is_ok() {
            all.extend(part);
        }
    }
    all
}

/// Asks until the answer is yes; how long that took.
///
/// # Panics
/// With `what` when it is still no after `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    loop {
        // The clock is read before asking: a yes that came in time counts, however slow the machine asks.
        let elapsed = begun.elapsed();
        if condition() {
            return elapsed;
        }
        assert!(elapsed < limit, "after {elapsed:?} still not: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing of a user runs any more, not even as a zombie; how long that took.
///
/// # Panics
/// With what is left after `limit`.
pub fn wait_until_gone(uid: u32, limit: Duration) -> Duration {
    let begun = Instant::now();
    loop {
        let elapsed = begun.elapsed();
        let left = of(uid);
        if left.is_empty() {
            return elapsed;
        }
        assert!(elapsed < limit, "after {elapsed:?} user {uid} still has: {left:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a child as a service manager would; its status, or `None` where it had to be killed.
pub fn stop(child: &mut Child) -> Option<ExitStatus> {
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Kills what is still there of these processes; what it was.
pub fn kill_left(of: &[Process]) -> Vec<Process> {
    let same =
        |one: &Process| read(one.pid).is_some_and(|now| now.command == one.command && now.uid == one.uid);
    let left: Vec<Process> = of.iter().filter(|one| same(one)).cloned().collect();
    for process in &left {
        if let Some(pid) = Pid::from_raw(process.pid.cast_signed()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    left
}
