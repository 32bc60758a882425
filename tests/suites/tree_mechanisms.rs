//! Each hostile tree ends within a second under each mechanism: frozen and killed by a walk, and by the cgroup of
//! its run where one is delegated. Whoever of the product is killed meanwhile, nothing is left.

use gloveport_contract::packet::{Event, Outcome, Request};
use gloveport_tests::cgroup::Delegated;
use gloveport_tests::helper::AHEAD;
use gloveport_tests::{Connection, Helper, Scene, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

/// What the specification allows for any tree within its limits.
const GONE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(20);

/// A helper with the probe's trees as actions; with a delegated cgroup or without.
struct Trees {
    helper: Helper,
    group: Option<Delegated>,
}

fn trees(with_group: bool, timeout: &str) -> Trees {
    let scene = Scene::new();
    let keys = json!({"timeout": timeout, "limits": {"processes": 60}});
    let actions = [
        scene.probing("daemon", &["daemon", "20000"]).with(keys.clone()),
        scene.probing("chain", &["chain"]).with(keys.clone()),
        scene.probing("bomb", &["bomb"]).with(keys.clone()),
        scene.probing("setsid-bomb", &["setsid-bomb"]).with(keys.clone()),
        scene.probing("orphan", &["orphan"]).with(keys),
        scene.probing("hello", &["print", "hello"]),
    ];
    let group = with_group.then(|| Delegated::make(&scene.root.join("cgroup")));
    let mut preparation = scene.prepare(&actions);
    preparation.starter = group.iter().flat_map(Delegated::starter).collect();
    Trees { helper: preparation.start(), group }
}

impl Trees {
    fn uid(&self) -> u32 {
        self.helper.scene.run.number
    }

    /// Begins a tree, and waits until there is one.
    fn begin(&self, name: &str) -> Connection {
        let mut connection = self.helper.connect();
        connection.send(&Request::Run(Box::new(self.helper.call(name, &[]))));
        processes::wait_until("the tree has grown", SOON, || processes::of(self.uid()).len() >= 2);
        connection
    }

    fn assert_still_serves(&self) {
        let finished = self.helper.run(self.helper.call("hello", &[]));
        assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
        if let Some(group) = &self.group {
            processes::wait_until("the groups of ended runs are removed", SOON, || group.runs().is_empty());
        }
    }

    /// The supervisors: children of the helper's that have children.
    fn supervisors(&self) -> Vec<Pid> {
        let family = processes::descendants(self.helper.pid());
        let own = family.iter().filter(|one| one.parent == self.helper.pid() && one.uid == 0);
        own.filter(|one| family.iter().any(|other| other.parent == one.pid))
            .filter_map(|one| Pid::from_raw(one.pid.cast_signed()))
            .collect()
    }
}

/// Ends a tree at its deadline; the helper says in its enforcement which mechanism there was.
fn dies_at_its_deadline(with_group: bool, name: &str) {
    let trees = trees(with_group, "1s");
    let finished = trees.helper.run(trees.helper.call(name, &[]));
    let took = processes::wait_until_gone(trees.uid(), GONE);
    let in_group = finished.events.iter().find_map(|event| match event {
        Event::Accepted { enforcement, .. } => Some(enforcement.cgroup),
        _ => None,
    });
    assert_eq!(in_group, Some(with_group), "{name}: {finished:?}");
    assert!(took < GONE);
    trees.assert_still_serves();
}

#[test]
fn a_daemonised_grandchild_is_found_by_the_walk() {
    dies_at_its_deadline(false, "daemon");
}

#[test]
fn a_daemonised_grandchild_is_in_the_group() {
    dies_at_its_deadline(true, "daemon");
}

#[test]
fn a_killed_supervisor_leaves_nothing() {
    for with_group in [false, true] {
        let trees = trees(with_group, "20s");
        let connection = trees.begin("daemon");
        for supervisor in trees.supervisors() {
            kill_process(supervisor, Signal::KILL).expect("killing a supervisor");
        }
        processes::wait_until_gone(trees.uid(), Duration::from_secs(2));
        drop(connection);
        trees.assert_still_serves();
    }
}

#[test]
fn a_killed_parent_leaves_nothing() {
    for with_group in [false, true] {
        let mut trees = trees(with_group, "20s");
        let connection = trees.begin("daemon");
        let family = processes::descendants(trees.helper.pid());
        trees.helper.kill();
        processes::wait_until_gone(trees.uid(), Duration::from_secs(2));
        drop(connection);
        processes::wait_until("its supervisors have gone too", Duration::from_secs(5), || {
            family.iter().all(|one| processes::read(one.pid).is_none_or(|now| now.command != one.command))
        });
    }
}

/// Whoever would end a run is stopped and then killed, so that none can act on the other's end.
fn kill_at_once(trees: &mut Trees, also_the_writer: bool) {
    let own = processes::descendants(trees.helper.pid());
    let own = own.iter().filter(|one| one.parent == trees.helper.pid() && one.uid == 0);
    let own: Vec<Pid> = own.filter_map(|one| Pid::from_raw(one.pid.cast_signed())).collect();
    let supervisors = trees.supervisors();
    let chosen: Vec<Pid> =
        own.into_iter().filter(|pid| also_the_writer || supervisors.contains(pid)).collect();
    for pid in &chosen {
        kill_process(*pid, Signal::STOP).expect("stopping a process of the helper's");
    }
    trees.helper.kill();
    for pid in chosen {
        kill_process(pid, Signal::KILL).expect("killing a process of the helper's");
    }
}

#[test]
fn parent_and_supervisor_killed_at_once_leave_nothing_where_a_group_is_delegated() {
    let mut trees = trees(true, "20s");
    let connection = trees.begin("daemon");
    kill_at_once(&mut trees, false);
    processes::wait_until_gone(trees.uid(), Duration::from_secs(2));
    drop(connection);
    trees.helper.restart();
    trees.assert_still_serves();
}

#[test]
fn a_helper_that_starts_ends_what_one_before_it_has_left_in_its_groups() {
    let mut trees = trees(true, "20s");
    let connection = trees.begin("daemon");
    kill_at_once(&mut trees, true);
    // The program dies with its supervisor; what it has set free goes on.
    assert!(!processes::of(trees.uid()).is_empty());
    drop(connection);
    trees.helper.restart();
    processes::wait_until_gone(trees.uid(), Duration::from_secs(2));
    trees.assert_still_serves();
}

#[test]
fn a_killed_daemon_leaves_nothing() {
    for with_group in [false, true] {
        let trees = trees(with_group, "20s");
        let mut daemon = trees.helper.daemon();
        let call = daemon.begin("daemon", json!({}));
        processes::wait_until("the tree has grown", SOON, || processes::of(trees.uid()).len() >= 2);
        daemon.kill();
        processes::wait_until_gone(trees.uid(), Duration::from_secs(2));
        drop(call);
        trees.assert_still_serves();
    }
}

/// Runs with orphaned grandchildren: nothing accumulates.
fn orphans(runs: u32) {
    let trees = trees(false, "15s");
    trees.assert_still_serves();
    let before = processes::descriptors(trees.helper.pid());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..runs / 4 {
                    let finished = trees.helper.run(trees.helper.call("orphan", &[]));
                    assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
                }
            });
        }
    });
    processes::wait_until_gone(trees.uid(), GONE);
    processes::wait_until("no supervisor and no zombie is left", SOON, || {
        let family = processes::descendants(trees.helper.pid());
        family.len() <= 1 + AHEAD && family.iter().all(|one| one.state != 'Z')
    });
    assert!(processes::descriptors(trees.helper.pid()) <= before + AHEAD);
}

