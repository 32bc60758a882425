//! Many hosts at once: each an sshd in a network namespace of its own, all behind one bridge.

use gloveport_tests::sshd::{Keys, Place, Server, router};
use gloveport_tests::{Pair, Scene, stdio};
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

const HOSTS: u16 = 50;
/// Hosts that share a daemon: no more than runs at once that its helper takes.
const PER_PAIR: u16 = 25;

/// Network namespaces; removed at the end with all that is in them.
struct Network {
    hub: String,
    hosts: Vec<String>,
}

/// Runs one of `ip`'s batches.
fn ip(lines: &str) {
    let batch = std::env::temp_dir().join(format!("gloveport-ip-{}", std::process::id()));
    std::fs::write(&batch, lines).expect("writing a batch");
    let output = Command::new("ip").arg("-batch").arg(&batch).output().expect("ip");
    let _ = std::fs::remove_file(&batch);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Network {
    /// A hub with a bridge, and hosts that hang on it.
    fn new(hosts: u16) -> Self {
        let name = |part: String| format!("gp{}{part}", std::process::id());
        let network =
            Self { hub: name("h".into()), hosts: (0..hosts).map(|n| name(format!("n{n}"))).collect() };
        let hub = &network.hub;
        ip(&format!("netns add {hub}\n"));
        for host in &network.hosts {
            ip(&format!("netns add {host}\n"));
        }
        let inside = |namespace: &str, lines: &str| {
            let batch = std::env::temp_dir().join(format!("gloveport-ip-{}", std::process::id()));
            std::fs::write(&batch, lines).expect("writing a batch");
            let output =
                Command::new("ip").args(["-n", namespace, "-batch"]).arg(&batch).output().expect("ip");
            let _ = std::fs::remove_file(&batch);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        inside(hub, "link add br0 type bridge\naddr add 10.77.0.1/16 dev br0\nlink set br0 up\n");
        for (number, host) in network.hosts.iter().enumerate() {
            inside(
                hub,
                &format!(
                    "link add v{number} type veth peer name eth0 netns {host}\nlink set v{number} master br0 up\n"
                ),
            );
            let address = address(number);
            inside(host, &format!("addr add {address}/16 dev eth0\nlink set eth0 up\nlink set lo up\n"));
        }
        network
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in self.hosts.iter().chain([&self.hub]) {
            let _ = Command::new("ip").args(["netns", "delete", namespace]).status();
        }
    }
}

fn address(number: usize) -> String {
    format!("10.77.1.{}", number + 1)
}

fn pair() -> Pair {
    let scene = Scene::new();
    let say = scene.exec("say", &[&scene.probe(), "print", "{word}"]).with(json!({
        "arguments": "flat", "params": {"word": {"type": "string"}}, "concurrency": PER_PAIR,
    }));
    let pair = scene.pair(&[say]);
    stdio::allow_root(&pair.scene);
    pair
}

mod alone {
    use super::*;

    #[test]
    fn fifty_hosts_are_called_at_once_over_one_connection_each() {
        let pairs: Vec<Pair> = (0..HOSTS / PER_PAIR).map(|_| pair()).collect();
        let network = Network::new(HOSTS);
        let keys = Keys::new(&pairs[0].scene);
        let names: Vec<String> = (0..HOSTS).map(|number| format!("host{number}")).collect();
        let servers: Vec<Server> = names
            .iter()
            .enumerate()
            .map(|(number, name)| {
                let place =
                    Place { address: address(number), port: 22, namespace: Some(&network.hosts[number]) };
                keys.know(name, &place);
                keys.serve(&pairs[number / usize::from(PER_PAIR)].state, &place)
            })
            .collect();
        servers.iter().for_each(Server::await_listening);

        let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &network.hub]).arg(gloveport_tests::programs::built("gloveport"));
        let mut client = stdio::Bridge::start(command, &router(&keys, &hosts, &["--connect-timeout", "45"]));
        let round = || {
            let begun = Instant::now();
            let calls: Vec<u64> = hosts
                .iter()
                .map(|host| client.begin_call("say", json!({"host": host, "word": host})))
                .collect();
            for (id, host) in calls.into_iter().zip(&hosts) {
                let said = client.result(id);
                assert_eq!(said.stdout(), *host, "{said:?}");
            }
            begun.elapsed()
        };
        let (first, second) = (round(), round());
        println!("{HOSTS} hosts at once: {first:?} with connecting, {second:?} on open connections");
        assert!(second < first && second < Duration::from_secs(20), "{first:?}, then {second:?}");
        for (server, name) in servers.iter().zip(&names) {
            assert_eq!(server.logins(), 1, "{name}: {}", server.said());
        }
        let (status, _) = client.close();
        assert!(status.success());
    }
}
