#![forbid(unsafe_code)]
//! A new catalogue while the pair runs: put into force as an operator does it, by one symbolic link.

use super::{gloveport, printed};
use gloveport_contract::catalog::hex;
use gloveport_tests::action::{self, Action};
use gloveport_tests::mcp::{ToolResult, finish};
use gloveport_tests::{Pair, Scene, processes, programs, scene, signing};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

/// Builds a catalogue of these actions and signs it with the host's key.
fn put_into_force(pair: &Pair, actions: &[Action]) {
    let directory = super::source(&pair.scene, "next", &action::source(actions)).display().to_string();
    let built = gloveport(&pair.scene, &["catalog", "build", "--json", &directory]);
    assert!(built.status.success(), "{}", printed(&built));
    let told: Value = serde_json::from_slice(&built.stdout).expect("a line of JSON");
    let file = told["catalog"].as_str().expect("its place");
    let signed = gloveport(&pair.scene, &["catalog", "sign", file]);
    assert!(signed.status.success(), "{}", printed(&signed));
    reload(pair);
}

/// `systemctl reload gloveport-helper`.
fn reload(pair: &Pair) {
    let helper = pair.process("gloveport-helper").pid;
    let helper = rustix::process::Pid::from_raw(helper.cast_signed()).expect("a pid");
    rustix::process::kill_process(helper, rustix::process::Signal::HUP).expect("SIGHUP");
}

fn hello(scene: &Scene, word: &str) -> Action {
    scene.probing("hello", &["print", word])
}

fn said(pair: &Pair) -> String {
    pair.call("hello", json!({})).stdout()
}

