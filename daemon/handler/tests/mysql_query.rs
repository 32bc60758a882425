//! `mysql_query` against a real MariaDB.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Answer, Call, call, finish};
use gloveport_tests::scratch::Scratch;
use gloveport_tests::servers::{MariaDb, certificates, must};
use serde_json::{Value, json};
use std::ops::Deref;
use std::process::Command;
use std::time::{Duration, Instant};

const CREDENTIAL: &str = "user = \"reader\"\npassword = \"canary-4711\"\n";

const SETUP: &str = r#"
CREATE DATABASE app CHARACTER SET utf8mb4;
CREATE USER reader@localhost IDENTIFIED BY 'canary-4711';
CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'canary-4711';
CREATE USER secure@'127.0.0.1' IDENTIFIED BY 'canary-4711' REQUIRE X509;
CREATE USER empty@localhost IDENTIFIED BY '';
CREATE USER signed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('x');
CREATE USER writer@localhost IDENTIFIED BY 'canary-4711';
GRANT SELECT, EXECUTE ON app.* TO reader@localhost, reader@'127.0.0.1', secure@'127.0.0.1', empty@localhost;
GRANT ALL ON *.* TO writer@localhost;
USE app;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(50), price DECIMAL(30,10), day DATE, at DATETIME(3), span TIME,
    data BLOB, big BIGINT UNSIGNED, ratio DOUBLE, part FLOAT, flags BIT(8), y YEAR, doc JSON, `order` INT);
INSERT INTO t VALUES (1, 'grün ''quoted''', 12345678901234567890.0123456789, '2026-01-02', '2026-01-02 03:04:05.678',
    '-26:03:04', x'ff0041', 18446744073709551615, 0.5, 0.1, b'101', 2026, '{"a": [1]}', 7);
INSERT INTO t (id) VALUES (2);
CREATE TABLE numbers (n INT) SELECT seq AS n FROM seq_1_to_20000;
CREATE TABLE wide (body LONGTEXT);
INSERT INTO wide VALUES (REPEAT('x', 5000000)), ('short');
CREATE SEQUENCE s;
CREATE FUNCTION harmless() RETURNS INT DETERMINISTIC RETURN 1;
"#;

struct Maria(MariaDb);

impl Deref for Maria {
    type Target = MariaDb;
    fn deref(&self) -> &MariaDb {
        &self.0
    }
}

fn start() -> Maria {
    Maria(MariaDb::start(SETUP))
}

impl Maria {
    fn call(&self, sql: &str, values: Value) -> Call {
        let config = json!({ "server": self.socket, "database": "app" });
        call("mysql_query", config, json!({ "sql": sql, "values": values })).credential(CREDENTIAL)
    }

    fn query(&self, sql: &str) -> Answer {
        self.call(sql, json!([])).run()
    }
}

#[test]
fn rows_keep_their_types_and_values_are_bound() {
    let maria = start();
    let answer = maria.query("SELECT * FROM t ORDER BY id").ok();
    assert_eq!(
        answer["rows"][0],
        json!([
            1, "grün 'quoted'", "12345678901234567890.0123456789", "2026-01-02", "2026-01-02 03:04:05.678", "-26:03:04",
            {"base64": "/wBB"}, "18446744073709551615", 0.5, 0.1, {"base64": "BQ=="}, 2026, "{\"a\": [1]}", 7
        ])
    );
    assert_eq!(answer["rows"][1].as_array().unwrap()[1..], vec![Value::Null; 13]);
    let kinds: Vec<&str> =
        answer["columns"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "integer", "text", "decimal", "date", "datetime", "time", "binary", "integer", "float", "float",
            "bit", "year", "text", "integer"
        ]
    );
    let bound = |sql: &str, values: Value| maria.call(sql, values).run();
    assert_eq!(bound("SELECT id FROM t WHERE name = ?", json!(["grün 'quoted'"])).ok()["rows"], json!([[1]]));
    assert_eq!(bound("SELECT id FROM t WHERE name = ?", json!(["' OR 1=1 -- "])).ok()["rows"], json!([]));
    assert_eq!(
        bound("SELECT ?, ?, ?, ?", json!([-5, true, null, "x"])).ok()["rows"],
        json!([[-5, 1, null, "x"]])
    );
    let many: Vec<i64> = (0..20).collect();
    let sql = format!("SELECT {}", vec!["?"; 20].join(", "));
    assert_eq!(bound(&sql, json!(many)).ok()["rows"], json!([many]));
    assert!(bound("SELECT ?", json!([])).refusal().contains("1 places for values, and 0"));
    assert_eq!(maria.query("SELECT `order` FROM t WHERE id = 1;").ok()["rows"], json!([[7]]));
    let database = json!({ "server": maria.socket, "database": "x;id" });
    assert!(
        call("mysql_query", database, json!({ "sql": "SELECT 1" }))
            .credential(CREDENTIAL)
            .run()
            .refusal()
            .contains("denied")
    );
    for sql in [
        "SHOW TABLES",
        "SHOW FULL COLUMNS FROM t",
        "SHOW GLOBAL STATUS LIKE 'Uptime'",
        "SHOW CREATE TABLE t",
        "SHOW PROCESSLIST",
        "SHOW INDEX FROM t",
        "DESC t",
        "DESCRIBE t",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN FORMAT=JSON SELECT * FROM t",
        "WITH x (a) AS (SELECT 1) SELECT a FROM x",
        "SELECT COUNT(*), SUM(n) OVER () FROM numbers",
        "SELECT @@version, VERSION(), NOW()",
    ] {
        assert_ne!(maria.query(sql).ok()["row_count"], 0, "{sql}");
    }
}

