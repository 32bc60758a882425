//! A secret of a credential is nowhere but in its file, its run and its server: whatever became of the call.

use super::{command, credential, query};
use gloveport_tests::servers::{MariaDb, Redis, free_port};
use gloveport_tests::{Pair, Scene, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SOON: Duration = Duration::from_secs(20);

/// Secrets in every form that a careless program could give them.
struct Canary(Vec<(&'static str, Vec<u8>)>);

impl Canary {
    fn of(secrets: &[&str]) -> Self {
        Self(secrets.iter().flat_map(|secret| Self::forms(secret)).collect())
    }

    fn forms(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
        let bytes = secret.as_bytes();
        let hex = |upper: bool| -> String {
            bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect()
        };
        let url = |upper: bool| -> String {
            let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~".contains(b);
            let one = |b: &u8| match (plain(b), upper) {
                (true, _) => char::from(*b).to_string(),
                (false, true) => format!("%{b:02X}"),
                (false, false) => format!("%{b:02x}"),
            };
            bytes.iter().map(one).collect()
        };
        // Base64 looks different after 0, 1 and 2 bytes; the characters at the edges depend on what is beside.
        let base64_after = |before: usize| {
            let text = base64(&[vec![0; before], bytes.to_vec()].concat());
            let text = text.trim_end_matches('=');
            text.as_bytes()[[0, 2, 3][before]..text.len() - 1].to_vec()
        };
        vec![
            ("as it is", bytes.to_vec()),
            ("in hexadecimal", hex(false).into()),
            ("in HEXADECIMAL", hex(true).into()),
            ("as part of a URL", url(true).into()),
            ("as part of a url", url(false).into()),
            ("in base64", base64_after(0)),
            ("in base64 after one byte", base64_after(1)),
            ("in base64 after two bytes", base64_after(2)),
        ]
    }

    /// The forms that stand there.
    fn in_bytes(&self, place: &str, haystack: &[u8]) -> Vec<String> {
        let mut begins = [false; 256];
        self.0.iter().for_each(|(_, form)| begins[usize::from(form[0])] = true);
        let mut found = Vec::new();
        // Once over it for all forms: memory is large.
        for at in (0..haystack.len()).filter(|at| begins[usize::from(haystack[*at])]) {
            let here = self.0.iter().filter(|(_, form)| haystack[at..].starts_with(form));
            found.extend(here.map(|(name, _)| format!("{place}: {name}")));
        }
        found
    }

    /// Every file below a directory, but the programs and the credentials themselves.
    fn in_files(&self, directory: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            if kind.is_dir() {
                if !path.ends_with("credentials") && !path.ends_with("bin") {
                    found.extend(self.in_files(&path));
                }
                continue;
            }
            if kind.is_file() {
                let bytes = fs::read(&path).unwrap_or_default();
                found.extend(self.in_bytes(&path.display().to_string(), &bytes));
            }
        }
        found
    }

    /// The command lines and environments of all processes.
    fn in_processes(&self) -> Vec<String> {
        let pids = processes::all().into_iter().map(|process| process.pid);
        let places = pids.flat_map(|pid| ["cmdline", "environ"].map(|file| format!("/proc/{pid}/{file}")));
        places.flat_map(|place| self.in_bytes(&place, &fs::read(&place).unwrap_or_default())).collect()
    }

    /// The memory of both programs, while nothing runs.
    fn in_memory(&self, pair: &Pair) -> Vec<String> {
        let programs = ["gloveportd", "gloveport-helper"];
        programs
            .iter()
            .flat_map(|name| self.in_bytes(name, &processes::memory(pair.process(name).pid)))
            .collect()
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        let letters = [18, 12, 6, 0].map(|shift| char::from(LETTERS[number >> shift & 63]));
        text.extend(letters.iter().take(three.len() + 1));
        text.extend(std::iter::repeat_n('=', 3 - three.len()));
    }
    text
}

/// A secret that no other test has.
fn secret(of: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos();
    format!("cAnary/{of}+{}?{nanos}", std::process::id())
}

/// A server that answers everybody with what is no protocol.
fn liar() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"SSH-2.0-what\r\n\0\0\0\x10\x0a");
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    address
}

