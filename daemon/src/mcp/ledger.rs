#![forbid(unsafe_code)]
//! The runs in progress, and the results that are kept for a caller who comes back: in memory only, bounded in
//! number, bytes and time, and each for the one who started the run.

use super::result::ToolResult;
use crate::run::live::{Live, Phase, SoFar};
use gloveport_contract::catalog::Risk;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::Instant;

/// Results that are kept for one caller. One more puts out the caller's oldest.
const OF_ONE: usize = 16;
/// Results that are kept for all.
const OF_ALL: usize = 256;
/// Bytes of all results that are kept; the daemon's unit has 512 MiB in all. Over this, or over the number, the
/// oldest of whoever holds most makes room: nobody can put out the results of others by making many.
const BYTES: usize = 48 * 1024 * 1024;

/// All runs. Cheap to clone.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    next: u64,
    runs: Vec<Entry>,
}

struct Entry {
    serial: u64,
    owner: Owner,
    action: String,
    risk: Risk,
    live: Arc<Live>,
    /// Closed when the run has ended.
    ended: watch::Receiver<()>,
    kept: Option<Kept>,
}

struct Kept {
    result: ToolResult,
    size: usize,
    until: Instant,
}

/// Who started a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// What tells callers apart.
    pub key: String,
    /// The name that people know the caller by.
    pub name: String,
}

/// A run as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The helper's id; empty until it has one.
    pub run: String,
    /// The action.
    pub action: String,
    /// Who started it.
    pub caller: String,
    /// What it is doing: `asked for`, `waiting for approval`, `running` or `finished`.
    pub state: String,
    /// When it was asked for, seconds since 1970-01-01 UTC.
    pub since: u64,
    /// For how long it has been there, milliseconds; absent when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// Raw bytes that it has written.
    pub bytes: u64,
    /// How long its result can still be fetched, seconds; absent while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for_s: Option<u64>,
}

/// A run that somebody asked for by its id.
pub enum Found {
    /// It goes on.
    Going {
        /// What there is to say of it.
        seen: Seen,
        /// What it has written.
        so_far: SoFar,
        /// Closed when it ends.
        ended: watch::Receiver<()>,
    },
    /// It is over.
    Over {
        /// What there is to say of it.
        seen: Seen,
        /// Its result.
        result: ToolResult,
    },
}

/// A run in progress. When this is dropped it has ended, and without [`Going::keep`] nothing is left of it.
pub struct Going {
    ledger: Ledger,
    serial: u64,
    _ended: watch::Sender<()>,
}

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        entries.runs.retain(|entry| entry.kept.as_ref().is_none_or(|kept| kept.until > now));
        entries
    }

    /// Takes note of a run that begins.
    pub fn begin(&self, owner: Owner, action: &str, risk: Risk, live: Arc<Live>) -> Going {
        let (sender, ended) = watch::channel(());
        let mut entries = self.entries();
        let serial = entries.next;
        entries.next += 1;
        let action = action.to_owned();
        entries.runs.push(Entry { serial, owner, action, risk, live, ended, kept: None });
        Going { ledger: self.clone(), serial, _ended: sender }
    }

    /// The runs of that caller, or all, the oldest first.
    pub fn list(&self, owner: Option<&str>) -> Vec<Seen> {
        let entries = self.entries();
        let wanted = |entry: &&Entry| owner.is_none_or(|owner| entry.owner.key == owner);
        entries.runs.iter().filter(wanted).map(Entry::seen).collect()
    }

    /// The run of that id, where it is that caller's. `permits` says whether the caller may still call its action.
    pub fn find(&self, id: &str, owner: &str, permits: impl Fn(&str, Risk) -> bool) -> Option<Found> {
        let entries = self.entries();
        let entry = entries.runs.iter().find(|entry| {
            entry.owner.key == owner
                && entry.live.id().as_deref() == Some(id)
                && permits(&entry.action, entry.risk)
        })?;
        let seen = entry.seen();
        Some(match &entry.kept {
            Some(kept) => Found::Over { seen, result: kept.result.clone() },
            None => Found::Going { seen, so_far: entry.live.so_far(), ended: entry.ended.clone() },
        })
    }

    /// Withdraws the call of that id in its caller's name, where it still waits for a person.
    pub fn withdraw(&self, id: &str, owner: &str) {
        let waits = |entry: &&Entry| {
            entry.live.phase() == Phase::Waiting
                && entry.owner.key == owner
                && entry.live.id().as_deref() == Some(id)
        };
        if let Some(entry) = self.entries().runs.iter().find(waits) {
            entry.live.end("the client's user");
        }
    }

    /// Ends the run of that id, where it is that caller's, or anybody's where none is named. Whether one was in
    /// progress.
    pub fn end(&self, id: &str, owner: Option<&str>, by: &str) -> bool {
        let entries = self.entries();
        let run = entries.runs.iter().find(|entry| {
            entry.kept.is_none()
                && owner.is_none_or(|owner| entry.owner.key == owner)
                && entry.live.id().as_deref() == Some(id)
        });
        run.inspect(|entry| entry.live.end(by)).is_some()
    }
}

