//! `gloveport stdio --host`: other hosts, reached with OpenSSH's own client and real sshd instances that let
//! the key do nothing but `gloveport stdio`.

mod distance;
mod fifty;
mod hostile;
mod roads;

use gloveport_tests::sshd::{Keys, Server, client};
use gloveport_tests::stdio::{self, Bridge};
use gloveport_tests::{Pair, Scene, processes};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any answer on this machine takes, shorter than any timeout that is not meant to pass.
const SOON: Duration = Duration::from_secs(30);

/// A pair, a server that leads to it, and the keys.
struct Site {
    server: Server,
    keys: Keys,
    pair: Pair,
}

fn site() -> Site {
    let scene = Scene::new();
    let say = scene.exec("say", &[&scene.probe(), "print", "{word}"]).with(json!({
        "arguments": "flat", "params": {"word": {"type": "string"}}, "concurrency": 64,
    }));
    let wait = scene.exec("wait", &["/usr/bin/sleep", "{seconds}"]).with(json!({
        "arguments": "flat", "params": {"seconds": {"type": "integer", "max": 600}}, "timeout": "600s",
    }));
    let pair = scene.pair(&[say, wait]);
    stdio::allow_root(&pair.scene);
    let keys = Keys::new(&pair.scene);
    let place = keys.loopback(2201);
    keys.know("web1", &place);
    let server = keys.serve(&pair.state, &place);
    place.await_listener();
    Site { server, keys, pair }
}

impl Site {
    fn client(&self, hosts: &[&str], more: &[&str]) -> Bridge {
        client(&self.pair.scene, &self.keys, hosts, more)
    }

    fn sleeps(&self) -> usize {
        processes::of(self.pair.scene.run.number).iter().filter(|one| one.command.contains("sleep")).count()
    }

    fn await_sleeps(&self, number: usize) {
        processes::wait_until("as many programs run as should", SOON, || self.sleeps() == number);
    }
}

/// The ssh processes of a client.
fn connections(client: &Bridge) -> usize {
    processes::descendants(client.pid()).iter().filter(|one| one.command.starts_with("ssh ")).count()
}

fn say(client: &Bridge, host: &str, word: &str) {
    let said = client.call("say", json!({"host": host, "word": word}));
    assert_eq!(said.stdout(), word, "{said:?}");
    assert_eq!(said.0["_meta"]["gloveport/host"], host);
}

fn host(client: &Bridge, name: &str) -> Value {
    let hosts = client.call("hosts", json!({})).structured()["hosts"].as_array().cloned().unwrap_or_default();
    hosts.into_iter().find(|host| host["name"] == name).unwrap_or_else(|| panic!("no host {name}"))
}

#[test]
fn one_connection_serves_many_calls_is_closed_when_idle_and_opened_again() {
    let site = site();
    let client = site.client(&["web1"], &["--idle", "2"]);
    for number in 0..20 {
        let said = client.call("say", json!({"word": number.to_string()}));
        assert_eq!(said.stdout(), number.to_string());
    }
    assert_eq!(site.server.logins(), 1, "{}", site.server.said());
    processes::wait_until("the idle connection is closed", SOON, || connections(&client) == 0);
    processes::wait_until("the other end is gone", SOON, || site.server.sessions().is_empty());
    say(&client, "web1", "again");
    assert_eq!(site.server.logins(), 2);
    // A connection with a run on it is not idle.
    let slow = client.call("wait", json!({"seconds": 5}));
    assert_eq!(slow.structured()["exit_code"], 0);
    assert_eq!(site.server.logins(), 2);
}

#[test]
fn a_lost_connection_fails_what_waits_on_it_and_is_opened_again() {
    let site = site();
    let client = site.client(&["web1"], &[]);
    say(&client, "web1", "before");
    let waiting = client.begin_call("wait", json!({"seconds": 300}));
    site.await_sleeps(1);
    processes::kill_left(&site.server.sessions());
    let lost = client.result(waiting);
    assert!(lost.is_error() && lost.text().contains("connection to web1 was lost"), "{lost:?}");
    site.await_sleeps(0);
    say(&client, "web1", "after");
}

#[test]
fn a_host_that_is_down_is_an_error_for_that_host_alone() {
    let site = site();
    // One that refuses, and one that accepts and never says a word.
    site.keys.know("down", &site.keys.loopback(2299));
    let silent = site.keys.loopback(2298);
    let _listener = TcpListener::bind((silent.address.as_str(), silent.port)).expect("a listener");
    site.keys.know("silent", &silent);
    let client = site.client(&["web1", "down", "silent"], &["--connect-timeout", "12"]);
    let begun = Instant::now();
    let waiting: Vec<u64> = ["silent", "down", "web1"]
        .iter()
        .map(|host| client.begin_call("say", json!({"host": host, "word": "hello"})))
        .collect();
    assert_eq!(client.result(waiting[2]).stdout(), "hello");
    let down = client.result(waiting[1]);
    assert!(down.is_error() && down.text().contains("down cannot be reached"), "{down:?}");
    assert!(down.text().contains("Connection refused"), "{down:?}");
    assert!(begun.elapsed() < Duration::from_secs(12), "a silent host held the others up");
    let silent = client.result(waiting[0]);
    assert!(silent.is_error() && silent.text().contains("silent cannot be reached"), "{silent:?}");
    assert!(begun.elapsed() < SOON, "one deadline covers connecting");

    // All three are offered: a call may find a host up again.
    let tool = &client.tools()["say"];
    assert_eq!(tool["inputSchema"]["properties"]["host"]["enum"], json!(["web1", "down", "silent"]));
    assert_eq!(tool["inputSchema"]["required"][0], "host");
    assert_eq!(host(&client, "web1")["state"], "up");
    let down = host(&client, "down");
    assert_eq!(down["state"], "down", "{down:#}");
    assert!(down["error"].as_str().is_some_and(|text| text.contains("Connection refused")), "{down:#}");
}

