//! A launcher that prepares descriptors as the helper does, and real servers that end with the test.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses its own part")]

use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A directory that goes away with the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("handler-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn root(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One call of a handler.
pub struct Call {
    name: &'static str,
    config: Value,
    input: Value,
    credential: Option<String>,
    content: Option<Vec<u8>>,
    max_output: usize,
    environment: Vec<(&'static str, String)>,
}

pub struct Answer {
    pub code: i32,
    pub value: Value,
    pub length: usize,
    pub stderr: String,
}

impl Answer {
    /// The answer of a call that went well.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.code, 0, "{} {}", self.value, self.stderr);
        self.value
    }

    /// The reason of a call that did not.
    #[track_caller]
    pub fn refusal(self) -> String {
        assert_eq!(self.code, 1, "{} {}", self.value, self.stderr);
        self.value["error"].as_str().unwrap().to_owned()
    }
}

pub fn call(name: &'static str, config: Value, input: Value) -> Call {
    Call {
        name,
        config,
        input,
        credential: None,
        content: None,
        max_output: 1 << 20,
        environment: Vec::new(),
    }
}

impl Call {
    pub fn credential(mut self, text: impl Into<String>) -> Self {
        self.credential = Some(text.into());
        self.config["credential"] = json!("test");
        self
    }

    /// Content with its true length and digest.
    pub fn content(self, content: impl Into<Vec<u8>>) -> Self {
        let content = content.into();
        let digest = sha256(&content);
        let length = content.len() as u64;
        self.content_as(content, length, &digest)
    }

    pub fn content_as(mut self, content: impl Into<Vec<u8>>, length: u64, digest: &str) -> Self {
        self.content = Some(content.into());
        self.input["content"] = json!({ "length": length, "sha256": digest });
        self
    }

    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    pub fn run(self) -> Answer {
        let (child, scratch, max_output) = self.start();
        finish(child, scratch, max_output)
    }

    /// Starts the handler with its descriptors at 0, 3, 4 and 5.
    pub fn start(self) -> (Child, Scratch, usize) {
        let scratch = Scratch::new();
        let config = scratch.write("config", self.config.to_string());
        let input = scratch.write("input", self.input.to_string());
        let credential = scratch.write("credential", self.credential.unwrap_or_default());
        let mut child = Command::new("/bin/sh")
            .args(["-c", r#"exec "$0" "$1" 3<"$2" 4<"$3" 5<"$4""#])
            .args([env!("CARGO_BIN_EXE_gloveport-handler"), self.name, &config, &input, &credential])
            .env_clear()
            .env("GLOVEPORT_MAX_OUTPUT", self.max_output.to_string())
            .envs(self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The handler may refuse before it has read everything.
        let _ = stdin.write_all(&self.content.unwrap_or_default());
        (child, scratch, self.max_output)
    }
}

pub fn finish(child: Child, _scratch: Scratch, max_output: usize) -> Answer {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert!(stdout.len() <= max_output, "{} bytes of output; allowed are {max_output}", stdout.len());
    let value = if stdout.is_empty() { Value::Null } else { serde_json::from_slice(&stdout).unwrap() };
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Answer { code: status.code().unwrap_or(-1), value, length: stdout.len(), stderr }
}

pub fn sha256(bytes: &[u8]) -> String {
    hmac_sha256::Hash::hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that ends when this process does, however it ends: a shell waits for its stdin to close.
pub struct Server {
    shell: Child,
    pub scratch: Scratch,
}

impl Server {
    pub fn start(scratch: Scratch, program: &[&str]) -> Self {
        let log = std::fs::File::create(scratch.path("server.log")).unwrap();
        let shell = Command::new("/bin/sh")
            .args(["-c", r#""$@" </dev/null & cat >/dev/null; kill $!; wait $!"#, "sh"])
            .args(program)
            .current_dir(scratch.root())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { shell, scratch }
    }

    /// Waits until something answers.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, ready: impl Fn() -> bool) {
        let started = Instant::now();
        while !ready() {
            if started.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(self.scratch.path("server.log")).unwrap_or_default();
                panic!("{what} does not answer (is it installed?): {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Runs a program that must succeed.
#[track_caller]
pub fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; packaging/prerequisites.sh installs it"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An authority, and certificates of a server for 127.0.0.1 and localhost and of a client.
pub fn certificates(directory: &Path) {
    let at = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let key = |name: &str| {
        must(
            "openssl",
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &at(name)],
        );
    };
    key("ca.key");
    must(
        "openssl",
        &[
            "req",
            "-x509",
            "-new",
            "-key",
            &at("ca.key"),
            "-subj",
            "/CN=test authority",
            "-days",
            "2",
            "-out",
            &at("ca.pem"),
        ],
    );
    std::fs::write(at("server.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
    std::fs::write(at("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    for name in ["server", "client"] {
        let file = |kind: &str| at(&format!("{name}.{kind}"));
        key(&format!("{name}.key"));
        must(
            "openssl",
            &["req", "-new", "-key", &file("key"), "-subj", &format!("/CN={name}"), "-out", &file("csr")],
        );
        must(
            "openssl",
            &[
                "x509",
                "-req",
                "-in",
                &file("csr"),
                "-CA",
                &at("ca.pem"),
                "-CAkey",
                &at("ca.key"),
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                &file("ext"),
                "-out",
                &file("pem"),
            ],
        );
    }
}
