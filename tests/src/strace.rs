//! System calls of running processes: recorded, or made to fail.

use crate::processes;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A system call as strace prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments, without the brackets.
    pub arguments: String,
    /// What it returned: a number, or `-1 ENAME (text)`.
    pub result: String,
}

/// strace, attached to a process. It lets go when it is dropped.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    files: PathBuf,
}

impl Strace {
    /// Attaches to processes that wait in a system call, and to whatever they fork from now on, with further
    /// words such as `-einject=setgroups:error=EPERM`. `pids` tells which ones there are at the moment, the one
    /// that forks last; where that has changed meanwhile, it is done again. What is recorded lies in a file for each process, whose
    /// names begin with `files`.
    ///
    /// # Panics
    /// Where strace does not come to attach.
    pub fn attach(pids: &dyn Fn() -> Vec<u32>, files: &Path, words: &[String]) -> Self {
        for _ in 0..5 {
            let first = pids();
            let this = Self::start(&first, files, words);
            // The call that a process waits in is begun again, and is the first one of its record. Before
            // that strace may hold the process without looking at its calls yet.
            let has_begun = |pid: &u32| {
                let record = format!("{}.{pid}", files.display());
                fs::metadata(record).is_ok_and(|file| file.len() > 0)
            };
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(5) {
                // Only then is looked which ones there are: one that is forked from now on is followed.
                if first.last().is_some_and(has_begun) && pids().iter().all(has_begun) {
                    return this;
                }
                sleep(Duration::from_millis(5));
            }
        }
        panic!("strace does not attach to {:?}", pids());
    }

    fn start(pids: &[u32], files: &Path, words: &[String]) -> Self {
        let child = Command::new("strace")
            .args(["-q", "-f", "-ff", "-s", "200", "-o"])
            .arg(files)
            .args(words)
            .args(pids.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("strace (package strace)");
        Self { child, files: files.to_owned() }
    }

    /// Lets go; the calls of each process, in order.
    pub fn finish(mut self) -> Vec<Vec<Call>> {
        self.let_go();
        let directory = self.files.parent().expect("a file in a directory");
        let prefix = format!("{}.", self.files.file_name().expect("a name").to_string_lossy());
        let entries = fs::read_dir(directory).expect("the directory of the record").flatten();
        let files = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        files
            .filter_map(|entry| fs::read(entry.path()).ok())
            .map(|text| String::from_utf8_lossy(&text).lines().filter_map(parse).collect())
            .collect()
    }

    fn let_go(&mut self) {
        let _ = processes::stop(&mut self.child);
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// A line of the record; `None` for signals and ends.
fn parse(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().trim_end_matches(')');
    Some(Call { name: name.into(), arguments: arguments.into(), result: result.trim().into() })
}
