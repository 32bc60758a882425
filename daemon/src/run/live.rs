#![forbid(unsafe_code)]
//! A run while it goes on, for those who look at it from outside its call: what it is doing, how much it has
//! written, the end of that, and the wish to end it.

use super::present::{Keep, present};
use gloveport_contract::catalog::Escapes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Bytes of each stream's end that are kept for who asks while the run goes on. Enough to see what it is at;
/// the whole comes with the result.
const SHOWN: usize = 8 * 1024;

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The helper has not answered yet.
    Asked,
    /// A person must say yes.
    Waiting,
    /// It runs.
    Running,
}

impl Phase {
    /// The word that people and programs read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked for",
            Self::Waiting => "waiting for approval",
            Self::Running => "running",
        }
    }
}

/// Which of a program's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Its results.
    Stdout,
    /// Its complaints.
    Stderr,
}

/// The end of what a run has written so far, redacted, neither filtered nor complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoFar {
    /// The end of stdout.
    pub stdout: String,
    /// The end of stderr.
    pub stderr: String,
}

/// A run that is looked at.
#[derive(Debug)]
pub struct Live {
    /// When it was asked for.
    pub since: SystemTime,
    started: Instant,
    state: Mutex<State>,
    bytes: AtomicU64,
    ended_by: watch::Sender<Option<String>>,
}

#[derive(Debug)]
struct State {
    id: Option<String>,
    phase: Phase,
    escapes: Escapes,
    stdout: End,
    stderr: End,
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct End {
    bytes: VecDeque<u8>,
    is_cut: bool,
}

impl Default for Live {
    fn default() -> Self {
        let state = State {
            id: None,
            phase: Phase::Asked,
            escapes: Escapes::default(),
            stdout: End::default(),
            stderr: End::default(),
        };
        Self {
            since: SystemTime::now(),
            started: Instant::now(),
            state: Mutex::new(state),
            bytes: AtomicU64::new(0),
            ended_by: watch::Sender::new(None),
        }
    }
}

impl Live {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The helper has answered: its id, and what it does now.
    pub fn answered(&self, id: &str, phase: Phase, escapes: Escapes) {
        let mut state = self.state();
        (state.phase, state.escapes) = (phase, escapes);
        state.id = Some(id.to_owned());
    }

    /// Counts bytes that were read.
    pub fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Takes note of what a stream shows next, redacted.
    pub fn show(&self, source: Source, bytes: &[u8]) {
        let mut state = self.state();
        let end = match source {
            Source::Stdout => &mut state.stdout,
            Source::Stderr => &mut state.stderr,
        };
        end.push(bytes);
    }

    /// The helper's id of the run, once it has one.
    pub fn id(&self) -> Option<String> {
        self.state().id.clone()
    }

    /// What it is doing.
    pub fn phase(&self) -> Phase {
        self.state().phase
    }

    /// For how long it has been there.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Raw bytes that it has written, all streams together.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The end of what it has written.
    pub fn so_far(&self) -> SoFar {
        let state = self.state();
        let text = |end: &End| {
            let bytes: Vec<u8> = end.bytes.iter().copied().collect();
            present(&bytes, end.is_cut, Keep::End, SHOWN, state.escapes).text
        };
        SoFar { stdout: text(&state.stdout), stderr: text(&state.stderr) }
    }

    /// Wishes that the run ends, and says who does. The first one's name stays.
    pub fn end(&self, by: &str) {
        self.ended_by.send_if_modified(|ended_by| {
            let is_first = ended_by.is_none();
            ended_by.get_or_insert_with(|| by.to_owned());
            is_first
        });
    }

    /// Who wished it to end.
    pub fn ended_by(&self) -> Option<String> {
        self.ended_by.borrow().clone()
    }

    /// Ready when somebody wishes it to end.
    pub async fn wished_to_end(&self) -> String {
        let mut wish = self.ended_by.subscribe();
        // The sender lives as long as this.
        wish.wait_for(Option::is_some).await.ok().and_then(|by| by.clone()).unwrap_or_default()
    }
}

impl End {
    fn push(&mut self, bytes: &[u8]) {
        let over = (self.bytes.len() + bytes.len()).saturating_sub(SHOWN);
        self.is_cut |= over > 0;
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(bytes.get(bytes.len().saturating_sub(SHOWN)..).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_each_stream_is_shown_bounded_and_without_half_a_character() {
        let live = Live::default();
        live.answered("7", Phase::Running, Escapes::Visible);
        live.show(Source::Stdout, "ä".repeat(SHOWN).as_bytes());
        live.show(Source::Stdout, b"x\x1b");
        live.show(Source::Stderr, b"oops\n");
        let so_far = live.so_far();
        assert!(so_far.stdout.len() <= SHOWN && so_far.stdout.ends_with("äx\\x1b"), "{}", so_far.stdout);
        assert!(!so_far.stdout.contains('\u{fffd}'));
        assert_eq!(so_far.stderr, "oops\n");
        assert_eq!((live.id().as_deref(), live.phase()), (Some("7"), Phase::Running));
    }

    #[tokio::test]
    async fn the_first_who_wishes_the_end_is_named() {
        let live = Live::default();
        assert_eq!(live.ended_by(), None);
        live.end("root");
        live.end("somebody else");
        assert_eq!(live.wished_to_end().await, "root");
    }
}
