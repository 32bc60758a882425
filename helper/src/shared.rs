#![forbid(unsafe_code)]
//! The few numbers that the parent and its supervisors share: who runs what, who called how often, what was
//! coalesced, and which catalogue is in force.
//!
//! They live in a memory file, changed under a record lock (fcntl(2)). The kernel drops such a lock with the
//! process that holds it, so a killed supervisor can neither hold the others up nor keep its slot: the parent
//! clears it.

use hmac_sha256::Hash;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// Calls that may wait for a person at once, beside the runs.
pub const WAITING: u32 = 32;

/// Bytes of one number.
const NUMBER: u64 = 8;
/// Numbers of a slot (whose, which action, which caller) and of a rate (which caller, since when, how many).
const ROW: u64 = 3;
/// Where the generation of the catalogue is.
const GENERATION: u64 = 0;
/// Where the coalesced records are, two numbers for each kind.
const COALESCED: u64 = 1;
/// Where the rates are: before the slots, of which there are as many as the command line says.
const RATES: u64 = 5;
/// Callers with a rate in one minute. Only callers of the tokens file come here, so it cannot be filled up
/// from outside; should it ever be full, more are refused.
const RATED: u64 = 1024;
/// Where the slots are: first those of the runs, then those of the calls that wait.
const SLOTS: u64 = RATES + RATED * ROW;
/// The time that a rate counts over.
const MINUTE: u64 = 60_000;

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
            Self::Notes => COALESCED,
            Self::Malformed => COALESCED + 2,
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

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A run.
    Run,
    /// Waiting for a person's decision.
    Wait,
}

/// Who wants a slot for what, and how many of them there may be.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The supervisor.
    pub pid: Pid,
    /// The action.
    pub action: &'a str,
    /// Its runs at once.
    pub concurrency: u32,
    /// The caller, by a name that no other caller has.
    pub caller: &'a str,
    /// The caller's runs at once.
    pub at_once: Option<u32>,
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// The slot is taken.
    Yes,
    /// All slots are taken, in total or for this action.
    Busy,
    /// The caller has as many at once as it may.
    AtOnce,
}

/// The shared table.
#[derive(Debug)]
pub struct Shared {
    file: File,
    runs: u32,
}

impl Shared {
    /// Makes a table with slots for so many runs, all free.
    ///
    /// # Errors
    /// Those of memfd_create(2).
    pub fn new(runs: u32) -> io::Result<Self> {
        let file = File::from(memfd_create(c"gloveport-shared", MFdFlags::MFD_CLOEXEC)?);
        file.set_len((SLOTS + u64::from(runs + WAITING) * ROW) * NUMBER)?;
        Ok(Self { file, runs })
    }

    /// The number of the catalogue in force, which no other one in this helper's life has.
    ///
    /// # Errors
    /// Those of the file.
    pub fn generation(&self) -> io::Result<u64> {
        self.get(GENERATION)
    }

