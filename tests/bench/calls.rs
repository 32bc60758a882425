//! One call, and eight at once, beside what the machine itself takes to start the same program.

use crate::measure::{Times, at_once, in_turn, ratio};
use crate::subject::{Client, PROGRAM, pair, run};
use crate::table::{Line, Table, time, times};
use serde_json::json;
use std::time::Duration;

const ROUNDS: usize = 800;
/// How many callers at once.
const AT_ONCE: usize = 8;
/// How long they call in one round, and in how many.
const LOAD: Duration = Duration::from_secs(3);
const LOADS: usize = 3;

/// A warm call of a program that does nothing.
pub fn one(table: &mut Table) {
    let pair = pair();
    let mut client = Client::new(&pair, "true", json!({}));
    let [own, spawned] = in_turn(ROUNDS, [&mut || drop(client.call()), &mut || run(PROGRAM, &[])]);
    let ratio = ratio(own.median(), spawned.median());
    table.add(Line {
        what: format!("warm `tools/call` of {PROGRAM}, p50 of {ROUNDS}"),
        own: shown(&own),
        against: "posix_spawn and wait".to_owned(),
        other: shown(&spawned),
        ratio: times(ratio),
        aim: "≤ 2.0×",
        reached: Some(ratio <= 2.0),
    });
}

fn shown(of: &Times) -> String {
    format!("{} (p99 {})", time(of.median()), time(of.at(0.99)))
}

/// Eight callers at once.
pub fn many(table: &mut Table) {
    let pair = pair();
    let mut rounds: Vec<_> = (0..LOADS)
        .map(|_| {
            let own = at_once(
                AT_ONCE,
                LOAD,
                || Client::new(&pair, "true", json!({})),
                |client| drop(client.call()),
            );
            let spawned = at_once(AT_ONCE, LOAD, || (), |()| run(PROGRAM, &[]));
            (own, spawned)
        })
        .collect();
    rounds.sort_by(|a, b| (a.0.rate / a.1.rate).total_cmp(&(b.0.rate / b.1.rate)));
    let (own, spawned) = rounds.swap_remove(LOADS / 2);
    let share = own.rate / spawned.rate;
    table.add(Line {
        what: format!("calls a second, {AT_ONCE} at once"),
        own: format!("{:.0}", own.rate),
        against: "posix_spawn and wait".to_owned(),
        other: format!("{:.0}", spawned.rate),
        ratio: format!("{:.0} %", share * 100.0),
        aim: "≥ 60 %",
        reached: Some(share >= 0.6),
    });
    let (p50, p99) = (own.times.median(), own.times.at(0.99));
    let spread = ratio(p99, p50);
    table.add(Line {
        what: "p99 by p50 under that load".to_owned(),
        own: time(p99),
        against: "its own p50".to_owned(),
        other: time(p50),
        ratio: times(spread),
        aim: "≤ 4×",
        reached: Some(spread <= 4.0),
    });
}