#[test]
fn three_hundred_runs_with_orphans_leave_no_zombie_and_no_descriptor() {
    orphans(300);
}

#[test]
#[ignore = "a soak of several minutes: make soak"]
fn a_thousand_runs_with_orphans_leave_no_zombie_and_no_descriptor() {
    orphans(1000);
}

/// Fork bombs, each within its own limit of processes: alone, for they take the machine's attention.
mod alone {
    use super::*;

    #[test]
    fn bombs_are_frozen_and_killed_by_the_walk() {
        for name in ["bomb", "setsid-bomb"] {
            dies_at_its_deadline(false, name);
        }
    }

    #[test]
    fn bombs_are_killed_by_their_group() {
        for name in ["bomb", "setsid-bomb"] {
            dies_at_its_deadline(true, name);
        }
    }

    #[test]
    fn a_chain_of_orphans_ends_with_its_run() {
        for with_group in [false, true] {
            let trees = trees(with_group, "10s");
            let begun = Instant::now();
            trees.helper.run(trees.helper.call("chain", &[]));
            assert!(begun.elapsed() < Duration::from_secs(8), "took {:?}", begun.elapsed());
            processes::wait_until_gone(trees.uid(), GONE);
            trees.assert_still_serves();
        }
    }

    #[test]
    fn a_bomb_whose_supervisor_is_killed_is_ended_by_the_parent() {
        for with_group in [false, true] {
            let trees = trees(with_group, "20s");
            let connection = trees.begin("bomb");
            for supervisor in trees.supervisors() {
                kill_process(supervisor, Signal::KILL).expect("killing a supervisor");
            }
            processes::wait_until_gone(trees.uid(), Duration::from_secs(5));
            drop(connection);
            trees.assert_still_serves();
        }
    }
}