fn digest_in_force(pair: &Pair) -> String {
    let told = gloveport(&pair.scene, &["status", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("a line of JSON");
    told["helper"]["digest"].as_str().expect("a digest").to_owned()
}

#[test]
fn a_new_catalogue_takes_effect_for_the_next_call_and_both_sides_agree() {
    let scene = Scene::new();
    let first = hello(&scene, "first");
    let pair = scene.pair(&[first]);
    assert_eq!(said(&pair), "first");
    let before = digest_in_force(&pair);
    let (second, more) = (hello(&pair.scene, "second"), pair.scene.probing("more", &["print", "x"]));
    put_into_force(&pair, &[second, more]);
    processes::wait_until("the new catalogue is in force", PATIENCE, || said(&pair) == "second");
    // The list follows, and the digest is that of the file that the link leads to.
    assert!(pair.tools().contains(&"more".to_owned()), "{:?}", pair.tools());
    let bytes = fs::read(pair.state.join("catalog.json")).expect("the catalogue");
    let digest = digest_in_force(&pair);
    assert_ne!(digest, before);
    assert_eq!(digest, hex(&hmac_sha256::Hash::hash(&bytes)));
    assert!(fs::symlink_metadata(pair.state.join("catalog.json")).expect("it").is_symlink());
}

#[test]
fn runs_in_progress_keep_their_catalogue_to_the_end() {
    let scene = Scene::new();
    let old = scene.probing("slow", &["print-sleep", "1500", "old"]);
    let first = hello(&scene, "first");
    let pair = scene.pair(&[old, first]);
    let stream = pair.begin("slow", json!({}));
    processes::wait_until("it runs", PATIENCE, || !processes::of(pair.scene.run.number).is_empty());
    // The action is gone from the new catalogue.
    let second = hello(&pair.scene, "second");
    put_into_force(&pair, &[second]);
    processes::wait_until("the new catalogue is in force", PATIENCE, || said(&pair) == "second");
    assert!(!processes::of(pair.scene.run.number).is_empty(), "the run must still go on");
    let finished = finish(stream);
    assert_eq!(finished.stdout(), "old", "{:#}", finished.0);
    assert_eq!(finished.structured()["exit_code"], 0);
    let gone = pair.ask("tools/call", json!({"name": "slow", "arguments": {}})).to_string();
    assert!(gone.contains("slow") && !gone.contains("steps"), "{gone}");
}

#[test]
fn no_call_fails_while_catalogues_are_switched() {
    // A daemon that has not seen the switch yet is told `stale`, reloads and tries once more.
    let scene = Scene::new();
    let first = hello(&scene, "word-0");
    let pair = scene.pair(&[first]);
    let done = AtomicBool::new(false);
    let results: Vec<ToolResult> = thread::scope(|scope| {
        let caller = || {
            let mut results = Vec::new();
            while !done.load(Ordering::Relaxed) {
                results.push(pair.call("hello", json!({})));
            }
            results
        };
        let callers = [scope.spawn(caller), scope.spawn(caller)];
        for round in 1..=6 {
            let next = hello(&pair.scene, &format!("word-{round}"));
            put_into_force(&pair, &[next]);
            thread::sleep(Duration::from_millis(100));
        }
        processes::wait_until("the last one is in force", PATIENCE, || said(&pair) == "word-6");
        done.store(true, Ordering::Relaxed);
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    });
    let stale = super::audit(&pair.state).matches("\"rule\":\"stale\"").count();
    println!("{} calls, {stale} of them were sent twice", results.len());
    assert!(stale > 0, "no call met a switch");
    assert!(results.len() > 20, "only {} calls", results.len());
    for result in &results {
        assert!(!result.is_error() && result.stdout().starts_with("word-"), "{:#}", result.0);
    }
}

/// Spoils the catalogue that the link leads to, without its digest or its signature being renewed, and has the
/// helper look.
fn spoil(pair: &Pair) {
    let file = fs::canonicalize(pair.state.join("catalog.json")).expect("the catalogue");
    let text = fs::read_to_string(&file).expect("the catalogue");
    let next = pair.state.join("catalogs/spoilt");
    scene::make_directory(&next);
    fs::write(next.join("catalog.json"), text.replace("hello", "howdy")).expect("writing");
    fs::copy(file.with_extension("json.sig"), next.join("catalog.json.sig")).expect("copying");
    let link = pair.state.join("catalogs/next-link");
    std::os::unix::fs::symlink(next.join("catalog.json"), &link).expect("a link");
    fs::rename(&link, pair.state.join("catalog.json")).expect("switching");
    reload(pair);
}

#[test]
fn a_bad_new_catalogue_keeps_the_old_one_and_is_told_everywhere() {
    let scene = Scene::new();
    let first = hello(&scene, "first");
    let pair = scene.pair(&[first]);
    let digest = digest_in_force(&pair);
    spoil(&pair);
    let status = || printed(&gloveport(&pair.scene, &["status"]));
    processes::wait_until("the helper has refused it", PATIENCE, || status().contains("signature"));
    // The old one goes on.
    assert_eq!(said(&pair), "first");
    assert_eq!(digest_in_force(&pair), digest);
    assert!(status().contains(&digest), "{}", status());
    // A person learns it from `status`, `doctor` and the logs of both halves, a client from the list of tools.
    let doctor = printed(&gloveport(&pair.scene, &["doctor"]));
    assert!(doctor.contains("not taken") && doctor.contains("signature"), "{doctor}");
    let list = || pair.ask("tools/list", json!({}))["result"].clone();
    processes::wait_until("the list tells it", PATIENCE, || {
        list()["_meta"]["gloveport/catalog"].as_str().is_some_and(|reason| reason.contains("signature"))
    });
    assert!(list()["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "hello")));
    for half in ["gloveport-helper", "gloveportd"] {
        let told = |line: &str| line.contains(half) && line.contains("older catalogue stays in force");
        processes::wait_until("its log tells it", PATIENCE, || pair.log().lines().any(told));
    }
    assert!(super::audit(&pair.state).contains("\"reloaded\""));
    // And a good one ends it.
    let second = hello(&pair.scene, "second");
    put_into_force(&pair, &[second]);
    processes::wait_until("a good one is in force", PATIENCE, || said(&pair) == "second");
    processes::wait_until("the list tells it", PATIENCE, || list()["_meta"]["gloveport/catalog"].is_null());
}

#[test]
fn what_is_no_catalogue_costs_the_running_one_nothing() {
    let scene = Scene::new();
    let first = hello(&scene, "first");
    let prepared = scene.prepare(&[first]);
    prepared.write();
    let file = prepared.catalog_file();
    let signers = prepared.scene.file("signers", prepared.key.signer("operator"));
    let sign = |text: &str| {
        fs::write(&file, text).expect("writing");
        prepared.key.sign(signing::NAMESPACE, &file);
    };
    let good = fs::read_to_string(&file).expect("the catalogue");
    // Properly signed, and no catalogue this version takes: the signer may be wrong too.
    let bad = [
        ("{\"format\": 1, \"actions\": [", "EOF"),
        ("{\"format\": 2, \"actions\": []}", "format 2"),
        (&good.replace("\"risk\"", "\"rsik\""), "rsik"),
        (&good.replace("\"risk\": \"read\"", "\"risk\": \"read\", \"risk\": \"write\""), "duplicate"),
    ];
    for (text, reason) in bad {
        sign(text);
        let output = Command::new(programs::built("gloveport-helper"))
            .arg("--check")
            .args([file.clone(), signers.clone().into()])
            .output()
            .expect("the helper");
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(printed(&output).contains(reason), "{reason}: {}", printed(&output));
    }
    sign(&good);
    let helper = prepared.start_as_it_is();
    for (text, _) in bad {
        fs::write(&file, text).expect("writing");
        helper.signal(rustix::process::Signal::HUP);
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        assert_eq!(helper.run(helper.call("hello", &[])).stdout, "first\n");
    }
}
