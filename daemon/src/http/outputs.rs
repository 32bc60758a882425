#![forbid(unsafe_code)]
//! Memory for large outputs, bounded in all replies together: an output is held as it was read, as text, twice in
//! JSON and as it is sent.

use axum::body::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Who may have this much output takes no place; nearly all actions. Thirty-two of them at once, as many as
/// there are runs, are no more than the large ones together.
const SMALL: u64 = 256 * 1024;
/// Output that all larger ones may have at once: three of the highest `max_output`, each of which takes up to
/// seven times as much on its way, and the unit has 512 MiB.
const TOTAL: u32 = 48 * 1024;
/// What [`TOTAL`] counts, bytes.
const UNIT: u64 = 1024;
/// How long a call waits for its place. It has no run yet, and keeps nobody else from one.
const PATIENCE: Duration = Duration::from_secs(10);

/// The places.
#[derive(Clone)]
pub struct Outputs(Arc<Semaphore>);

/// A place for one output, until its reply has been sent.
#[derive(Debug, Default)]
pub struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Outputs {
    fn default() -> Self {
        // A number of this size is far below the most that a semaphore takes.
        Self(Arc::new(Semaphore::new(usize::try_from(TOTAL).unwrap_or(usize::MAX))))
    }
}

impl Outputs {
    /// A place for an output of at most `size` bytes; `None` where none became free in time.
    pub async fn take(&self, size: u64) -> Option<Place> {
        if size <= SMALL {
            return Some(Place::default());
        }
        let units = u32::try_from(size.div_ceil(UNIT)).unwrap_or(TOTAL).min(TOTAL);
        let permit = timeout(PATIENCE, self.0.clone().acquire_many_owned(units)).await.ok()?.ok()?;
        Some(Place { _permit: Some(permit) })
    }
}

impl Place {
    /// Ties the place to the bytes of the reply: it is free when they are.
    pub fn hold(self, reply: Vec<u8>) -> Bytes {
        Bytes::from_owner(Held { reply, _place: self })
    }
}

struct Held {
    reply: Vec<u8>,
    _place: Place,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gloveport_contract::limits::OUTPUT_MAX;

    /// Whether the largest output has to wait.
    async fn is_full(outputs: &Outputs) -> bool {
        timeout(Duration::from_millis(50), outputs.take(OUTPUT_MAX)).await.is_err()
    }

    #[tokio::test]
    async fn large_outputs_wait_until_a_reply_has_gone_and_small_ones_never() {
        let outputs = Outputs::default();
        let mut replies = Vec::new();
        for _ in 0..3 {
            replies.push(outputs.take(OUTPUT_MAX).await.expect("a place").hold(vec![1]));
        }
        assert!(is_full(&outputs).await);
        assert!(outputs.take(SMALL).await.is_some());
        // A part of the bytes is the reply as well.
        let part = replies.pop().expect("a reply").slice(0..1);
        assert!(is_full(&outputs).await);
        drop(part);
        assert!(!is_full(&outputs).await);
    }

    #[tokio::test]
    async fn more_than_there_is_takes_all_of_it() {
        let outputs = Outputs::default();
        let all = outputs.take(u64::MAX).await.expect("a place");
        assert_eq!(outputs.0.available_permits(), 0);
        drop(all);
        assert!(outputs.take(SMALL + 1).await.is_some());
    }
}
