//! A launcher that prepares descriptors as the helper does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test binary uses its own part")]

use gloveport_tests::scratch::Scratch;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

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
