//! Many hosts, simulated: each a pair in a network namespace of its own. What one machine bears, and what
//! each of them costs while it waits.

use crate::standing::family;
use crate::subject::{Client, PROGRAM};
use crate::table::{Line, Table, memory, time};
use gloveport_tests::Scene;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::json;
use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

const HOSTS: usize = 50;
/// How long all of them are called.
const TIME: Duration = Duration::from_secs(5);

/// A network namespace with a loopback; removed when it is dropped.
struct Namespace(String);

impl Namespace {
    fn new(number: usize) -> Option<Self> {
        let name = format!("gpbench{}n{number}", std::process::id());
        let ip =
            |words: &[&str]| Command::new("ip").args(words).status().is_ok_and(|status| status.success());
        let made = ip(&["netns", "add", &name]).then(|| Self(name.clone()))?;
        ip(&["-n", &name, "link", "set", "lo", "up"]).then_some(made)
    }

    /// Takes the calling thread, and what it starts, into it.
    fn enter(&self) {
        let namespace = File::open(format!("/run/netns/{}", self.0)).expect("a namespace");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("entering it");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

/// Fifty pairs, each called by a client of its own, all at once.
pub fn fifty_pairs(table: &mut Table) {
    let what = format!("{HOSTS} pairs in network namespaces, each called without a pause");
    let namespaces: Vec<_> = (0..HOSTS).map_while(Namespace::new).collect();
    if namespaces.len() < HOSTS {
        return table.skip(&what, "one pair alone", "network namespaces cannot be made here");
    }
    let begin = Barrier::new(HOSTS);
    let found = Mutex::new((Vec::new(), 0, 0));
    std::thread::scope(|scope| {
        for namespace in &namespaces {
            scope.spawn(|| {
                namespace.enter();
                let scene = Scene::new();
                let action = scene.exec("true", &[PROGRAM]);
                let pair = scene.pair(&[action]);
                let mut client = Client::new(&pair, "true", json!({}));
                client.call();
                begin.wait();
                let helper = family(pair.process("gloveport-helper").pid);
                let memory = helper + family(pair.process("gloveportd").pid);
                let mut times = Vec::new();
                begin.wait();
                let end = Instant::now() + TIME;
                while Instant::now() < end {
                    let begun = Instant::now();
                    client.call();
                    times.push(begun.elapsed());
                }
                let mut found = found.lock().expect("what the others found");
                found.0.extend(times);
                found.1 += memory;
                found.2 += 1;
            });
        }
    });
    let (mut times, memory_of_all, pairs) = found.into_inner().expect("what was found");
    times.sort_unstable();
    table.add(Line {
        what,
        own: format!(
            "{:.0} calls a second, p50 {}",
            times.len() as f64 / TIME.as_secs_f64(),
            time(times[times.len() / 2])
        ),
        against: "memory (PSS) of one".to_owned(),
        other: memory(memory_of_all / pairs),
        ratio: format!("{} together", memory(memory_of_all)),
        aim: "",
        reached: None,
    });
}
