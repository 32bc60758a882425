#![forbid(unsafe_code)]
//! The few numbers that the parent and its supervisors share: who runs what, and what was coalesced.
//!
//! They live in a memory file, changed under a record lock (fcntl(2)). The kernel drops such a lock with the
//! process that holds it, so a killed supervisor can neither hold the others up nor keep its slot: the parent
//! clears it.

use hmac_sha256::Hash;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;

/// Bytes of one entry.
const ENTRY: u64 = 8;
/// Entries before the slots: two per kind of coalesced record.
const COALESCED: u64 = 4;

/// A kind of record of which a hostile daemon could cause any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coalesced {
    /// Refusals that the daemon reports.
    Notes,
    /// Requests that are none.
    Malformed,
}

impl Coalesced {
    /// Where its two entries are: the minute, and how many in it.
    fn place(self) -> u64 {
        match self {
            Self::Notes => 0,
            Self::Malformed => 2,
        }
    }

    /// Records of this kind in one minute; what is above is counted, and the count is recorded later.
    fn per_minute(self) -> u32 {
        match self {
            Self::Notes => 600,
            Self::Malformed => 30,
        }
    }
}

/// The shared table.
#[derive(Debug)]
pub struct Shared {
    file: File,
    slots: u32,
}

impl Shared {
    /// Makes a table with so many slots, all free.
    ///
    /// # Errors
    /// Those of memfd_create(2).
    pub fn new(slots: u32) -> io::Result<Self> {
        let file = File::from(memfd_create(c"gloveport-shared", MFdFlags::MFD_CLOEXEC)?);
        file.set_len((COALESCED + u64::from(slots)) * ENTRY)?;
        Ok(Self { file, slots })
    }

    /// Takes the slot for a run of an action; `false` when as many runs of it are in progress as may be.
    ///
    /// # Errors
    /// Those of the lock and the file.
    pub fn claim(&self, slot: u32, action: &str, concurrency: u32) -> io::Result<bool> {
        let mark = mark(action);
        self.locked(|| {
            let same = self.slots()?.iter().filter(|other| **other == mark).count();
            if u32::try_from(same).is_ok_and(|same| same >= concurrency) {
                return Ok(false);
            }
            self.set(COALESCED + u64::from(slot), mark)?;
            Ok(true)
        })
    }

    /// Frees a slot whose supervisor has gone.
    ///
    /// # Errors
    /// Those of the file.
    pub fn free(&self, slot: u32) -> io::Result<()> {
        self.set(COALESCED + u64::from(slot), 0)
    }

    /// Runs in progress.
    pub fn runs(&self) -> u32 {
        let taken = self.slots().unwrap_or_default().iter().filter(|slot| **slot != 0).count();
        u32::try_from(taken).unwrap_or(u32::MAX)
    }

    fn slots(&self) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; self.slots as usize * ENTRY as usize];
        self.file.read_exact_at(&mut bytes, COALESCED * ENTRY)?;
        let (entries, _) = bytes.as_chunks();
        Ok(entries.iter().map(|entry| u64::from_le_bytes(*entry)).collect())
    }

    /// How many events a record of this kind stands for, made in this minute: itself and those that were
    /// not recorded before it. `None`: too many in this minute already, this one is only counted.
    ///
    /// # Errors
    /// Those of the lock and the file.
    pub fn admit(&self, kind: Coalesced, minute: u64) -> io::Result<Option<u64>> {
        let place = kind.place();
        self.locked(|| {
            let limit = u64::from(kind.per_minute());
            let (then, count) = (self.get(place)?, self.get(place + 1)?);
            self.set(place, minute)?;
            if then != minute {
                self.set(place + 1, 1)?;
                return Ok(Some(1 + count.saturating_sub(limit)));
            }
            self.set(place + 1, count.saturating_add(1))?;
            Ok((count < limit).then_some(1))
        })
    }

    fn get(&self, entry: u64) -> io::Result<u64> {
        let mut bytes = [0; ENTRY as usize];
        self.file.read_exact_at(&mut bytes, entry * ENTRY)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set(&self, entry: u64, value: u64) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), entry * ENTRY)
    }

    fn locked<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        fcntl(&self.file, FcntlArg::F_SETLKW(&lock(libc::F_WRLCK)))?;
        let result = act();
        fcntl(&self.file, FcntlArg::F_SETLK(&lock(libc::F_UNLCK)))?;
        result
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A lock on the whole file.
fn lock(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// An action's name as a number that is never 0: names outlive a reload, places in a catalogue do not.
fn mark(action: &str) -> u64 {
    let digest = Hash::hash(action.as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    number.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_runs_as_often_at_once_as_it_may() {
        let shared = Shared::new(4).unwrap();
        assert!(shared.claim(0, "disk", 2).unwrap());
        assert!(shared.claim(1, "disk", 2).unwrap());
        assert!(!shared.claim(2, "disk", 2).unwrap());
        assert!(shared.claim(2, "other", 2).unwrap());
        assert_eq!(shared.runs(), 3);
        shared.free(0).unwrap();
        assert!(shared.claim(0, "disk", 2).unwrap());
    }

    #[test]
    fn what_is_above_the_rate_is_counted_and_told_in_the_next_minute() {
        let shared = Shared::new(1).unwrap();
        for _ in 0..30 {
            assert_eq!(shared.admit(Coalesced::Malformed, 7).unwrap(), Some(1));
        }
        for _ in 0..5 {
            assert_eq!(shared.admit(Coalesced::Malformed, 7).unwrap(), None);
        }
        assert_eq!(shared.admit(Coalesced::Notes, 7).unwrap(), Some(1));
        assert_eq!(shared.admit(Coalesced::Malformed, 9).unwrap(), Some(6));
        assert_eq!(shared.admit(Coalesced::Malformed, 9).unwrap(), Some(1));
    }
}
