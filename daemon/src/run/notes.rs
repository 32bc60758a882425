#![forbid(unsafe_code)]
//! Refusals that only the daemon saw, for the audit log: sent one after another, a bounded number a minute.

use super::NOBODY;
use crate::helper::{Connection, Peer};
use crate::log::{self, Level};
use crate::paths::Paths;
use crate::policy::Policy;
use gloveport_contract::packet::{Caller, Note, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::{Instant, sleep_until, timeout};

/// Notes that wait.
const QUEUE: usize = 64;
/// Notes in one period; more would let a client fill the audit log.
const PER_PERIOD: u32 = 60;
const PERIOD: Duration = Duration::from_secs(60);

/// The ways to the helper for notes. Who has shown nothing valid cannot use up the room of those who have.
pub struct Notes {
    callers: Bucket,
    strangers: Bucket,
}

impl Notes {
    /// Starts the senders. They end when this is dropped.
    pub fn new(paths: Paths, peer: Peer) -> Self {
        Self { callers: Bucket::new(paths.clone(), peer), strangers: Bucket::new(paths, peer) }
    }

    /// Queues a note about somebody who was recognised; a full queue drops it.
    pub fn send(&self, note: Note) {
        self.callers.send(note);
    }

    /// Queues a note about somebody who was not.
    pub fn send_stranger(&self, note: Note) {
        self.strangers.send(note);
    }
}

/// One queue with a budget of its own.
struct Bucket {
    queue: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
}

impl Bucket {
    fn new(paths: Paths, peer: Peer) -> Self {
        let (queue, notes) = mpsc::channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = Sender { notes, dropped: dropped.clone(), paths, peer };
        tokio::spawn(sender.send_all());
        Self { queue, dropped }
    }

    fn send(&self, note: Note) {
        if let Err(TrySendError::Full(note)) = self.queue.try_send(note) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            log::write(Level::Warning, format_args!("not recorded, too many at once: {}", line(&note)));
        }
    }
}

/// The other end of a queue.
struct Sender {
    notes: mpsc::Receiver<Note>,
    /// How many were left out since that was last recorded.
    dropped: Arc<AtomicU64>,
    paths: Paths,
    peer: Peer,
}

impl Sender {
    async fn send_all(mut self) {
        let mut end = Instant::now() + PERIOD;
        let mut left = PER_PERIOD;
        loop {
            if Instant::now() >= end {
                (end, left) = (Instant::now() + PERIOD, PER_PERIOD);
            }
            // In a flood only once a period, so that its number does not take the room of what it counts.
            let calm = left == PER_PERIOD || (left > 0 && self.notes.is_empty());
            let dropped = if calm { self.dropped.swap(0, Ordering::Relaxed) } else { 0 };
            if dropped > 0 {
                left -= 1;
                self.record(dropped_note(dropped)).await;
            }
            let waiting = self.dropped.load(Ordering::Relaxed) > 0;
            let note = tokio::select! {
                note = self.notes.recv() => note,
                _ = sleep_until(end), if waiting => continue,
            };
            let Some(note) = note else { return };
            log::write(Level::Info, format_args!("refused: {}", line(&note)));
            if note.rule == NOBODY
                && let Some(problem) = tokens_problem(&self.paths)
            {
                log::write(Level::Error, format_args!("{problem}. Until then no token is accepted"));
            }
            if Instant::now() < end && left == 0 {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            left = left.saturating_sub(1);
            if left == 0 {
                log::write(Level::Warning, "many refusals: the next ones of this minute go to this log only");
            }
            self.record(note).await;
        }
    }

    async fn record(&self, note: Note) {
        let answered = async {
            // The helper answers a note by closing.
            Connection::open(&self.paths.helper_socket, self.peer, &Request::Note(note)).await?.next().await
        };
        if let Ok(Err(error)) = timeout(PERIOD, answered).await {
            log::write(Level::Warning, format_args!("a refusal was not recorded: {error}"));
        }
    }
}

/// Why no token at all can be accepted, where that is so: nobody who was refused is to blame.
fn tokens_problem(paths: &Paths) -> Option<String> {
    match Policy::has_tokens(paths) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "{} does not exist or holds no token: `gloveport token add` makes one",
            paths.tokens.display()
        )),
        Err(problem) => Some(format!("the tokens cannot be read: {problem}")),
    }
}

/// What stands in the record for those that were left out.
fn dropped_note(count: u64) -> Note {
    Note {
        caller: Caller::default(),
        action: String::new(),
        rule: "dropped".to_owned(),
        detail: format!("{count} refusals like these were not recorded"),
    }
}

fn line(note: &Note) -> String {
    format!("{} by {} (rule: {}): {}", note.action, note.caller.peer, note.rule, note.detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_file_that_is_broken_or_missing_is_named_with_the_reason() {
        let dir = std::env::temp_dir().join(format!("gloveport-notes-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("directory");
        let paths = Paths::for_state(&dir);
        let problem = tokens_problem(&paths).expect("missing");
        assert!(problem.contains("tokens.json does not exist"), "{problem}");
        std::fs::write(&paths.tokens, "{\"tokens\": [").expect("write");
        let problem = tokens_problem(&paths).expect("broken");
        assert!(problem.contains("tokens.json: EOF while parsing"), "{problem}");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}