#[test]
fn a_host_that_comes_back_is_served_again() {
    let site = site();
    let place = site.keys.loopback(2202);
    site.keys.know("web2", &place);
    let client = site.client(&["web1", "web2"], &[]);
    assert!(client.call("say", json!({"host": "web2", "word": "x"})).is_error());
    let mut server = site.keys.serve(&site.pair.state, &place);
    place.await_listener();
    say(&client, "web2", "here");
    server.stop();
    processes::wait_until("the loss is noticed", SOON, || connections(&client) == 0);
    assert!(client.call("say", json!({"host": "web2", "word": "x"})).is_error());
    say(&client, "web1", "still here");
    let _server = site.keys.serve(&site.pair.state, &place);
    place.await_listener();
    say(&client, "web2", "back");
}

#[test]
fn a_host_key_that_is_not_the_known_one_is_refused() {
    let site = site();
    site.keys.mistake("imposter", &site.keys.loopback(2201));
    // Not even where the user's own configuration would let it pass.
    site.keys.configure("*", "  StrictHostKeyChecking no\n");
    let client = site.client(&["imposter"], &[]);
    let refused = client.call("say", json!({"word": "x"}));
    assert!(refused.is_error() && refused.text().contains("Host key verification failed"), "{refused:?}");
    assert_eq!(site.server.logins(), 0);
}

#[test]
fn a_call_names_one_of_the_hosts() {
    let site = site();
    site.keys.know("web2", &site.keys.loopback(2201));
    let client = site.client(&["web1", "web2"], &[]);
    for arguments in
        [json!({"word": "x"}), json!({"word": "x", "host": "db9"}), json!({"word": "x", "host": 1})]
    {
        let refused = client.call("say", arguments);
        assert!(refused.is_error(), "{refused:?}");
        assert_eq!(refused.text(), "host: required, one of web1, web2");
    }
    let unknown = client.ask("tools/call", json!({"name": "nothing", "arguments": {"host": "web1"}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
    let misused = client.call("say", json!({"host": "web1", "wort": "x"}));
    assert!(misused.is_error(), "what the host refuses is passed on: {misused:?}");
}

#[test]
fn the_same_host_is_not_named_twice_and_no_name_is_an_option_of_ssh() {
    let scene = Scene::new();
    for words in [vec!["--host", "a", "--host", "a"], vec!["--host=-oProxyCommand=id"], vec!["--host", "a b"]]
    {
        let output = stdio::gloveport(&scene).arg("stdio").args(&words).stdin(Stdio::null()).output();
        assert_eq!(output.expect("gloveport").status.code(), Some(64), "{words:?}");
    }
}

#[test]
fn a_client_that_goes_away_leaves_nothing_running_on_the_hosts() {
    let site = site();
    let mut client = site.client(&["web1"], &[]);
    client.begin_call("wait", json!({"seconds": 300}));
    site.await_sleeps(1);
    let (status, took) = client.close();
    assert!(status.success() && took < SOON, "{status} after {took:?}");
    site.await_sleeps(0);
    processes::wait_until("the other end is gone", SOON, || site.server.sessions().is_empty());

    // And one that is killed.
    let client = site.client(&["web1"], &[]);
    client.begin_call("wait", json!({"seconds": 300}));
    site.await_sleeps(1);
    let killed = processes::read(client.pid()).expect("the client");
    processes::kill_left(&[killed]);
    site.await_sleeps(0);
    processes::wait_until("the other end is gone", SOON, || site.server.sessions().is_empty());
    std::mem::forget(client);
}

#[test]
fn whoever_pipes_requests_in_gets_their_answers() {
    let site = site();
    let mut client = site.client(&["web1"], &[]);
    say(&client, "web1", "open");
    let calls: Vec<u64> =
        (0..2).map(|number| client.begin_call("say", json!({"word": number.to_string()}))).collect();
    let (status, _) = client.close();
    assert!(status.success());
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(client.result(call).stdout(), number.to_string());
    }
}

#[test]
fn a_cancelled_call_ends_on_its_host_and_is_not_answered() {
    let site = site();
    let client = site.client(&["web1"], &[]);
    let waiting = client.begin_call("wait", json!({"seconds": 300}));
    site.await_sleeps(1);
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting},
    }));
    site.await_sleeps(0);
    say(&client, "web1", "next");
    assert_eq!(client.answer_within(waiting, Duration::from_millis(200)), None);
    assert_eq!(site.server.logins(), 1);
}

