//! A client of `gloveport stdio`: messages on lines, each answer by its id.

use crate::mcp::{ToolResult, VERSION};
use crate::{programs, scene::Scene};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `gloveport stdio`.
#[derive(Debug)]
pub struct Bridge {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    answers: RefCell<HashMap<u64, Value>>,
    notifications: RefCell<Vec<Value>>,
    last_id: Cell<u64>,
}

/// `gloveport`, with the state directory of a scene.
pub fn gloveport(scene: &Scene) -> Command {
    let mut command = Command::new(programs::built("gloveport"));
    command.arg("--state").arg(scene.state());
    command.env_remove("GLOVEPORT_URL").env_remove("GLOVEPORT_TOKEN");
    command
}

/// Lets root, as which the suites run, use the socket of a scene's daemon.
///
/// # Panics
/// Where it cannot.
pub fn allow_root(scene: &Scene) {
    let output = gloveport(scene)
        .args(["token", "allow-user", "root", "--max-risk", "dangerous"])
        .output()
        .expect("gloveport");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Bridge {
    /// Starts `gloveport stdio` with these words.
    pub fn start<W: AsRef<OsStr>>(mut gloveport: Command, words: &[W]) -> Self {
        gloveport.arg("stdio").args(words);
        Self::of(gloveport)
    }

    /// Starts a command that becomes `gloveport stdio`.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("starting gloveport stdio");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            answers: RefCell::default(),
            notifications: RefCell::default(),
            last_id: Cell::default(),
        }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one message.
    ///
    /// # Panics
    /// Where it does not read any more.
    pub fn send(&self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    /// Writes one line of any bytes.
    ///
    /// # Panics
    /// Where it does not read any more.
    pub fn send_raw(&self, line: &[u8]) {
        let mut stdin = self.stdin.as_ref().expect("stdin is open");
        stdin.write_all(&[line, b"\n"].concat()).expect("writing to gloveport stdio");
    }

    /// The next message, whatever it answers.
    ///
    /// # Panics
    /// Where none comes, or something else than a message.
    pub fn next_message(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a message");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"))
    }

    /// Begins a request in the stateless form; its id.
    pub fn begin(&self, method: &str, mut params: Value) -> u64 {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(VERSION);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        self.begin_plain(method, params)
    }

    /// Begins a request as it stands; its id.
    pub fn begin_plain(&self, method: &str, params: Value) -> u64 {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Begins a call; its id.
    pub fn begin_call(&self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The answer to a request.
    ///
    /// # Panics
    /// Where none comes, or something else than a message.
    pub fn answer(&self, id: u64) -> Value {
        self.answer_within(id, PATIENCE).unwrap_or_else(|| panic!("no answer to request {id}"))
    }

    /// The answer to a request, where it comes in time.
    ///
    /// # Panics
    /// Where something else than a message comes.
    pub fn answer_within(&self, id: u64, time: Duration) -> Option<Value> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(answer) = self.answers.borrow_mut().remove(&id) {
                return Some(answer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).ok()?;
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
            match message["id"].as_u64() {
                Some(id) => drop(self.answers.borrow_mut().insert(id, message)),
                None => self.notifications.borrow_mut().push(message),
            }
        }
    }

    /// What came without an id.
    pub fn notifications(&self) -> Vec<Value> {
        self.notifications.borrow().clone()
    }

    /// A request in the stateless form, and its answer.
    pub fn ask(&self, method: &str, params: Value) -> Value {
        self.answer(self.begin(method, params))
    }

    /// The result of a call.
    pub fn result(&self, id: u64) -> ToolResult {
        let answer = self.answer(id);
        ToolResult(answer.get("result").unwrap_or_else(|| panic!("not a result: {answer:#}")).clone())
    }

    /// Calls a tool.
    pub fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.result(self.begin_call(tool, arguments))
    }

    /// The tools, by name.
    pub fn tools(&self) -> HashMap<String, Value> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools.into_iter().map(|tool| (tool["name"].as_str().unwrap_or_default().to_owned(), tool)).collect()
    }

    /// Closes its input; how it ended, and how long that took.
    ///
    /// # Panics
    /// Where it does not end.
    pub fn close(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        self.stdin = None;
        loop {
            if let Some(status) = self.child.try_wait().expect("waiting for gloveport stdio") {
                return (status, begun.elapsed());
            }
            assert!(begun.elapsed() < PATIENCE, "gloveport stdio outlives its input");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if self.stdin.is_some() && !std::thread::panicking() {
            self.close();
        } else {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
