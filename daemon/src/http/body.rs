#![forbid(unsafe_code)]
//! Reading a request's body: counted while it comes in, bounded in size, in time and in all bodies together.

use axum::body::{Body, Bytes, HttpBody as _};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// A body up to this size is read without waiting; nearly all are. Larger ones take one of the
/// [`LARGE_AT_ONCE`] places, so that all of them together stay below places times the limit.
const SMALL: usize = 64 * 1024;
/// Places for large bodies.
const LARGE_AT_ONCE: usize = 16;
/// How long a body may take to come in.
const READ_TIME: Duration = Duration::from_secs(30);
/// How much of an over-long body is read and thrown away, as a multiple of the limit: a client that is still
/// sending would see a reset connection in place of the 413.
const DRAIN: usize = 4;
/// How long that is done.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than the limit.
    TooLarge,
    /// It did not come in in time.
    TooSlow,
    /// The connection broke, or the transfer coding is wrong.
    Broken,
}

/// Reads bodies.
#[derive(Clone)]
pub struct BodyReader {
    limit: usize,
    large: Arc<Semaphore>,
}

/// A body, and its place among the large ones.
pub struct ReadBody {
    /// Its bytes.
    pub bytes: Vec<u8>,
    _place: Option<OwnedSemaphorePermit>,
}

impl BodyReader {
    /// Takes bodies of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, large: Arc::new(Semaphore::new(LARGE_AT_ONCE)) }
    }

    /// Reads a body to its end.
    ///
    /// # Errors
    /// Why there is none; of one that is too large a bounded part is read away while that is answered.
    pub async fn read(&self, mut body: Body) -> Result<ReadBody, BodyError> {
        // A declared length can refuse and nothing else: what is taken is counted.
        if body.size_hint().lower() > u64::try_from(self.limit).unwrap_or(u64::MAX) {
            tokio::spawn(drain(body, self.limit));
            return Err(BodyError::TooLarge);
        }
        let until = Instant::now() + READ_TIME;
        let mut bytes = Vec::new();
        let mut place = None;
        while let Some(data) = next(&mut body, until).await? {
            if bytes.len() + data.len() > self.limit {
                tokio::spawn(drain(body, self.limit));
                return Err(BodyError::TooLarge);
            }
            if bytes.len() + data.len() > SMALL && place.is_none() {
                let permit = timeout_at(until, self.large.clone().acquire_owned()).await;
                place = permit.map_err(|_| BodyError::TooSlow)?.ok();
            }
            bytes.extend_from_slice(&data);
        }
        Ok(ReadBody { bytes, _place: place })
    }
}

/// Reads away a part of what is longer than `limit`. Dropping the body closes the connection.
async fn drain(mut body: Body, limit: usize) {
    let until = Instant::now() + DRAIN_TIME;
    let mut left = limit.saturating_mul(DRAIN);
    while let Ok(Some(data)) = next(&mut body, until).await {
        match left.checked_sub(data.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// The next bytes; `None` at the end. Trailers are skipped.
async fn next(body: &mut Body, until: Instant) -> Result<Option<Bytes>, BodyError> {
    loop {
        match timeout_at(until, body.frame()).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_taken_up_to_its_limit() {
        let reader = BodyReader::new(100_000);
        assert_eq!(reader.read(Body::from(vec![1; 100_000])).await.map(|body| body.bytes.len()), Ok(100_000));
        assert!(matches!(reader.read(Body::from(vec![1; 100_001])).await, Err(BodyError::TooLarge)));
        assert_eq!(reader.read(Body::empty()).await.map(|body| body.bytes.len()), Ok(0));
    }

    #[tokio::test]
    async fn large_bodies_wait_for_a_place() {
        let reader = BodyReader::new(SMALL * 2);
        let mut held = Vec::new();
        for _ in 0..LARGE_AT_ONCE {
            held.push(reader.read(Body::from(vec![1; SMALL + 1])).await.ok().unwrap());
        }
        assert!(reader.read(Body::from(vec![1; SMALL])).await.is_ok());
        let waiting = reader.read(Body::from(vec![1; SMALL + 1]));
        assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
        held.pop();
        assert!(reader.read(Body::from(vec![1; SMALL + 1])).await.is_ok());
    }
}