#[test]
fn nothing_is_written_by_whatever_statement() {
    let maria = start();
    let file = format!("{}/data/out", maria.server.scratch.root());
    // An account that could do anything: the classifier and the transaction hold.
    let writer = "user = \"writer\"\npassword = \"canary-4711\"\n";
    let config = json!({ "server": maria.socket, "database": "app" });
    for sql in [
        "INSERT INTO t (id) VALUES (9)".to_owned(),
        "SELECT 1; INSERT INTO t (id) VALUES (9)".to_owned(),
        format!("SELECT 1 INTO OUTFILE '{file}'"),
        format!("SELECT 1 INTO/**/OUTFILE '{file}'"),
        format!("SELECT 1 /*!50000 INTO OUTFILE '{file}' */"),
        format!("SELECT 1 /*M!100000 INTO DUMPFILE '{file}' */"),
        "SELECT LOAD_FILE('/etc/passwd')".to_owned(),
        "SELECT NEXT VALUE FOR s".to_owned(),
        "SELECT NEXTVAL(s)".to_owned(),
        "SELECT harmless()".to_owned(),
        "SELECT * FROM t FOR UPDATE".to_owned(),
        "SELECT * FROM t LOCK IN SHARE MODE".to_owned(),
        "SELECT GET_LOCK('x', 1)".to_owned(),
        "SELECT SLEEP(1)".to_owned(),
        "SET GLOBAL read_only = 1".to_owned(),
        "CALL p()".to_owned(),
        "HANDLER t OPEN".to_owned(),
        "PREPARE s FROM 'SELECT 1'".to_owned(),
        "EXECUTE IMMEDIATE 'DELETE FROM t'".to_owned(),
        "EXPLAIN DELETE FROM t".to_owned(),
        "ANALYZE SELECT 1".to_owned(),
    ] {
        call("mysql_query", config.clone(), json!({ "sql": sql })).credential(writer).run().refusal();
    }
    assert_eq!(maria.admin("SELECT COUNT(*) FROM app.t").trim(), "2");
    assert!(!std::path::Path::new(&file).exists());
    // A view hides a function that writes; the transaction does not let it.
    maria.admin(
        "CREATE FUNCTION app.writes() RETURNS INT BEGIN INSERT INTO app.t (id) VALUES (77); RETURN 1; END //
        CREATE VIEW app.trap AS SELECT app.writes() AS w //",
    );
    let reason = call("mysql_query", config, json!({ "sql": "SELECT * FROM trap" }))
        .credential(writer)
        .run()
        .refusal();
    assert!(reason.contains("READ ONLY"), "{reason}");
    assert_eq!(maria.admin("SELECT COUNT(*) FROM app.t").trim(), "2");
}