#[test]
fn a_secret_stays_in_its_file_its_run_and_its_server() {
    let (password, wrong) = (secret("right"), secret("wrong"));
    let server = MariaDb::start(&format!(
        "CREATE DATABASE app; USE app; CREATE TABLE numbers (n INT) SELECT seq AS n FROM seq_1_to_20000;
        CREATE USER reader@localhost IDENTIFIED BY '{password}'; GRANT SELECT ON app.* TO reader@localhost;"
    ));
    let redis = Redis::start(&format!("user default off\nuser reader on >{password} ~* -@all +get\n"), &[]);
    let scene = Scene::new();
    let own = scene.own_directory("own");
    let (nobody, liar) = (format!("127.0.0.1:{}", free_port()), liar());
    let sql = |name: &str, server: &str, credential: &str| {
        let config = json!({"server": server, "database": "app", "credential": credential, "timeout": "60s"});
        query(&scene, name, config).with(json!({"cwd": own}))
    };
    let get = |name: &str, server: &str, credential: &str| {
        command(&scene, name, json!({"server": server, "credential": credential})).with(json!({"cwd": own}))
    };
    let actions = [
        sql("sql", &server.socket, "right"),
        sql("sql-wrong", &server.socket, "wrong"),
        sql("sql-down", &nobody, "right"),
        sql("sql-liar", &liar, "right"),
        sql("sql-form", &server.socket, "form"),
        get("get", &redis.socket, "right"),
        get("get-wrong", &redis.socket, "wrong"),
        get("get-down", &nobody, "right"),
        get("get-liar", &liar, "right"),
        get("get-form", &redis.socket, "form"),
    ];
    let pair = scene.pair(&actions);
    credential(&pair, "right", &format!("user = \"reader\"\npassword = \"{password}\"\n"));
    credential(&pair, "wrong", &format!("user = \"reader\"\npassword = \"{wrong}\"\n"));
    credential(&pair, "form", &format!("user = \"reader\"\npassword = {password}\n"));
    let canary = Canary::of(&[&password, &wrong]);
    let assert_nowhere = |said: &str| {
        let places = [
            canary.in_bytes("the answers", said.as_bytes()),
            canary.in_processes(),
            canary.in_memory(&pair),
            canary.in_files(&pair.scene.root),
        ];
        assert!(places.concat().is_empty(), "{places:#?}");
    };

    let mut said = String::new();
    let mut call = |action: &str, params: Value| {
        let result = pair.call(action, json!({ "params": params }));
        said += &result.0.to_string();
        result.structured()["success"] == true
    };
    assert!(call("sql", json!({"sql": "SELECT 1"})) && call("get", json!({"command": ["GET", "a"]})));
    assert!(!call("sql", json!({"sql": "SELECT no_such_column FROM numbers"})), "an error of the server");
    for kind in ["wrong", "down", "liar", "form"] {
        assert!(!call(&format!("sql-{kind}"), json!({"sql": "SELECT 1"})), "{kind}");
        assert!(!call(&format!("get-{kind}"), json!({})), "{kind}");
    }
    processes::wait_until_gone(pair.scene.run.number, SOON);
    assert_nowhere(&said);

    // While a statement runs its handler has the secret, and nobody else; then the handler crashes.
    let slow = "SELECT COUNT(*) FROM numbers a JOIN numbers b JOIN numbers c WHERE a.n + b.n + c.n = 1";
    let call = pair.begin("sql", json!({"params": {"sql": slow}}));
    processes::wait_until("the statement runs", SOON, || server.is_busy_for("reader"));
    let handler = processes::of(pair.scene.run.number).remove(0);
    let held = canary.in_bytes("its handler", &processes::memory(handler.pid));
    assert!(!held.is_empty(), "the search of memory finds what is there");
    assert_nowhere("");
    // No core file, whoever asks for one: the hard limit is 0, and a pipe gets nothing of its memory.
    let told = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", handler.pid)).expect("a process");
    let limits = told("limits");
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).expect("the limit");
    assert_eq!(limit.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
    assert_eq!(told("coredump_filter").trim(), "00000000");
    let pid = Pid::from_raw(handler.pid.cast_signed()).expect("a number");
    kill_process(pid, Signal::ABORT).expect("aborting the handler");
    let result = gloveport_tests::mcp::finish(call);
    assert_eq!(result.step(0)["signal"], 6, "{:#}", result.0);
    server.admin("KILL USER reader@localhost");
    assert_eq!(fs::read_dir(&own).expect("a directory").count(), 0, "a crash leaves no core file");
    assert_nowhere(&result.0.to_string());

    // A rotation needs no restart.
    credential(&pair, "wrong", &format!("user = \"reader\"\npassword = \"{password}\"\n"));
    let result = pair.call("sql-wrong", json!({"params": {"sql": "SELECT 1"}}));
    assert_eq!(result.structured()["success"], true, "{:#}", result.0);
}

#[test]
fn the_search_finds_a_secret_in_every_form_and_place() {
    let secret = secret("planted");
    let canary = Canary::of(&[&secret]);
    for before in ["", "x", "xy", "xyz"] {
        let text = base64(format!("{before}{secret} and more").as_bytes());
        assert_eq!(canary.in_bytes("", text.as_bytes()).len(), 1, "after {before:?}");
    }
    assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
    let scene = Scene::new();
    let action = scene.action(
        "say",
        json!({"params": {"word": {"type": "string"}}, "exec": [scene.probe(), "print-sleep", "20000", "{word}"]}),
    );
    let pair = scene.pair(&[action]);
    let call = pair.begin("say", json!({"params": {"word": secret}}));
    let run = pair.scene.run.number;
    processes::wait_until("it runs", SOON, || !processes::of(run).is_empty());
    let by_argument = Command::new(pair.scene.probe()).args(["sleep", "20000", &secret]).spawn();
    let by_environment =
        Command::new(pair.scene.probe()).args(["sleep", "20000"]).env("SECRET", &secret).spawn();
    for (child, file) in [(by_argument, "cmdline"), (by_environment, "environ")] {
        let mut child = child.expect("the probe");
        let place = format!("/proc/{}/{file}", child.id());
        processes::wait_until("it is found", SOON, || {
            canary.in_processes().iter().any(|found| found.starts_with(&place))
        });
        child.kill().expect("killing the probe");
        child.wait().expect("waiting for the probe");
    }
    // The daemon has the argument while the call lasts, and the audit chain has it for good.
    assert!(canary.in_memory(&pair).iter().any(|found| found.starts_with("gloveportd")));
    assert!(canary.in_files(&pair.scene.root).iter().any(|found| found.contains("audit.jsonl")));
    drop(call);
    processes::wait_until_gone(run, SOON);
}
