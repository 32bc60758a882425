//! The user's own ways to a host, which are OpenSSH's: a jump host, and a connection that is shared.

use super::{SOON, Site, connections, say, site};
use gloveport_tests::processes;
use serde_json::json;
use std::process::{Command, Stdio};

#[test]
fn a_host_behind_a_jump_host_is_served_and_fails_alone_when_that_one_is_down() {
    let site = site();
    let place = site.keys.loopback(2203);
    site.keys.know("jump", &place);
    site.keys.know("inner", &site.keys.loopback(2201));
    site.keys.configure("inner", "  ProxyJump jump\n");
    let mut jump = site.keys.serve_jump(&place);
    place.await_listener();
    let client = site.client(&["web1", "inner"], &[]);
    say(&client, "inner", "through");
    say(&client, "inner", "and again");
    assert_eq!((jump.logins(), site.server.logins()), (1, 1), "{}", jump.said());

    jump.stop();
    processes::wait_until("the loss is noticed", SOON, || connections(&client) == 0);
    let down = client.call("say", json!({"host": "inner", "word": "x"}));
    assert!(down.is_error() && down.text().contains("inner cannot be reached"), "{down:?}");
    say(&client, "web1", "not concerned");
    let _jump = site.keys.serve_jump(&place);
    place.await_listener();
    say(&client, "inner", "back");
}

#[test]
fn a_jump_host_with_another_key_than_the_known_one_leads_nowhere() {
    let site = site();
    let place = site.keys.loopback(2203);
    site.keys.mistake("jump", &place);
    site.keys.know("inner", &site.keys.loopback(2201));
    site.keys.configure("inner", "  ProxyJump jump\n");
    let jump = site.keys.serve_jump(&place);
    place.await_listener();
    let refused = site.client(&["inner"], &[]).call("say", json!({"word": "x"}));
    assert!(refused.is_error() && refused.text().contains("inner cannot be reached"), "{refused:?}");
    assert_eq!((jump.logins(), site.server.logins()), (0, 0));
}

/// `ssh` by hand, with the configuration of the site.
fn by_hand(site: &Site, words: &[&str]) -> bool {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(site.keys.config()).args(words);
    ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("ssh").success()
}

/// Shared connections as many have them in their configuration.
fn sharing() -> Site {
    let site = site();
    let path = site.pair.scene.root.join("%n.master").display().to_string();
    let lines = format!("  ControlMaster auto\n  ControlPath {path}\n  ControlPersist 120\n");
    site.keys.configure("web1", &lines);
    site
}

#[test]
fn a_connection_that_the_user_has_open_is_used_and_left_open() {
    let site = sharing();
    assert!(by_hand(&site, &["-fN", "web1"]), "{}", site.server.said());
    let mut client = site.client(&["web1"], &[]);
    say(&client, "web1", "over the user's own connection");
    assert_eq!(site.server.logins(), 1, "{}", site.server.said());
    let (status, took) = client.close();
    assert!(status.success() && took < SOON, "{status} after {took:?}");
    assert!(by_hand(&site, &["-O", "check", "web1"]), "the user's connection was closed");

    // When the user closes it, what waits on it fails, and the next call connects anew.
    let client = site.client(&["web1"], &[]);
    let waiting = client.begin_call("wait", json!({"seconds": 300}));
    site.await_sleeps(1);
    assert!(by_hand(&site, &["-O", "exit", "web1"]));
    let lost = client.result(waiting);
    assert!(lost.is_error() && lost.text().contains("connection to web1 was lost"), "{lost:?}");
    site.await_sleeps(0);
    say(&client, "web1", "anew");
    assert_eq!(site.server.logins(), 2, "{}", site.server.said());
    by_hand(&site, &["-O", "exit", "web1"]);
}

#[test]
fn a_connection_that_gloveport_opened_first_is_shared_too_and_does_not_hold_it_up() {
    let site = sharing();
    let mut first = site.client(&["web1"], &[]);
    let second = site.client(&["web1"], &[]);
    say(&first, "web1", "first");
    say(&second, "web1", "second");
    assert_eq!(site.server.logins(), 1, "{}", site.server.said());
    // ssh leaves a process behind that keeps the connection, and what that inherited.
    let (status, took) = first.close();
    assert!(status.success() && took < SOON, "{status} after {took:?}");
    say(&second, "web1", "still there");
    assert!(by_hand(&site, &["-O", "exit", "web1"]));
    processes::wait_until("the loss is noticed", SOON, || connections(&second) == 0);
    say(&second, "web1", "anew");
    by_hand(&site, &["-O", "exit", "web1"]);
}