impl Going {
    /// Keeps the result of this run, which is over, for that long.
    pub fn keep(self, result: ToolResult, time: Duration) {
        let structured = result.structured.as_ref().map_or(0, |value| value.to_string().len());
        let size = result.text.len() + structured;
        if size > BYTES {
            return;
        }
        let until = Instant::now() + time;
        {
            let mut entries = self.ledger.entries();
            if let Some(entry) = entries.runs.iter_mut().find(|entry| entry.serial == self.serial) {
                entry.kept = Some(Kept { result, size, until });
            }
            entries.make_room();
        }
        let ledger = self.ledger.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            // Looking is enough to forget what is over.
            drop(ledger.entries());
        });
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let mut entries = self.ledger.entries();
        entries.runs.retain(|entry| entry.serial != self.serial || entry.kept.is_some());
    }
}

impl Entries {
    /// Forgets the oldest results until all bounds hold.
    fn make_room(&mut self) {
        while let Some(owner) = self.to_forget_of()
            && let Some(oldest) =
                self.runs.iter().position(|entry| entry.kept.is_some() && entry.owner.key == owner)
        {
            self.runs.remove(oldest);
        }
    }

    /// Who must lose a result; `None` where there is room.
    fn to_forget_of(&self) -> Option<String> {
        let mut held: Vec<(&str, usize, usize)> = Vec::new();
        for (entry, kept) in self.runs.iter().filter_map(|entry| Some((entry, entry.kept.as_ref()?))) {
            match held.iter_mut().find(|(owner, ..)| *owner == entry.owner.key) {
                Some((_, number, bytes)) => (*number, *bytes) = (*number + 1, *bytes + kept.size),
                None => held.push((&entry.owner.key, 1, kept.size)),
            }
        }
        let number: usize = held.iter().map(|(_, number, _)| number).sum();
        let bytes: usize = held.iter().map(|(.., bytes)| bytes).sum();
        let over = held.iter().find(|(_, number, _)| *number > OF_ONE);
        let most = || {
            let by_share = |held: &&(&str, usize, usize)| if bytes > BYTES { held.2 } else { held.1 };
            held.iter().max_by_key(by_share).filter(|_| number > OF_ALL || bytes > BYTES)
        };
        over.or_else(most).map(|(owner, ..)| (*owner).to_owned())
    }
}

