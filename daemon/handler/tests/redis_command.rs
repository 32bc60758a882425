//! `redis_command` against a real Redis.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Answer, Call, call};
use gloveport_tests::scratch::Scratch;
use gloveport_tests::servers::{Redis, certificates, free_port, must};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The account that an administrator would make for the handler: it reads, and nothing else.
const CREDENTIAL: &str = "user = \"reader\"\npassword = \"canary-4711\"\n";

const USERS: &str = "user default on nopass ~* &* +@all\nuser reader on >canary-4711 ~app:* resetchannels -@all +get +mget +hget +hlen +ttl +type +exists +strlen +llen +scard +zcard +scan +info +select\n";

fn start(further: &[&str]) -> Redis {
    Redis::start(USERS, further)
}

fn command(server: &str, words: &[&str]) -> Call {
    call("redis_command", json!({ "server": server }), json!({ "command": words }))
}

#[track_caller]
fn value(answer: Answer) -> Value {
    answer.ok()["value"].clone()
}

#[test]
fn reading_commands_answer_and_everything_else_is_refused() {
    let redis = start(&[]);
    redis.admin(&["MSET", "app:a", "eins", "app:ü", "zwei"]);
    redis.admin(&["HSET", "app:h", "f", "wert"]);
    redis.admin(&["RPUSH", "app:l", "1", "2"]);
    must("sh", &["-c", &format!("printf '\\377\\000' | redis-cli -s {} -x SET app:binary", redis.socket)]);
    let run = |words: &[&str]| command(&redis.socket, words).credential(CREDENTIAL).run();

    assert_eq!(value(run(&["GET", "app:a"])), "eins");
    assert_eq!(value(run(&["get", "app:ü"])), "zwei");
    assert_eq!(value(run(&["GET", "app:none"])), Value::Null);
    assert_eq!(value(run(&["GET", "app:binary"])), json!({ "base64": "/wA=" }));
    assert_eq!(value(run(&["MGET", "app:a", "app:none"])), json!(["eins", null]));
    assert_eq!(value(run(&["HGET", "app:h", "f"])), "wert");
    assert_eq!(value(run(&["HLEN", "app:h"])), 1);
    assert_eq!(value(run(&["LLEN", "app:l"])), 2);
    assert_eq!(value(run(&["STRLEN", "app:a"])), 4);
    assert_eq!(value(run(&["TTL", "app:a"])), -1);
    assert_eq!(value(run(&["TYPE", "app:h"])), "hash");
    assert_eq!(value(run(&["EXISTS", "app:a", "app:none"])), 1);
    assert_eq!(value(run(&["SCARD", "app:none"])), 0);
    let scanned = value(run(&["SCAN", "0", "MATCH", "app:h*", "COUNT", "1000"]));
    assert_eq!(scanned, json!(["0", ["app:h"]]));
    assert!(value(run(&["INFO", "server"])).as_str().unwrap().contains("redis_version"));

    for words in [
        &["SET", "app:a", "x"][..],
        &["set", "app:a", "x"],
        &["EVAL", "return redis.call('SET','app:a','x')", "0"],
        &["CONFIG", "SET", "dir", "/tmp"],
        &["config|set", "dir"],
        &["KEYS", "*"],
        &["MONITOR"],
        &["SUBSCRIBE", "x"],
        &["BLPOP", "app:l", "0"],
        &["GET", "app:a\r\nSET app:a x", "y"],
        &["FLUSHALL"],
    ] {
        run(words).refusal();
    }
    // A key with a line end in it is a key.
    assert_eq!(value(run(&["GET", "app:a\r\nSET app:a x"])), Value::Null);
    assert_eq!(redis.admin(&["GET", "app:a"]).trim(), "eins");
    // Errors of the server are told: a key of another type, a key that the account may not see.
    assert!(run(&["GET", "app:h"]).refusal().contains("WRONGTYPE"));
    assert!(run(&["GET", "other"]).refusal().contains("ACL"));
}

