//! Measuring two sides on one machine: in turn, so that whatever else happens there happens to both.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Times of one side, in order of length.
#[derive(Debug, Clone)]
pub struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The time that this share (0 to 1) of them does not exceed.
    pub fn at(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or_default()
    }

    /// The one in the middle.
    pub fn median(&self) -> Duration {
        self.at(0.5)
    }
}

/// Does each side once a round, after one round that does not count.
pub fn in_turn<const N: usize>(rounds: usize, mut sides: [&mut dyn FnMut(); N]) -> [Times; N] {
    let mut times = [(); N].map(|()| Vec::with_capacity(rounds));
    for round in 0..=rounds {
        for (side, times) in sides.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            side();
            if round > 0 {
                times.push(begun.elapsed());
            }
        }
    }
    times.map(Times::of)
}

/// What many at once have done in a time.
pub struct Load {
    /// How often in a second.
    pub rate: f64,
    /// How long each took.
    pub times: Times,
}

/// Has as many threads act, each with what `start` makes for it, for so long.
pub fn at_once<S>(
    threads: usize,
    time: Duration,
    start: impl Fn() -> S + Sync,
    act: impl Fn(&mut S) + Sync,
) -> Load {
    let (over, ready) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let mut all = Vec::new();
    let mut took = time;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut own = start();
                    act(&mut own);
                    ready.wait();
                    let mut times = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        act(&mut own);
                        times.push(begun.elapsed());
                    }
                    times
                })
            })
            .collect();
        ready.wait();
        let begun = Instant::now();
        std::thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        for worker in workers {
            all.extend(worker.join().expect("a thread that acts"));
        }
        took = begun.elapsed();
    });
    Load { rate: all.len() as f64 / took.as_secs_f64(), times: Times::of(all) }
}

/// How many times as long.
pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(f64::MIN_POSITIVE)
}
