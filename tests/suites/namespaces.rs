//! An empty network namespace, and runs that outlive the daemon's connection.

use gloveport_contract::packet::{Event, Outcome, Request};
use gloveport_tests::{Helper, Scene, processes};
use serde_json::json;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

/// The probe under any sandbox: `alone` in a network namespace, `host` in that of the host.
fn helper(port: u16) -> Helper {
    let scene = Scene::new();
    let words = json!({"words": {"type": "list", "items": {"type": "string", "allow_dash": true}}});
    let probe = |name: &str, network| {
        let exec = json!([scene.probe(), "{words}"]);
        scene.action(name, json!({"params": words, "exec": exec, "sandbox": {"network": network}}))
    };
    let devices = |name: &str, network| {
        let keys = json!({"exec": ["/bin/cat", "/proc/self/net/dev"], "sandbox": {"network": network}});
        scene.action(name, keys)
    };
    let actions = [
        probe("alone", json!("namespace")),
        probe("host", json!([{"connect": [port]}])),
        devices("devices_alone", json!("namespace")),
        devices("devices_host", json!("none")),
    ];
    scene.helper(&actions)
}

fn words(words: &[&str]) -> gloveport_contract::packet::Value {
    let words = words.iter().map(|word| gloveport_contract::packet::Scalar::Text(word.as_bytes().to_vec()));
    gloveport_contract::packet::Value::List(words.collect())
}

#[test]
fn a_network_of_its_own_has_nobody_in_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    let helper = helper(port);
    let connect = ["connect", "127.0.0.1", &port.to_string()].map(str::to_owned);
    let connect: Vec<&str> = connect.iter().map(String::as_str).collect();
    let run = |action: &str, attack: &[&str]| helper.run(helper.call(action, &[("words", words(attack))]));
    // The host's loopback is reached where it is declared, and not from a network of its own.
    let reached = run("host", &connect);
    assert!(!reached.stdout.contains("ENETUNREACH"), "{reached:?}");
    let unreached = run("alone", &connect);
    assert!(unreached.stdout.contains("ENETUNREACH"), "{unreached:?}");
    // It may listen there, to itself; the host's services by path stay closed.
    let listens = run("alone", &["bind", "127.0.0.1", "8099"]);
    assert!(!listens.stdout.contains("EPERM") && !listens.stdout.contains("EACCES"), "{listens:?}");
    let unix = run("alone", &["unix", "/run/systemd/private"]);
    assert!(unix.stdout.contains("EPERM"), "{unix:?}");
    let Some(Event::Accepted { enforcement, .. }) = unreached.events.first() else { panic!("{unreached:?}") };
    assert!(enforcement.network.starts_with("namespace"), "{enforcement:?}");
}

#[test]
fn only_the_loopback_device_is_there() {
    let helper = helper(1);
    let devices = |action: &str| {
        let finished = helper.run(helper.call(action, &[]));
        assert_eq!(finished.outcome(), Some(&Outcome::Exited(0)), "{finished:?}");
        let names = finished.stdout.lines().skip(2).filter_map(|line| line.split(':').next());
        names.map(|name| name.trim().to_owned()).collect::<Vec<_>>()
    };
    let host = fs::read_to_string("/proc/self/net/dev").expect("the host's devices").lines().count() - 2;
    assert_eq!(devices("devices_alone")[..1], ["lo"]);
    // A new namespace has the loopback device, and on some kernels tunnels that are down.
    assert!(!devices("devices_alone").iter().any(|name| name.starts_with("eth")));
    assert_eq!(devices("devices_host").len(), host);
}

#[test]
fn a_run_that_finishes_goes_on_without_the_daemon_and_is_recorded() {
    let scene = Scene::new();
    let place = scene.own_directory("place");
    let done = format!("{place}/done");
    // It prints after the daemon has gone, and must not die of that.
    let script = format!("sleep 1; echo printed; echo done > {done}");
    let action = |name: &str, on_disconnect: &str| {
        scene.action(
            name,
            json!({
                "exec": ["/bin/sh", "-c", script], "allow_interpreter": true, "risk": "write",
                "on_disconnect": on_disconnect, "sandbox": {"write": [place], "exec": ["/bin/sleep"]},
            }),
        )
    };
    let actions = [action("finish", "finish"), action("cancel", "cancel")];
    let helper = scene.helper(&actions);
    let begin = |name: &str| {
        let mut connection = helper.connect();
        connection.send(&Request::Run(Box::new(helper.call(name, &[]))));
        while !matches!(connection.receive(), Some((Event::StepStarted { .. }, _))) {}
    };
    let ended = || helper.audit().into_iter().filter(|record| record["kind"] == "ended").collect::<Vec<_>>();
    begin("cancel");
    processes::wait_until("the run is cancelled", SOON, || ended().len() == 1);
    assert_eq!(ended()[0]["killed_by"], "cancelled");
    assert!(!fs::exists(&done).expect("looking"));
    begin("finish");
    processes::wait_until("the run has ended", SOON, || ended().len() == 2);
    assert_eq!(ended()[1]["steps"][0]["exit_code"], 0, "{:#?}", ended());
    assert!(fs::exists(&done).expect("looking"));
}

#[test]
fn in_a_namespace_of_its_own_a_program_is_process_1_and_can_name_nobody_outside() {
    let scene = Scene::new();
    let action = |name: &str, isolate_pids: bool| {
        let params = json!({"script": {"type": "string", "max_length": 200, "allow_dash": true}});
        let exec = json!(["/bin/sh", "-c", "{script}"]);
        scene.action(
            name,
            json!({
                "params": params, "exec": exec, "allow_interpreter": true,
                "sandbox": {"isolate_pids": isolate_pids},
            }),
        )
    };
    let actions = [action("isolated", true), action("host", false)];
    let helper = scene.helper(&actions);
    let run = |action: &str, script: &str| helper.run(helper.call(action, &[("script", script.into())]));
    assert_eq!(run("isolated", "echo $$").stdout.trim(), "1");
    assert_ne!(run("host", "echo $$").stdout.trim(), "1");
    // The number of a process outside means nothing inside.
    let own = helper.pid();
    let finished = run("isolated", &format!("kill -0 {own}"));
    assert!(finished.stderr.to_lowercase().contains("no such process"), "{finished:?}");
    let finished = run("host", &format!("kill -0 {own}"));
    assert!(finished.stderr.to_lowercase().contains("not permitted"), "{finished:?}");
    // What it leaves behind ends with it.
    assert_eq!(run("isolated", "(while :; do :; done) & exit 3").outcome(), Some(&Outcome::Exited(3)));
}
