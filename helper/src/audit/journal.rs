#![forbid(unsafe_code)]
//! The two files of the audit chain: `audit.jsonl`, to which lines are appended, and `audit.head`.
//!
//! The head is overwritten in place: its line is shorter than a disk's sector and never gets shorter, and
//! so the writer needs no system call that takes a path, as replacing the file by a new one would. It is
//! written after each line and put on disk after the lines; when it names a line that is not there, lines
//! are missing.

use super::chain::Position;
use super::record::{Kind, RECORD, Record};
use super::{recovery, time, volumes};
use crate::log;
use crate::paths::Paths;
use crate::trusted_file::{self, TrustedFileError};
use nix::errno::Errno;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// How often, and at what distance, we look whether the writer of a helper before us has ended.
const LOCK_ATTEMPTS: u32 = 50;
const LOCK_DISTANCE: Duration = Duration::from_millis(100);
/// Two of the longest lines: the last whole one is in there, whatever follows it.
pub(super) const TAIL: usize = 2 * (RECORD + 1024);

/// Why the chain cannot be continued.
#[derive(Debug)]
pub enum JournalError {
    /// A file is not trusted.
    File(TrustedFileError),
    /// A file cannot be read or locked.
    System(PathBuf, io::Error),
    /// Another helper writes the chain.
    Locked(PathBuf),
    /// The end of the file is no chain.
    NotAChain(PathBuf),
    /// While the helper ran, something was put in the place of the log.
    Replaced(PathBuf),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::System(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Locked(path) => {
                write!(f, "{}: another gloveport-helper writes it: stop that one first", path.display())
            }
            Self::Replaced(path) => write!(
                f,
                "{0} is another file than the one that the helper writes, and is not empty: nothing runs until \
                 it is moved away, or the helper restarted to go on in it",
                path.display()
            ),
            Self::NotAChain(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path} does not end in an audit record: look at it, and move it away to begin a new one"
                )
            }
        }
    }
}

impl std::error::Error for JournalError {}

/// The chain, open for appending.
#[derive(Debug)]
pub struct Journal {
    log: File,
    head: File,
    place: Position,
    /// Bytes of whole lines in the log.
    length: u64,
    /// Whether something may stand after them.
    ragged: bool,
    log_unsynced: bool,
    head_unsynced: bool,
    /// Records that must come before any other.
    owed: Vec<Record>,
    lost: Option<Lost>,
}

/// Records that could not be written.
#[derive(Debug)]
struct Lost {
    count: u64,
    since: String,
    errno: Errno,
}