    /// Another catalogue is in force.
    ///
    /// # Errors
    /// Those of the file.
    pub fn set_generation(&self, generation: u64) -> io::Result<()> {
        self.set(GENERATION, generation)
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// Those of the lock and the file.
    pub fn claim(&self, purpose: Purpose, claim: Claim<'_>) -> io::Result<Claimed> {
        let (action, caller) = (mark(claim.action), mark(claim.caller));
        self.locked(|| {
            let slots = self.slots(purpose)?;
            let taken = |which: fn(&[u64; ROW as usize]) -> u64, wanted: u64| {
                let count = slots.iter().filter(|slot| !is_free(slot) && which(slot) == wanted).count();
                u32::try_from(count).unwrap_or(u32::MAX)
            };
            if claim.at_once.is_some_and(|most| taken(|[_, _, caller]| *caller, caller) >= most) {
                return Ok(Claimed::AtOnce);
            }
            if taken(|[_, action, _]| *action, action) >= claim.concurrency {
                return Ok(Claimed::Busy);
            }
            let Some(free) = slots.iter().position(is_free) else {
                return Ok(Claimed::Busy);
            };
            let at = self.first_slot(purpose) + free as u64 * ROW;
            self.set_row(at, [u64::try_from(claim.pid.as_raw()).unwrap_or(u64::MAX), action, caller])?;
            Ok(Claimed::Yes)
        })
    }

    /// Frees the slots of a supervisor, of one purpose or all.
    ///
    /// # Errors
    /// Those of the file.
    pub fn free(&self, pid: Pid, purposes: &[Purpose]) -> io::Result<()> {
        let pid = u64::try_from(pid.as_raw()).unwrap_or(u64::MAX);
        for purpose in purposes {
            let first = self.first_slot(*purpose);
            for (at, _) in (0..).zip(self.slots(*purpose)?).filter(|(_, [owner, _, _])| *owner == pid) {
                self.set_row(first + at * ROW, [0; ROW as usize])?;
            }
        }
        Ok(())
    }

    /// Runs in progress.
    pub fn runs(&self) -> u32 {
        let slots = self.slots(Purpose::Run).unwrap_or_default();
        u32::try_from(slots.iter().filter(|slot| !is_free(slot)).count()).unwrap_or(u32::MAX)
    }

    fn first_slot(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Run => SLOTS,
            Purpose::Wait => SLOTS + u64::from(self.runs) * ROW,
        }
    }

    fn slots(&self, purpose: Purpose) -> io::Result<Vec<[u64; ROW as usize]>> {
        let count = if purpose == Purpose::Run { self.runs } else { WAITING };
        self.rows(self.first_slot(purpose), count.into())
    }