#[test]
fn a_big_value_is_refused_before_it_is_read() {
    let redis = start(&[]);
    redis.admin(&["SETRANGE", "app:big", "100000000", "x"]);
    redis.admin(&["SETRANGE", "app:small", "1000", "x"]);
    let started = Instant::now();
    for words in [&["GET", "app:big"][..], &["MGET", "app:small", "app:big"]] {
        let reason = command(&redis.socket, words).credential(CREDENTIAL).run().refusal();
        assert!(reason.contains("100000001 bytes"), "{reason}");
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(
        value(command(&redis.socket, &["STRLEN", "app:big"]).credential(CREDENTIAL).run()),
        100_000_001
    );
    let answer = call(
        "redis_command",
        json!({ "server": redis.socket, "max_bytes": "1000B" }),
        json!({ "command": ["GET", "app:small"] }),
    );
    assert!(answer.credential(CREDENTIAL).run().refusal().contains("1001 bytes"));
}

#[test]
fn logins_work_over_each_way_and_leave_no_secret_behind() {
    let redis = start(&[]);
    redis.admin(&["SET", "app:a", "x"]);
    let tcp = format!("127.0.0.1:{}", redis.port);
    let tls = format!("127.0.0.1:{}", redis.tls_port);
    let name = format!("localhost:{}", redis.tls_port);
    let ca = format!("{CREDENTIAL}ca = \"{}\"\n", redis.server.scratch.path("ca.pem"));
    let inline = std::fs::read_to_string(redis.server.scratch.path("ca.pem")).unwrap();
    let inline = format!("{CREDENTIAL}ca = \"\"\"\n{inline}\"\"\"\n");
    let client = format!(
        "{ca}cert = \"{}\"\nkey = \"{}\"\n",
        redis.server.scratch.path("client.pem"),
        redis.server.scratch.path("client.key")
    );
    let run =
        |server: &str, credential: &str| command(server, &["GET", "app:a"]).credential(credential).run();
    assert_eq!(value(run(&tcp, CREDENTIAL)), "x");
    assert_eq!(value(run(&tls, &ca)), "x");
    assert_eq!(value(run(&name, &inline)), "x");
    assert_eq!(value(run(&tls, &client)), "x");
    assert_eq!(
        value(command(&tcp, &["GET", "app:a"]).run()),
        "x",
        "the default account needs no password here"
    );

    let wrong = run(&tcp, "user = \"reader\"\npassword = \"canary-wrong\"\n");
    let not_toml = run(&tcp, "user = \"reader\"\npassword = canary-wrong\n");
    let no_tls = run(&tcp, &ca);
    let other_authority = {
        let scratch = Scratch::new();
        certificates(&scratch.0);
        run(&tls, &format!("{CREDENTIAL}ca = \"{}\"\n", scratch.path("ca.pem")))
    };
    for (answer, code) in [(wrong, 1), (not_toml, 64), (no_tls, 1), (other_authority, 1)] {
        assert_eq!(answer.code, code, "{}", answer.value);
        assert!(!answer.value.to_string().contains("canary") && !answer.stderr.contains("canary"));
    }
    let nobody = command(&format!("127.0.0.1:{}", free_port()), &["GET", "app:a"]).run().refusal();
    assert!(nobody.contains("cannot be reached"), "{nobody}");
}

#[test]
fn a_redirect_of_a_cluster_is_told_and_not_followed() {
    let cluster = |bus: u16| {
        let bus = bus.to_string();
        start(&["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-port", &bus])
    };
    let (here_bus, there_bus) = (free_port(), free_port());
    let (mut here, mut there) = (cluster(here_bus), cluster(there_bus));
    // The slot of the key `app:a`.
    there.admin(&["CLUSTER", "ADDSLOTS", there.admin(&["CLUSTER", "KEYSLOT", "app:a"]).trim()]);
    here.admin(&["CLUSTER", "MEET", "127.0.0.1", &there.port.to_string(), &there_bus.to_string()]);
    let ask = |redis: &Redis| command(&redis.socket, &["GET", "app:a"]).credential(CREDENTIAL).run();
    let socket = here.socket.clone();
    here.server
        .wait_for("the cluster", || must("redis-cli", &["-s", &socket, "GET", "app:a"]).starts_with("MOVED"));
    let reason = ask(&here).refusal();
    assert!(
        reason.contains(&format!("is at 127.0.0.1:{}, and redirects are not followed", there.port)),
        "{reason}"
    );
    let socket = there.socket.clone();
    there
        .server
        .wait_for("the cluster", || must("redis-cli", &["-s", &socket, "GET", "app:a"]).trim().is_empty());
    assert_eq!(value(ask(&there)), Value::Null);
}

#[test]
fn a_database_by_number_is_chosen() {
    let redis = start(&[]);
    redis.admin(&["-n", "3", "SET", "app:a", "drei"]);
    let run = |db: u32| {
        call(
            "redis_command",
            json!({ "server": redis.socket, "db": db }),
            json!({ "command": ["GET", "app:a"] }),
        )
        .credential(CREDENTIAL)
        .run()
    };
    assert_eq!(value(run(3)), "drei");
    assert_eq!(value(run(0)), Value::Null);
    assert!(run(999).refusal().contains("choosing the database"));
}