impl Journal {
    /// Opens the chain, or begins one, and finds out where it goes on. The lock that keeps other helpers
    /// out belongs to the open file, so it goes with it into a process that is forked.
    ///
    /// # Errors
    /// A file is not trusted, written by another helper, or does not end in a chain.
    pub fn open(paths: &Paths, same_user: bool) -> Result<Self, JournalError> {
        let open = |path, append| trusted_file::open_own(path, append, same_user).map_err(JournalError::File);
        let log = open(&paths.audit, true)?;
        let head = open(&paths.audit_head, false)?;
        let system = |error| JournalError::System(paths.audit.clone(), error);
        lock(&log).map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::Locked(paths.audit.clone()),
            TryLockError::Error(error) => system(error),
        })?;
        let length = log.metadata().map_err(system)?.len();
        let full = if length == 0 { volumes::newest(&paths.audit).map_err(system)? } else { None };
        // The helper may have ended just after the file before was full.
        let (tail, is_all) = match full {
            Some(path) => tail(&open(&path, true)?).map_err(|error| JournalError::System(path, error))?,
            None => tail(&log).map_err(system)?,
        };
        let mut head_text = Vec::new();
        (&head)
            .take(1024)
            .read_to_end(&mut head_text)
            .map_err(|error| JournalError::System(paths.audit_head.clone(), error))?;
        let found = recovery::recover(&tail, is_all, &head_text)
            .ok_or_else(|| JournalError::NotAChain(paths.audit.clone()))?;
        let whole = length.saturating_sub(u64::try_from(found.torn).unwrap_or(0));
        Ok(Self {
            log,
            head,
            place: found.place,
            length: whole,
            ragged: whole != length,
            log_unsynced: false,
            head_unsynced: false,
            owed: found.records,
            lost: None,
        })
    }

    /// The log and the head: what the writer needs of all that is open.
    pub fn files(&self) -> [&File; 2] {
        [&self.log, &self.head]
    }

    /// Bytes of the log.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Goes on in an empty log, and says there first why.
    pub(super) fn go_on(&mut self, log: File, kind: Kind, why: &str) {
        if let Err(errno) = self.sync() {
            log::error(format_args!(
                "audit: the last records of a file may not be on disk: {}",
                errno.desc()
            ));
        }
        self.log = log;
        self.length = 0;
        self.ragged = false;
        self.say(kind, format!("{why}: it ends with record {}", self.place.seq));
    }

    /// Goes on with an empty head, and says so.
    pub(super) fn go_on_with_head(&mut self, head: File) {
        self.head = head;
        self.say(Kind::Gap, "audit.head was moved or removed while the helper ran".to_owned());
    }

    fn say(&mut self, kind: Kind, reason: String) {
        self.owed.push(Record { reason: Some(reason), ..Record::new(kind) });
    }

    /// Where the chain ends.
    pub(super) fn place(&self) -> Position {
        self.place
    }

    /// Appends a record, and before it those that are owed. It is not on disk yet.
    ///
    /// # Errors
    /// That of the write; the chain is then as it was, and the loss is recorded as soon as possible.
    pub(super) fn append(&mut self, json: &str) -> Result<Position, Errno> {
        let result = self.pay().and_then(|()| self.write(json));
        if let Err(errno) = result {
            let lost = self.lost.get_or_insert_with(|| Lost { count: 0, since: time::now(), errno });
            lost.count += 1;
        }
        result
    }

    /// Writes what is owed: first what was found at the start, then what was lost since.
    fn pay(&mut self) -> Result<(), Errno> {
        while let Some(record) = self.owed.first() {
            let json = record.to_json().ok_or(Errno::EMSGSIZE)?;
            self.write(&json)?;
            self.owed.remove(0);
        }
        if let Some(Lost { count, since, errno }) = &self.lost {
            let reason = format!("records could not be written since {since}: {}", errno.desc());
            let record = Record { count: Some(*count), reason: Some(reason), ..Record::new(Kind::Gap) };
            self.write(&record.to_json().ok_or(Errno::EMSGSIZE)?)?;
            self.lost = None;
        }
        Ok(())
    }

    fn write(&mut self, json: &str) -> Result<Position, Errno> {
        let (line, next) = self.place.next(&time::now(), json).ok_or(Errno::EINVAL)?;
        if self.ragged {
            self.log.set_len(self.length).map_err(errno)?;
            self.ragged = false;
        }
        if let Err(error) = self.log.write_all(line.as_bytes()) {
            // On a full disk a part of the line may stand there.
            self.ragged = self.log.set_len(self.length).is_err();
            return Err(errno(error));
        }
        self.length += u64::try_from(line.len()).unwrap_or(0);
        self.place = next;
        self.log_unsynced = true;
        self.head_unsynced = true;
        // A line is not taken back for its head: one that lags behind is put right by `settle`.
        let _ = self.write_head();
        Ok(next)
    }

    /// Puts all lines on disk.
    ///
    /// # Errors
    /// That of the disk.
    pub(super) fn sync(&mut self) -> Result<(), Errno> {
        if std::mem::take(&mut self.log_unsynced) {
            self.log.sync_data().map_err(errno)?;
        }
        Ok(())
    }

    fn write_head(&self) -> Result<(), Errno> {
        self.head.write_all_at(self.place.head().as_bytes(), 0).map_err(errno)
    }

    /// Writes what is owed, and puts all lines and then the head on disk.
    ///
    /// # Errors
    /// That of the disk.
    pub(super) fn settle(&mut self) -> Result<(), Errno> {
        let paid = self.pay();
        self.sync()?;
        if self.head_unsynced {
            self.write_head()?;
            self.head.sync_data().map_err(errno)?;
            self.head_unsynced = false;
        }
        paid
    }

    /// Whether something is not on disk yet.
    pub(super) fn is_unsettled(&self) -> bool {
        self.log_unsynced || self.head_unsynced
    }

    /// Whether records are owed that could not be written so far.
    pub(super) fn is_owing(&self) -> bool {
        self.lost.is_some() || !self.owed.is_empty()
    }
}

/// The end of a file that holds its last record for certain, and whether that is all of the file.
fn tail(log: &File) -> io::Result<(Vec<u8>, bool)> {
    let length = log.metadata()?.len();
    let start = length.saturating_sub(u64::try_from(TAIL).unwrap_or(u64::MAX));
    let mut tail = vec![0; usize::try_from(length - start).unwrap_or(0)];
    log.read_exact_at(&mut tail, start)?;
    Ok((tail, start == 0))
}

/// The writer of a helper that has just ended may still be writing its last records.
fn lock(log: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_ATTEMPTS {
        match log.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_DISTANCE),
            result => return result,
        }
    }
    log.try_lock()
}

fn errno(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
pub(super) mod tests;