    /// Counts a call of a caller that may make so many in a minute, which begins with the first of them.
    /// `Some`: one too many, and how long it takes until the next may come. `now` is in milliseconds of a
    /// clock that all processes share.
    ///
    /// # Errors
    /// Those of the lock and the file.
    pub fn count_call(&self, caller: &str, per_minute: u32, now: u64) -> io::Result<Option<Duration>> {
        let caller = mark(caller);
        self.locked(|| {
            let rates = self.rows(RATES, RATED)?;
            let is_over = |since: u64| now.saturating_sub(since) >= MINUTE;
            let own = rates.iter().position(|[whose, ..]| *whose == caller);
            let reusable = || rates.iter().position(|[whose, since, _]| *whose == 0 || is_over(*since));
            let Some(at) = own.or_else(reusable) else {
                return Ok(Some(Duration::from_millis(MINUTE)));
            };
            let (since, count) = match rates.get(at) {
                Some([whose, since, count]) if *whose == caller && !is_over(*since) => (*since, *count),
                _ => (now, 0),
            };
            if count >= u64::from(per_minute) {
                return Ok(Some(Duration::from_millis(MINUTE - now.saturating_sub(since))));
            }
            self.set_row(RATES + at as u64 * ROW, [caller, since, count + 1])?;
            Ok(None)
        })
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

    fn get(&self, place: u64) -> io::Result<u64> {
        let mut bytes = [0; NUMBER as usize];
        self.file.read_exact_at(&mut bytes, place * NUMBER)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set(&self, place: u64, value: u64) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), place * NUMBER)
    }

    fn rows(&self, first: u64, count: u64) -> io::Result<Vec<[u64; ROW as usize]>> {
        let mut bytes = vec![0; (count * ROW * NUMBER) as usize];
        self.file.read_exact_at(&mut bytes, first * NUMBER)?;
        let numbers: Vec<u64> =
            bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        Ok(numbers.as_chunks().0.to_vec())
    }

    fn set_row(&self, first: u64, row: [u64; ROW as usize]) -> io::Result<()> {
        self.file.write_all_at(row.map(u64::to_le_bytes).as_flattened(), first * NUMBER)
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

fn is_free(slot: &[u64; ROW as usize]) -> bool {
    matches!(slot, [0, ..])
}

/// A name as a number that is never 0: names outlive a reload, places in a catalogue do not.
fn mark(name: &str) -> u64 {
    let digest = Hash::hash(name.as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    number.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(shared: &Shared, pid: i32, action: &str, caller: &str, at_once: Option<u32>) -> Claimed {
        let pid = Pid::from_raw(pid);
        shared.claim(Purpose::Run, Claim { pid, action, concurrency: 2, caller, at_once }).unwrap()
    }

    #[test]
    fn an_action_runs_as_often_at_once_as_it_may() {
        let shared = Shared::new(4).unwrap();
        assert_eq!(claim(&shared, 10, "disk", "a", None), Claimed::Yes);
        assert_eq!(claim(&shared, 11, "disk", "b", None), Claimed::Yes);
        assert_eq!(claim(&shared, 12, "disk", "c", None), Claimed::Busy);
        assert_eq!(claim(&shared, 12, "other", "c", None), Claimed::Yes);
        assert_eq!(shared.runs(), 3);
        shared.free(Pid::from_raw(10), &[Purpose::Run, Purpose::Wait]).unwrap();
        assert_eq!(claim(&shared, 13, "disk", "a", None), Claimed::Yes);
        assert_eq!(claim(&shared, 14, "more", "a", None), Claimed::Yes);
        assert_eq!(claim(&shared, 15, "most", "a", None), Claimed::Busy, "all slots are taken");
    }

    #[test]
    fn a_caller_has_as_many_runs_at_once_as_it_may_whatever_they_are() {
        let shared = Shared::new(4).unwrap();
        assert_eq!(claim(&shared, 10, "disk", "ci", Some(2)), Claimed::Yes);
        assert_eq!(claim(&shared, 11, "log", "ci", Some(2)), Claimed::Yes);
        assert_eq!(claim(&shared, 12, "mail", "ci", Some(2)), Claimed::AtOnce);
        assert_eq!(claim(&shared, 12, "mail", "other", Some(2)), Claimed::Yes);
        shared.free(Pid::from_raw(11), &[Purpose::Run]).unwrap();
        assert_eq!(claim(&shared, 13, "mail", "ci", Some(2)), Claimed::Yes);
    }

    #[test]
    fn who_waits_takes_no_slot_of_the_runs() {
        let shared = Shared::new(1).unwrap();
        let pid = Pid::from_raw(10);
        let wanted = Claim { pid, action: "disk", concurrency: 8, caller: "ci", at_once: None };
        assert_eq!(shared.claim(Purpose::Wait, wanted).unwrap(), Claimed::Yes);
        assert_eq!(shared.runs(), 0);
        assert_eq!(shared.claim(Purpose::Run, wanted).unwrap(), Claimed::Yes);
        shared.free(pid, &[Purpose::Wait]).unwrap();
        assert_eq!(shared.runs(), 1);
    }

    #[test]
    fn a_caller_makes_as_many_calls_a_minute_as_it_may() {
        let shared = Shared::new(1).unwrap();
        let call = |caller: &str, now| shared.count_call(caller, 2, now).unwrap();
        assert_eq!(call("ci", 5_000), None);
        assert_eq!(call("ci", 30_000), None);
        assert_eq!(call("ci", 64_000), Some(Duration::from_secs(1)));
        assert_eq!(call("other", 64_000), None);
        assert_eq!(call("ci", 65_000), None, "a minute after the first one");
    }

    #[test]
    fn more_callers_than_are_counted_are_refused_and_forgotten_after_a_minute() {
        let shared = Shared::new(1).unwrap();
        for caller in 0..RATED {
            assert_eq!(shared.count_call(&caller.to_string(), 1, 0).unwrap(), None);
        }
        assert!(shared.count_call("one more", 1, 0).unwrap().is_some());
        assert_eq!(shared.count_call("one more", 1, MINUTE).unwrap(), None);
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
