//! `subscriptions/listen`: who listens hears that its list of tools has changed.

use super::pair;
use gloveport_contract::catalog::Catalog;
use gloveport_tests::http::Request;
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::signing::{self, Key};
use gloveport_tests::{Daemon, Helper, Scene, clients, processes};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An open subscription.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn open(endpoint: &Endpoint, notifications: Value) -> Self {
        let request: Request =
            endpoint.request("subscriptions/listen", json!({"notifications": notifications}));
        let mut listener = Self(BufReader::new(request.open(&endpoint.address).expect("a connection")));
        let acknowledged = listener.next().expect("an acknowledgement");
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged:#}");
        assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
        listener
    }

    /// The next message; `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.0.read_line(&mut line).expect("reading a stream") > 0 {
            if let Some(message) = line.strip_prefix("data: ") {
                return serde_json::from_str(message).ok();
            }
            line.clear();
        }
        None
    }

    fn expect_change(&mut self) {
        let message = self.next().expect("a notification");
        assert_eq!(message["method"], "notifications/tools/list_changed", "{message:#}");
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    }
}

#[test]
fn a_changed_token_is_a_changed_list_and_a_revoked_one_the_end() {
    let pair = pair();
    let added = pair.add_token("listener", &[]);
    let endpoint = pair.with_token(added["token"].as_str().expect("a token"));
    let mut listener = Listener::open(&endpoint, json!({"toolsListChanged": true}));
    pair.add_token("another", &[]);
    listener.expect_change();
    assert!(pair.gloveport(&["token", "revoke", "listener"]).status.success());
    let end = listener.next().expect("the end");
    assert_eq!(end["id"], 1, "{end:#}");
    assert_eq!(end["result"]["resultType"], "complete");
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!(listener.next(), None);
    assert_eq!(endpoint.send(&endpoint.request("tools/list", json!({}))).status, 401);
}

#[test]
fn who_did_not_ask_for_tools_hears_nothing_of_them() {
    let pair = pair();
    let mut silent = Listener::open(&pair, json!({"promptsListChanged": true}));
    let mut listener = Listener::open(&pair, json!({"toolsListChanged": true}));
    pair.add_token("another", &[]);
    listener.expect_change();
    silent.0.get_mut().set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let mut line = String::new();
    while silent.0.read_line(&mut line).is_ok_and(|read| read > 0) {}
    assert!(!line.contains("list_changed"), "{line}");
}

/// A pair whose catalogue grows from one action to two.
struct Growing {
    // The daemon ends before the helper, whose scene must be empty then.
    daemon: Daemon,
    helper: Helper,
    catalog: Catalog,
    more: Value,
    file: PathBuf,
    key: Key,
}

impl Growing {
    fn new() -> Self {
        let scene = Scene::new();
        let [hello, more] = ["hello", "more"].map(|name| scene.probing(name, &["print", name]));
        let preparation = scene.prepare(&[hello]);
        preparation.write();
        let (file, catalog) = (preparation.catalog_file(), preparation.catalog.clone());
        let key = Key::make(&preparation.scene.root, "reviewers-key");
        let signers = format!("{}{}", preparation.key.signer("operator"), key.signer("reviewer"));
        fs::write(preparation.scene.state().join("trusted_signers"), signers)
            .expect("writing trusted_signers");
        let helper = preparation.start_as_it_is();
        let daemon = helper.daemon();
        assert_eq!(daemon.tools(), ["hello", "run_batch"]);
        Self { daemon, helper, catalog, more: more.json(), file, key }
    }

    /// Writing the file and signing it are two steps, and each may be seen.
    fn grow(&self) {
        let mut catalog = self.catalog.clone();
        catalog.actions.push(serde_json::from_value(self.more.clone()).expect("an action"));
        let text = serde_json::to_string_pretty(&catalog).expect("JSON") + "\n";
        fs::write(&self.file, text).expect("writing");
        self.key.sign(signing::NAMESPACE, &self.file);
        self.helper.signal(rustix::process::Signal::HUP);
    }
}

#[test]
fn a_new_catalogue_is_a_changed_list() {
    let growing = Growing::new();
    let daemon = &growing.daemon;
    let mut listener = Listener::open(daemon, json!({"toolsListChanged": true}));
    growing.grow();
    while daemon.tools() != ["hello", "more", "run_batch"] {
        listener.expect_change();
    }
    processes::wait_until("the helper has it too", Duration::from_secs(5), || {
        !daemon.call("more", json!({})).is_error()
    });
}

/// An unmodified client listens while the catalogue grows.
fn hears_of_it(mut client: Command) {
    let growing = Growing::new();
    let token = growing.daemon.token.clone().unwrap_or_default();
    let client = client.arg(growing.daemon.url()).args([&token, "more"]).stdout(Stdio::piped());
    let mut client = client.spawn().expect("starting a client");
    let mut lines = BufReader::new(client.stdout.take().expect("a pipe")).lines();
    let mut tools = || {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str::<Value>(&line).expect("JSON")["tools"].clone()
    };
    assert_eq!(tools(), json!(["hello", "run_batch"]));
    growing.grow();
    assert_eq!(tools(), json!(["hello", "more", "run_batch"]));
    assert!(client.wait().expect("waiting for a client").success());
}

#[test]
fn the_official_python_sdk_hears_of_a_new_catalogue() {
    hears_of_it(clients::python("mcp", "python_sdk_listen.py"));
}

#[test]
fn the_typescript_sdk_hears_of_a_new_catalogue() {
    hears_of_it(clients::node("typescript_sdk_v2_listen.mjs"));
}