#[test]
fn a_deadline_that_passes_ends_the_run_there_and_says_so() {
    let site = site();
    let client = site.client(&["web1"], &["--deadline", "8"]);
    say(&client, "web1", "before");
    let late = client.call("wait", json!({"seconds": 300}));
    assert!(late.is_error() && late.text().contains("the run was ended there"), "{late:?}");
    site.await_sleeps(0);
    say(&client, "web1", "after");

    // Where nobody answers any more, it does not claim to know.
    let bridges: Vec<_> =
        site.server.sessions().into_iter().filter(|one| one.command.contains("stdio")).collect();
    let signal = |name: &str| {
        for bridge in &bridges {
            let _ = Command::new("kill").args([name, &bridge.pid.to_string()]).status();
        }
    };
    signal("-STOP");
    let late = client.call("say", json!({"word": "x"}));
    signal("-CONT");
    assert!(late.is_error() && late.text().contains("may still be running"), "{late:?}");
    say(&client, "web1", "after all");
}

#[test]
fn calls_run_at_once_and_do_not_mix_their_answers() {
    let site = site();
    site.keys.know("web2", &site.keys.loopback(2201));
    let client = site.client(&["web1", "web2"], &[]);
    let slow = client.begin_call("wait", json!({"host": "web1", "seconds": 300}));
    let words: Vec<(u64, String, &str)> = (0..24)
        .map(|number| {
            let (word, host) = (format!("word-{number}"), ["web1", "web2"][number % 2]);
            (client.begin_call("say", json!({"host": host, "word": word})), word, host)
        })
        .collect();
    for (id, word, host) in words {
        let said = client.result(id);
        assert_eq!(said.stdout(), word);
        assert_eq!(said.0["_meta"]["gloveport/host"], host);
    }
    assert_eq!(client.answer_within(slow, Duration::ZERO), None);
    assert_eq!(site.server.logins(), 2);
}

#[test]
fn the_key_lets_nobody_do_anything_else_on_the_host() {
    let site = site();
    let ssh = |words: &[&str]| {
        let mut command = Command::new("ssh");
        command.arg("-F").arg(site.keys.config()).args(["-o", "BatchMode=yes"]).args(words);
        command.stdin(Stdio::null()).output().expect("ssh")
    };
    // Whatever command is asked for, the forced one runs; without input it ends at once and says nothing.
    for words in [vec!["web1", "id"], vec!["web1"], vec!["-tt", "web1", "bash"]] {
        let output = ssh(&words);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.trim().is_empty(), "{words:?} printed {said}");
    }
    let forwarded = ssh(&["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "web1", "id"]);
    assert!(!forwarded.status.success(), "a port was forwarded");
    let copied = ssh(&["-s", "web1", "sftp"]);
    assert!(
        copied.stdout.is_empty()
            && !site.server.said().contains("subsystem request for sftp by user root success")
    );
}

/// What docs/ssh.md has an operator type: `echo … | ssh HOST gloveport stdio`.
fn ping(site: &Site, host: &str) -> Value {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(site.keys.config()).args([host, "gloveport", "stdio"]);
    let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ssh");
    let message = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    ssh.stdin.take().expect("a pipe").write_all(message).expect("writing");
    let printed = ssh.wait_with_output().expect("ssh").stdout;
    serde_json::from_slice(&printed).unwrap_or_else(|_| panic!("no answer: {printed:?}"))
}

#[test]
fn a_ping_by_hand_is_answered_by_the_host_s_daemon_or_says_what_is_missing() {
    let site = site();
    assert_eq!(ping(&site, "web1"), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let forbidden = site.pair.gloveport(&["token", "deny-user", "root"]);
    assert!(forbidden.status.success(), "{forbidden:?}");
    let refused = ping(&site, "web1");
    let text = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("gloveport token allow-user"), "{refused:#}");
}

#[test]
fn a_client_of_the_older_protocol_is_served_too() {
    let site = site();
    let client = site.client(&["web1"], &[]);
    let opened = client.begin_plain(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}),
    );
    let opened = client.answer(opened);
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.answer(client.begin_plain("ping", json!({})))["result"], json!({}));
    let listed = client.answer(client.begin_plain("tools/list", json!({})));
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert!(["say", "wait", "hosts"].iter().all(|name| names.contains(name)), "{names:?}");
    let call = json!({"name": "say", "arguments": {"word": "Grüße"}, "_meta": {"progressToken": 0}});
    let said = client.answer(client.begin_plain("tools/call", call));
    assert_eq!(said["result"]["structuredContent"]["steps"][0]["stdout"], "Grüße\n", "{said:#}");
    assert!(said["result"].get("resultType").is_none());
    let unknown = client.answer(client.begin_plain("resources/list", json!({})));
    assert_eq!(unknown["error"]["code"], -32601);
    let record = std::fs::read_to_string(site.pair.state.join("audit.jsonl")).expect("the audit chain");
    assert!(record.contains("old 1"), "the host does not know which client it was");
}
