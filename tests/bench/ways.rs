//! What the protocol costs without any run, and what each way to a pair adds to a call.

use crate::measure::{in_turn, ratio};
use crate::subject::{Client, PROGRAM, pair};
use crate::table::{Line, Table, time, times};
use gloveport_tests::kept::Kept;
use gloveport_tests::sshd::{Keys, Server, client};
use gloveport_tests::{Pair, Scene, stdio};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

const ROUNDS: usize = 400;
/// How often a way is opened anew.
const OPENINGS: usize = 9;
/// Requests whose processor time is counted.
const COUNTED: u32 = 4000;

/// Processor time of all threads of a process so far (proc(5), `schedstat`).
fn processor(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads").flatten();
    let spent = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    Duration::from_nanos(spent.filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).sum())
}

/// The daemon's layers: a request that starts nothing, beside one that does.
pub fn protocol(table: &mut Table) {
    let pair = pair();
    let daemon = pair.process("gloveportd").pid;
    let message = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
    let mut call = Client::new(&pair, "true", json!({}));
    for method in ["ping", "tools/list"] {
        let (mut connection, message) = (Kept::open(&pair), message(method));
        let [own, other] =
            in_turn(ROUNDS, [&mut || drop(connection.ask(&message)), &mut || drop(call.call())]);
        let before = processor(daemon);
        (0..COUNTED).for_each(|_| drop(connection.ask(&message)));
        let cpu = processor(daemon).saturating_sub(before) / COUNTED;
        table.add(Line {
            what: format!("`{method}`, p50 and the daemon's processor time"),
            own: format!("{}, {} of CPU", time(own.median()), time(cpu)),
            against: format!("warm `tools/call` of {PROGRAM}"),
            other: time(other.median()),
            ratio: times(ratio(own.median(), other.median())),
            aim: "",
            reached: None,
        });
    }
}

/// A site of one host: its pair, and a real sshd whose key may start `gloveport stdio`.
fn host(scene: Scene) -> (Pair, Keys, Server) {
    let action = scene.exec("true", &[PROGRAM]).with(json!({"arguments": "flat"}));
    let pair = scene.pair(&[action]);
    stdio::allow_root(&pair.scene);
    let keys = Keys::new(&pair.scene);
    let place = keys.loopback(2201);
    keys.know("host", &place);
    let server = keys.serve(&pair.state, &place);
    place.await_listener();
    (pair, keys, server)
}

/// `gloveport stdio` and an open ssh connection, beside HTTP; and how long each takes until the first answer.
pub fn ways(table: &mut Table) {
    let (pair, keys, _server) = host(Scene::new());
    let local = || stdio::Bridge::start::<&str>(stdio::gloveport(&pair.scene), &[]);
    let remote = || client(&pair.scene, &keys, &["host"], &[]);
    let call = |bridge: &stdio::Bridge| {
        let result = bridge.call("true", json!({}));
        assert!(!result.is_error(), "{result:?}");
    };
    let mut http = Client::new(&pair, "true", json!({}));
    let (stdio, ssh) = (local(), remote());
    let [http, stdio, ssh] =
        in_turn(ROUNDS, [&mut || drop(http.call()), &mut || call(&stdio), &mut || call(&ssh)]);
    let opened = |open: &dyn Fn() -> stdio::Bridge| {
        let mut times: Vec<Duration> = (0..OPENINGS)
            .map(|_| {
                let begun = Instant::now();
                call(&open());
                begun.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[OPENINGS / 2]
    };
    for (name, warm, first) in
        [("gloveport stdio", stdio, opened(&local)), ("gloveport stdio --host", ssh, opened(&remote))]
    {
        table.add(Line {
            what: format!("a call by `{name}`: warm, and the first with its start"),
            own: format!("{}, first {}", time(warm.median()), time(first)),
            against: "the same over HTTP, warm".to_owned(),
            other: time(http.median()),
            ratio: format!("{} more", time(warm.median().saturating_sub(http.median()))),
            aim: "",
            reached: None,
        });
    }
}