#[test]
fn rows_bytes_and_time_are_bounded_and_a_cancelled_statement_ends_on_the_server() {
    let maria = start();
    let with = |config: Value, sql: &str| {
        let mut all = json!({ "server": maria.socket, "database": "app" });
        all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        call("mysql_query", all, json!({ "sql": sql })).credential(CREDENTIAL)
    };
    let answer = with(json!({ "max_rows": 3 }), "SELECT n FROM numbers").run().ok();
    assert_eq!((&answer["row_count"], &answer["limits_reached"]), (&json!(3), &json!(["max_rows"])));
    let answer = with(json!({ "max_rows": 3 }), "SELECT n FROM numbers LIMIT 3").run().ok();
    assert_eq!((&answer["row_count"], &answer["truncated"]), (&json!(3), &json!(false)));
    let answer = with(json!({ "max_bytes": "2KB" }), "SELECT n FROM numbers").run();
    assert!(answer.length <= 2000);
    assert_eq!(answer.ok()["limits_reached"], json!(["max_bytes"]));
    let answer = with(json!({}), "SELECT body FROM wide").max_output(32 * 1024).run().ok();
    assert_eq!((&answer["row_count"], &answer["limits_reached"]), (&json!(0), &json!(["max_bytes"])));

    let slow = "SELECT COUNT(*) FROM numbers a JOIN numbers b JOIN numbers c WHERE a.n + b.n + c.n = 1";
    let started = Instant::now();
    let reason = with(json!({ "timeout": "500ms" }), slow).run().refusal();
    assert!(reason.contains("took longer") && started.elapsed() < Duration::from_secs(5), "{reason}");

    let (child, scratch, max_output) = with(json!({ "timeout": "60s" }), slow).start();
    let until = Instant::now() + Duration::from_secs(20);
    while !maria.is_busy_for("reader") {
        assert!(Instant::now() < until, "the statement never began");
    }
    let killed = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let answer = finish(child, scratch, max_output);
    // Milliseconds on a host that is not busy; the helper's KILL comes 200 ms after its TERM.
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    // The server may tell the interrupted statement first.
    let ended = answer.code == 143 && answer.value.is_null();
    let told = answer.code == 1 && answer.value.to_string().contains("1317");
    assert!(ended || told, "{} {}", answer.code, answer.value);
    let until = Instant::now() + Duration::from_secs(2);
    while maria.is_busy_for("reader") {
        assert!(Instant::now() < until, "the statement goes on without its client");
    }
}

#[test]
fn logins_work_over_each_way_and_leave_no_secret_behind() {
    let maria = start();
    let at = |name: &str| maria.server.scratch.path(name);
    let tcp = format!("127.0.0.1:{}", maria.port);
    let ca = format!("ca = \"{}\"\n", at("ca.pem"));
    let client = format!("{ca}cert = \"{}\"\nkey = \"{}\"\n", at("client.pem"), at("client.key"));
    let secure = CREDENTIAL.replace("reader", "secure");
    let run = |server: &str, credential: &str| {
        call("mysql_query", json!({ "server": server }), json!({ "sql": "SHOW STATUS LIKE 'Ssl_cipher'" }))
            .credential(credential)
            .run()
    };
    let cipher = |answer: Answer| answer.ok()["rows"][0][1].as_str().unwrap().to_owned();
    assert_eq!(cipher(run(&maria.socket, CREDENTIAL)), "");
    assert_eq!(cipher(run(&maria.socket, "user = \"empty\"\n")), "");
    assert_eq!(cipher(run(&tcp, CREDENTIAL)), "");
    assert!(cipher(run(&tcp, &format!("{CREDENTIAL}{ca}"))).contains("AES"));
    assert!(cipher(run(&tcp, &format!("{secure}{client}"))).contains("AES"));
    let me = must("id", &["-un"]);
    maria.admin(&format!("CREATE USER IF NOT EXISTS '{}'@localhost IDENTIFIED VIA unix_socket", me.trim()));
    if me.trim() != "root" {
        assert_eq!(cipher(run(&maria.socket, &format!("user = \"{}\"\n", me.trim()))), "");
    }

    let foreign = Scratch::new();
    certificates(&foreign.0);
    for (server, credential, says) in [
        (&tcp, CREDENTIAL.replace("4711", "wrong"), "Access denied"),
        (&tcp, secure.clone(), "Access denied"),
        (&tcp, format!("{CREDENTIAL}ca = \"{}\"\n", foreign.path("ca.pem")), "certificate"),
        (&maria.socket, CREDENTIAL.replace("reader", "signed"), "client_ed25519"),
        (&"127.0.0.1:1".to_owned(), CREDENTIAL.to_owned(), "cannot be reached"),
    ] {
        let answer = run(server, &credential);
        assert!(!answer.value.to_string().contains("canary") && !answer.stderr.contains("canary"));
        let reason = answer.refusal();
        assert!(reason.contains(says), "{reason}");
    }
}