impl Entry {
    fn seen(&self) -> Seen {
        let since = self.live.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let left = |kept: &Kept| kept.until.saturating_duration_since(Instant::now()).as_secs();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Seen {
            run: self.live.id().unwrap_or_default(),
            action: self.action.clone(),
            caller: self.owner.name.clone(),
            state: if self.kept.is_some() { "finished" } else { self.live.phase().as_str() }.to_owned(),
            since: since.as_secs(),
            elapsed_ms: self.kept.is_none().then(|| millis(self.live.elapsed())),
            bytes: self.live.bytes(),
            kept_for_s: self.kept.as_ref().map(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gloveport_contract::catalog::Escapes;

    const AN_HOUR: Duration = Duration::from_secs(3600);

    fn owner(key: &str) -> Owner {
        Owner { key: key.to_owned(), name: key.to_owned() }
    }

    fn begun(ledger: &Ledger, key: &str, id: &str) -> Going {
        let live = Arc::new(Live::default());
        live.answered(id, Phase::Running, Escapes::Visible);
        ledger.begin(owner(key), "backup", Risk::Read, live)
    }

    fn kept(ledger: &Ledger, key: &str, id: &str, size: usize) {
        begun(ledger, key, id).keep(ToolResult::failure("x".repeat(size)), AN_HOUR);
    }

    fn is_there(ledger: &Ledger, key: &str, id: &str) -> bool {
        ledger.find(id, key, |_, _| true).is_some()
    }

    #[tokio::test]
    async fn a_run_is_listed_while_it_goes_on_and_only_its_own_caller_finds_it() {
        let ledger = Ledger::default();
        let going = begun(&ledger, "a", "7");
        assert_eq!((ledger.list(None).len(), ledger.list(Some("b")).len()), (1, 0));
        assert!(is_there(&ledger, "a", "7") && !is_there(&ledger, "b", "7") && !is_there(&ledger, "a", "8"));
        assert!(ledger.find("7", "a", |_, risk| risk != Risk::Read).is_none());
        assert!(!ledger.end("7", Some("b"), "b") && ledger.end("7", None, "root"));
        drop(going);
        assert!(ledger.list(None).is_empty());
    }

    #[tokio::test]
    async fn a_result_is_kept_for_its_time_and_not_longer() {
        let time = Duration::from_secs(2);
        let ledger = Ledger::default();
        let going = begun(&ledger, "a", "7");
        let Some(Found::Going { mut ended, .. }) = ledger.find("7", "a", |_, _| true) else {
            panic!("it goes on")
        };
        going.keep(ToolResult::failure("done"), time);
        assert!(ended.changed().await.is_err(), "who waits for it is woken");
        let Some(Found::Over { seen, result }) = ledger.find("7", "a", |_, _| true) else {
            panic!("it is over")
        };
        assert_eq!(
            (result.text.as_str(), seen.state.as_str(), seen.kept_for_s),
            ("done", "finished", Some(1))
        );
        assert!(!is_there(&ledger, "b", "7") && !ledger.end("7", Some("a"), "a"));
        let gone = async {
            while !ledger.0.lock().expect("ledger").runs.is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(20), gone).await.is_ok(),
            "nobody has to look for it"
        );
    }

    #[tokio::test]
    async fn who_makes_many_puts_out_no_result_but_their_own() {
        let ledger = Ledger::default();
        kept(&ledger, "b", "b", 10);
        (0..OF_ONE + 1).for_each(|n| kept(&ledger, "a", &n.to_string(), 10));
        assert!(!is_there(&ledger, "a", "0") && is_there(&ledger, "a", "1") && is_there(&ledger, "b", "b"));
        kept(&ledger, "a", "large", BYTES / 2);
        kept(&ledger, "a", "larger", BYTES / 2 + 1);
        assert!(!is_there(&ledger, "a", "large") && is_there(&ledger, "a", "larger"));
        assert!(is_there(&ledger, "b", "b"));
        kept(&ledger, "c", "too large", BYTES + 1);
        assert!(!is_there(&ledger, "c", "too large"));
        for n in 0..OF_ALL {
            kept(&ledger, &format!("one of many {n}"), "x", 10);
        }
        assert!(ledger.list(None).len() <= OF_ALL);
    }
}
