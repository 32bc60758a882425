//! The kernel keeps fewer promises than an action makes.

use super::{Diagnosis, assert_text};
use gloveport_contract::packet::RefusalCode;
use gloveport_tests::Scene;
use gloveport_tests::action::Action;
use gloveport_tests::helper::{Helper, Preparation};
use serde_json::json;

/// What a client is told of a call that is refused for want of a promise.
fn unsupported(helper: &Helper, action: &str) -> String {
    let finished = helper.run(helper.call(action, &[]));
    let (code, detail) = finished.refused().unwrap_or_else(|| panic!("{finished:?}"));
    assert_eq!(code, RefusalCode::Unsupported);
    detail.to_owned()
}

/// A helper whose first question to Landlock, which version there is, is answered like this.
fn with_landlock(scene: Scene, actions: &[Action], words: &[&str], answer: &str) -> Helper {
    let mut preparation: Preparation = scene.prepare(actions);
    let record = preparation.scene.root.join("strace").display().to_string();
    let inject = format!("inject=landlock_create_ruleset:{answer}");
    let starter = ["strace", "-D", "-q", "-e", "trace=landlock_create_ruleset", "-e", &inject, "-o", &record];
    preparation.starter = starter.iter().chain(words).map(|word| (*word).to_owned()).collect();
    preparation.start()
}

#[test]
fn the_lowest_page_is_not_kept_free() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let without = scene.probing("without", &["print", "hello"]);
    let without = without.with(json!({"sandbox": {"may_lack": ["one_shot_exec"]}}));
    let zero = scene.file("zero", "0\n");
    let mut preparation = scene.prepare(&[hello, without]);
    // As the helper sees it, in a mount namespace of its own: the real one is everybody's.
    let mount = "mount --bind \"$0\" /proc/sys/vm/mmap_min_addr && exec \"$@\"";
    preparation.starter = ["unshare", "--mount", "sh", "-c", mount, &zero].map(str::to_owned).to_vec();
    let helper = preparation.start();
    let detail = unsupported(&helper, "hello");
    let diagnosis =
        Diagnosis::behind(&helper.scene, &format!("mount --bind {zero} /proc/sys/vm/mmap_min_addr"));
    let found = diagnosis.finding("mmap_min_addr", "fail", "");
    let layer = diagnosis.finding("layers", "warn", "one_shot_exec");
    assert_text(&helper.scene, "lowest_page", &[detail, found, layer].concat());
    // An action that says so goes without, and its result says so too.
    let daemon = helper.daemon();
    let result = daemon.call("without", json!({}));
    assert_eq!(result.structured()["enforcement"]["lacking"], json!(["one_shot_exec"]), "{:#}", result.0);
}

#[test]
fn there_is_no_landlock() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    // In every process, as on a kernel that was started without it.
    let helper = with_landlock(scene, &[hello], &["-f"], "error=EOPNOTSUPP");
    let detail = unsupported(&helper, "hello");
    let found = Diagnosis::of(&helper.scene).finding("layers", "warn", "landlock");
    assert_text(&helper.scene, "no_landlock", &(detail + &found));
}

#[test]
fn landlock_is_of_an_old_kernel() {
    let scene = Scene::new();
    let ports = json!({"sandbox": {"network": [{"connect": [443]}]}});
    let without = json!({"sandbox": {"network": [{"connect": [443]}], "may_lack": ["connect_ports"]}});
    let actions = [
        scene.probing("plain", &["print", "hello"]),
        scene.probing("ports", &["print", "hello"]).with(ports),
        scene.probing("without", &["print", "hello"]).with(without),
    ];
    // Debian 12's own, Linux 6.1. Only the helper asks for the version; what runs is confined with what that has.
    let helper = with_landlock(scene, &actions, &[], "retval=2:when=1");
    let detail = unsupported(&helper, "ports");
    let found = Diagnosis::of(&helper.scene).finding("layers", "warn", "landlock");
    assert_text(&helper.scene, "old_landlock", &(detail + &found));
    let daemon = helper.daemon();
    let enforcement = |action: &str| {
        let result = daemon.call(action, json!({}));
        assert_eq!(result.stdout(), "hello", "{action}: {:#}", result.0);
        result.structured()["enforcement"].clone()
    };
    assert_eq!(enforcement("plain")["landlock_abi"], 2);
    assert!(enforcement("without")["lacking"].to_string().contains("connect_ports"));
}
