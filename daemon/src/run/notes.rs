#![forbid(unsafe_code)]
//! Refusals that only the daemon saw, for the audit log: sent one after another, a bounded number a minute.

use crate::helper::{Connection, Peer};
use crate::log::{self, Level};
use gloveport_contract::packet::{Note, Request};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;

/// Notes that wait.
const QUEUE: usize = 64;
/// Notes in one period; more would let a client fill the audit log.
const PER_PERIOD: u32 = 60;
const PERIOD: Duration = Duration::from_secs(60);

/// The way to the helper for notes.
pub struct Notes(mpsc::Sender<Note>);

impl Notes {
    /// Starts the sender. It ends when this is dropped.
    pub fn new(socket: PathBuf, peer: Peer) -> Self {
        let (notes, queue) = mpsc::channel(QUEUE);
        tokio::spawn(send_all(queue, socket, peer));
        Self(notes)
    }

    /// Queues a note; a full queue drops it.
    pub fn send(&self, note: Note) {
        if let Err(TrySendError::Full(note)) = self.0.try_send(note) {
            log::write(Level::Warning, format_args!("not recorded, too many at once: {}", line(&note)));
        }
    }
}

async fn send_all(mut queue: mpsc::Receiver<Note>, socket: PathBuf, peer: Peer) {
    let mut period = Instant::now();
    let mut sent = 0;
    while let Some(note) = queue.recv().await {
        if period.elapsed() >= PERIOD {
            (period, sent) = (Instant::now(), 0);
        }
        log::write(Level::Info, format_args!("refused: {}", line(&note)));
        sent += 1;
        if sent > PER_PERIOD {
            continue;
        }
        if sent == PER_PERIOD {
            log::write(Level::Warning, "many refusals: the next ones of this minute go to this log only");
        }
        let answered = async {
            // The helper answers a note by closing.
            Connection::open(&socket, peer, &Request::Note(note)).await?.next().await
        };
        if let Ok(Err(error)) = tokio::time::timeout(PERIOD, answered).await {
            log::write(Level::Warning, format_args!("a refusal was not recorded: {error}"));
        }
    }
}

fn line(note: &Note) -> String {
    format!("{} by {} (rule: {}): {}", note.action, note.caller.peer, note.rule, note.detail)
}
