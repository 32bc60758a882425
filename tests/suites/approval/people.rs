//! How a person at the host decides.

use super::clients::{listed, pair, waiting};
use gloveport_tests::terminal::Terminal;
use gloveport_tests::{Pair, programs};
use serde_json::json;
use std::process::Command;

fn begun<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    pair: &'scope Pair,
) -> std::thread::ScopedJoinHandle<'scope, String> {
    scope.spawn(|| pair.call("restart", json!({})).text())
}

#[test]
fn what_waits_is_shown_with_everything_that_is_decided_about() {
    let pair = pair();
    std::thread::scope(|scope| {
        let call = begun(scope, &pair);
        let id = waiting(&pair);
        let shown = String::from_utf8(pair.gloveport(&["pending"]).stdout).expect("text");
        let call_shown = listed(&pair).remove(0);
        let run_as = call_shown["run_as"].as_str().expect("run_as").to_owned();
        let digest = call_shown["digest"].as_str().expect("a digest").to_owned();
        let argv = format!("{:?} \"print\" \"restarted\"", pair.scene.probe());
        for part in [&id, "restart (read)", "since    20", "held for 600 s", "who      ", "(token)", &argv] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        for part in [format!("as       {run_as} in /"), format!("digest   {digest}")] {
            assert!(shown.contains(&part), "{part}: {shown}");
        }
        assert!(pair.gloveport(&["deny", &id, "--reason", "not during the day"]).status.success());
        let said = call.join().expect("the call");
        assert!(said.contains("a person said no: not during the day"), "{said}");
    });
}

#[test]
fn approve_watch_asks_on_its_terminal_as_calls_come() {
    let pair = pair();
    let mut command = Command::new(programs::built("gloveport"));
    command.args(["approve", "--watch", "--state"]).arg(&pair.state);
    let mut terminal = Terminal::start(command);
    terminal.wait_for("waiting for calls that need approval");
    std::thread::scope(|scope| {
        let call = begun(scope, &pair);
        terminal.wait_for("Let it run? [y]es, [n]o");
        assert!(terminal.screen().contains("\"restarted\""), "{}", terminal.screen());
        terminal.type_line("y");
        terminal.wait_for("approved: restart");
        assert!(call.join().expect("the call").contains("restarted"));

        let call = begun(scope, &pair);
        let id = waiting(&pair);
        terminal.wait_for(&id);
        terminal.type_line("n");
        terminal.wait_for("Why? The client is told:");
        terminal.type_line("the backup runs");
        let said = call.join().expect("the call");
        assert!(said.contains("a person said no: the backup runs"), "{said}");
    });
    // Without a terminal there is nobody to ask.
    let refused = pair.gloveport(&["approve", "--watch"]);
    assert_eq!(refused.status.code(), Some(64), "{}", String::from_utf8_lossy(&refused.stderr));
}
