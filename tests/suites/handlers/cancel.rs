//! A run that is given up, or at its deadline, ends its statement on the server.

use super::{credential, query};
use gloveport_tests::servers::MariaDb;
use gloveport_tests::{Pair, Scene, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::Duration;

/// What the specification allows for the processes of a run.
const GONE: Duration = Duration::from_secs(1);
/// A statement that is killed looks at it now and then; one that is not goes on for its 60 seconds.
const SOON: Duration = Duration::from_secs(10);

const SETUP: &str = "
CREATE DATABASE app;
CREATE USER reader@localhost IDENTIFIED BY 'app';
GRANT SELECT ON app.* TO reader@localhost;
USE app;
CREATE TABLE numbers (n INT) SELECT seq AS n FROM seq_1_to_20000;
CREATE VIEW app.nap AS SELECT SLEEP(30) AS slept;
";
/// Longer than anybody waits.
const SLOW: &str = "SELECT COUNT(*) FROM numbers a JOIN numbers b JOIN numbers c WHERE a.n + b.n + c.n = 1";

fn pair(server: &MariaDb, timeout: &str) -> Pair {
    let scene = Scene::new();
    let config =
        json!({"server": server.socket, "database": "app", "credential": "reader", "timeout": "60s"});
    let action = query(&scene, "sql", config).with(json!({"timeout": timeout}));
    let pair = scene.pair(&[action]);
    credential(&pair, "reader", "user = \"reader\"\npassword = \"app\"\n");
    pair
}

fn wait_until_it_runs(server: &MariaDb) {
    processes::wait_until("the statement runs", Duration::from_secs(30), || server.is_busy_for("reader"));
}

fn wait_until_it_has_ended(server: &MariaDb) {
    processes::wait_until("the server has ended the statement", SOON, || !server.is_busy_for("reader"));
}

#[test]
fn a_cancelled_call_ends_its_statement_on_the_server() {
    let server = MariaDb::start(SETUP);
    let pair = pair(&server, "60s");
    for sql in [SLOW, "SELECT slept FROM nap"] {
        let call = pair.begin("sql", json!({"params": {"sql": sql}}));
        wait_until_it_runs(&server);
        drop(call);
        processes::wait_until_gone(pair.scene.run.number, GONE);
        wait_until_it_has_ended(&server);
    }
    // A handler that had no time to say so leaves its statement running: that is what is seen here.
    let call = pair.begin("sql", json!({"params": {"sql": SLOW}}));
    wait_until_it_runs(&server);
    for process in processes::of(pair.scene.run.number) {
        let pid = Pid::from_raw(process.pid.cast_signed()).expect("a number");
        kill_process(pid, Signal::KILL).expect("killing the handler");
    }
    processes::wait_until_gone(pair.scene.run.number, SOON);
    assert!(server.is_busy_for("reader"));
    server.admin("KILL USER reader@localhost");
    drop(call);
}

#[test]
fn a_statement_ends_on_the_server_at_the_actions_deadline() {
    let server = MariaDb::start(SETUP);
    let pair = pair(&server, "2s");
    let result = pair.call("sql", json!({"params": {"sql": SLOW}}));
    assert_eq!(result.structured()["timed_out"], true, "{:#}", result.0);
    wait_until_it_has_ended(&server);
    let result = pair.call("sql", json!({"params": {"sql": "SELECT COUNT(*) FROM numbers"}}));
    assert_eq!(result.structured()["data"]["rows"], json!([[20_000]]), "{:#}", result.0);
}
