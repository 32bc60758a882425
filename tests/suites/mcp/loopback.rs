//! A client that resolves `localhost` to either address reaches the daemon.

use super::wire::{RESULT, check, legacy};
use gloveport_tests::helper::TOKEN;
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Scene, processes};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A daemon that ends with the test, also with one that fails.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        processes::stop(&mut self.0);
    }
}

#[test]
fn ipv4_and_ipv6_are_served_alike() {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let helper = scene.helper(&[hello]);
    let user = helper.scene.daemon.number;
    let child = Command::new(helper.scene.install("gloveportd"))
        .arg("--state")
        .arg(helper.scene.state())
        .args(["--listen", "127.0.0.1:0", "--listen", "[::1]:0"])
        .uid(user)
        .gid(user)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starting gloveportd");
    let mut daemon = Daemon(child);
    let stdout = BufReader::new(daemon.0.stdout.take().expect("a pipe"));
    let addresses: Vec<String> = stdout
        .lines()
        .take(2)
        .map(|line| line.expect("a line").trim_start_matches("listening ").to_owned())
        .collect();
    assert!(addresses.iter().any(|address| address.starts_with("[::1]:")), "{addresses:?}");
    for address in addresses {
        let endpoint = Endpoint::of(&format!("http://{address}/mcp"), Some(TOKEN));
        check(&endpoint, [(address.as_str(), legacy(&endpoint, json!(1), "ping", json!({})), RESULT)]);
        assert_eq!(endpoint.call("hello", json!({})).stdout(), "hello");
    }
}
