//! A large catalogue, many clients that do nothing, and many that never come back.

use crate::measure::{in_turn, ratio};
use crate::standing::proportional;
use crate::subject::{Client, PROGRAM};
use crate::table::{Line, Table, memory, time, times};
use gloveport_tests::kept::Kept;
use gloveport_tests::{Pair, Scene, action, scene};
use serde_json::{Value, json};
use std::fs;

const ROUNDS: usize = 300;
const MANY: usize = 10_000;
const FEW: usize = 10;
/// Actions in one source: a file is at most 1 MiB.
const FILE: usize = 1000;
const IDLE: usize = 2_000;
const SESSIONS: usize = 10_000;

/// 10,000 actions beside 10.
pub fn catalog(table: &mut Table) {
    let [large, small] = [MANY, FEW].map(|count| {
        let scene = Scene::new();
        let actions: Vec<_> =
            (0..count).map(|number| scene.exec(&format!("a{number}"), &[PROGRAM])).collect();
        let sources = scene.root.join("many");
        scene::make_directory(&sources);
        for (number, part) in actions.chunks(FILE).enumerate() {
            fs::write(sources.join(format!("{number}.yaml")), action::source(part))
                .expect("writing a source");
        }
        scene.pair_of(&[&sources])
    });
    let [mut of_many, mut of_few] = [&large, &small].map(|pair| Client::new(pair, "a7", json!({})));
    let [many, few] = in_turn(ROUNDS, [&mut || drop(of_many.call()), &mut || drop(of_few.call())]);
    let ratio = ratio(many.median(), few.median());
    table.add(Line {
        what: format!("warm call, {MANY} actions in the catalogue"),
        own: time(many.median()),
        against: format!("{FEW} actions"),
        other: time(few.median()),
        ratio: times(ratio),
        aim: "≤ 1.1×",
        reached: Some(ratio <= 1.1),
    });
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let answer: Value = serde_json::from_str(&Kept::open(&large).ask(&list).body).expect("JSON");
    let page = answer["result"]["tools"].as_array().map_or(0, Vec::len);
    table.add(Line {
        what: "`tools/list` of that catalogue".to_owned(),
        own: format!("{page} tools in a page"),
        against: "all of them".to_owned(),
        other: format!("{MANY}"),
        ratio: "–".to_owned(),
        aim: "paged",
        reached: Some(page < MANY && answer["result"]["nextCursor"].is_string()),
    });
}

/// 2,000 connections that say nothing more, and 10,000 sessions that nobody closes.
pub fn clients(table: &mut Table) {
    let [busy, quiet] = [(); 2].map(|()| {
        let scene = Scene::new();
        let settings = format!("max_connections = {}\n", IDLE + 100);
        fs::write(scene.state().join("daemon.toml"), settings).expect("writing daemon.toml");
        let action = scene.exec("true", &[PROGRAM]);
        scene.pair(&[action])
    });
    let before = memory_of(&busy);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let idle: Vec<Kept> = (0..IDLE)
        .map(|_| {
            let mut connection = Kept::open(&busy);
            let answer = connection.ask(&ping);
            assert!(answer.status.ends_with("200 OK"), "{answer:?}");
            connection
        })
        .collect();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "one that leaves", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let mut connection = Kept::open(&busy);
    for _ in 0..SESSIONS {
        let answer = connection.ask(&initialize);
        assert!(answer.status.ends_with("200 OK"), "{answer:?}");
    }
    let [mut with, mut without] = [&busy, &quiet].map(|pair| Client::new(pair, "true", json!({})));
    let [with, without] = in_turn(ROUNDS, [&mut || drop(with.call()), &mut || drop(without.call())]);
    let ratio = ratio(with.median(), without.median());
    let what = format!("{IDLE} idle connections, {SESSIONS} sessions never closed");
    table.add(Line {
        what: format!("{what}: warm call"),
        own: time(with.median()),
        against: "none of them".to_owned(),
        other: time(without.median()),
        ratio: times(ratio),
        aim: "≤ 1.2×",
        reached: Some(ratio <= 1.2),
    });
    let after = memory_of(&busy);
    table.add(Line {
        what: format!("{what}: the daemon's memory (PSS)"),
        own: memory(after),
        against: "before".to_owned(),
        other: memory(before),
        ratio: format!("{:.1} KiB a connection", (after.saturating_sub(before)) as f64 / IDLE as f64),
        aim: "bounded",
        reached: Some(after - before < (IDLE as u64) * 64),
    });
    drop(idle);
}

fn memory_of(pair: &Pair) -> u64 {
    proportional(pair.process("gloveportd").pid)
}
