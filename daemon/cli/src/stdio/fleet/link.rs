#![forbid(unsafe_code)]
//! One connection to one host: an ssh process, and the requests that wait for an answer through it.

use super::ssh::Ssh;
use super::target::Target;
use crate::http::ANSWER;
use crate::mcp::PROTOCOL;
use crate::stdio::framing::Output;
use crate::stdio::locked;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that wait at once: as many as the bridge at the other end takes.
const WAITING: usize = 64;
/// What is kept of ssh's complaints, bytes: the last ones say why it ended.
const COMPLAINTS: usize = 4096;
/// How long ssh may take to end after it has closed its output.
const END: Duration = Duration::from_secs(1);

/// What a request waits for.
#[derive(Debug)]
pub enum Event {
    /// The answer.
    Answer(Answer),
    /// The connection is gone, and why.
    Lost(String),
    /// The client does not want the answer any more.
    Cancelled,
}

/// An answer as it came.
#[derive(Debug, Deserialize)]
pub struct Answer {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    method: Option<String>,
    /// The result.
    #[serde(default)]
    pub result: Option<Box<RawValue>>,
    /// Or the error.
    #[serde(default)]
    pub error: Option<Box<RawValue>>,
}

/// Progress of a call, as far as the protocol knows it.
#[derive(Deserialize)]
struct Told {
    params: Value,
}

/// A request that waits for its answer.
struct Waiter {
    events: Sender<Event>,
    /// The token by which the client knows progress of it.
    token: Option<Value>,
}

/// Why a request was not sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The connection is gone, and why.
    Lost(String),
    /// Too many requests wait.
    Busy,
}

/// A connection.
pub struct Link {
    child: Mutex<Child>,
    /// Taken away to close the connection: the bridge at the other end ends with its input.
    input: Mutex<Option<Sender<Vec<u8>>>>,
    state: Mutex<State>,
    opened: Instant,
}

struct State {
    waiting: HashMap<u64, Waiter>,
    last_id: u64,
    has_answered: bool,
    lost: Option<String>,
    used: Instant,
}

impl Link {
    /// Starts ssh. Whether it gets anywhere shows by its first answer: a request asks for one at once, and
    /// costs no time, for nothing waits for it. Progress goes straight to `output`.
    ///
    /// # Errors
    /// ssh cannot be started.
    pub fn open(ssh: &Ssh, target: &Target, output: &Arc<Output>) -> io::Result<Arc<Self>> {
        let mut child = ssh.command(target).spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("ssh has no pipes"));
        };
        let (input, messages) = mpsc::channel();
        let link = Arc::new(Self {
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            state: Mutex::new(State {
                waiting: HashMap::new(),
                last_id: 0,
                has_answered: false,
                lost: None,
                used: Instant::now(),
            }),
            opened: Instant::now(),
        });
        let complaints = Arc::new(Complaints::default());
        let threads = [
            spawn(move || write(stdin, &messages)),
            spawn({
                let complaints = Arc::clone(&complaints);
                move || complaints.gather(stderr)
            }),
            spawn({
                let (link, output, ssh, target) =
                    (Arc::clone(&link), Arc::clone(output), ssh.clone(), target.clone());
                move || {
                    link.read(stdout, &output);
                    let status = link.reap();
                    link.lose(ssh.reason(&target, status, &complaints.text()));
                }
            }),
        ];
        for thread in threads {
            if let Err(error) = thread {
                link.lose(error.to_string());
                return Err(error);
            }
        }
        // Nobody reads this answer: its arrival is the news.
        let (nobody, _) = mpsc::channel();
        let _ = link.ask("server/discover", json!({}), nobody);
        Ok(link)
    }

    /// Sends a request; its number. What becomes of it goes to `events`.
    ///
    /// # Errors
    /// It was not sent.
    pub fn ask(&self, method: &str, mut params: Value, events: Sender<Event>) -> Result<u64, Unsent> {
        if let Some(meta) =
            params.as_object_mut().and_then(|p| p.entry("_meta").or_insert_with(|| json!({})).as_object_mut())
        {
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), PROTOCOL.into());
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), json!({}));
        }
        let mut state = locked(&self.state);
        if let Some(reason) = &state.lost {
            return Err(Unsent::Lost(reason.clone()));
        }
        if state.waiting.len() >= WAITING {
            return Err(Unsent::Busy);
        }
        state.last_id += 1;
        state.used = Instant::now();
        let id = state.last_id;
        let token = params.pointer("/_meta/progressToken").cloned();
        state.waiting.insert(id, Waiter { events, token });
        drop(state);
        if self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})) {
            return Ok(id);
        }
        locked(&self.state).waiting.remove(&id);
        Err(Unsent::Lost("the connection was closed".to_owned()))
    }

    /// Ends a request: the bridge at the other end ends its run, and there will be no answer.
    pub fn cancel(&self, id: u64) {
        if locked(&self.state).waiting.remove(&id).is_some() {
            let params = json!({"requestId": id});
            self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        }
    }

    /// Whether the other end answers within `time`. What was sent before was then read there before.
    pub fn answers_within(&self, time: Duration) -> bool {
        let (events, answers) = mpsc::channel();
        self.ask("server/discover", json!({}), events).is_ok()
            && matches!(answers.recv_timeout(time), Ok(Event::Answer(_)))
    }

    /// When the first answer must have come; `None` once it has.
    pub fn first_answer_by(&self, connect: Duration) -> Option<Instant> {
        (!locked(&self.state).has_answered).then(|| self.opened + connect)
    }

    /// Whether the other end has ever answered: before that, nothing has run there.
    pub fn has_answered(&self) -> bool {
        locked(&self.state).has_answered
    }

    /// Whether it is gone.
    pub fn is_lost(&self) -> bool {
        locked(&self.state).lost.is_some()
    }

    /// How long nothing has been asked or answered; `None` while something waits.
    pub fn idle(&self) -> Option<Duration> {
        let state = locked(&self.state);
        state.waiting.is_empty().then(|| state.used.elapsed())
    }

    /// Lets the other end finish by closing its input.
    pub fn close(&self) {
        locked(&self.input).take();
    }

    /// Ends it at once. Everything that waits is told why.
    pub fn lose(&self, reason: String) {
        let waiting = {
            let mut state = locked(&self.state);
            state.lost.get_or_insert_with(|| reason.clone());
            std::mem::take(&mut state.waiting)
        };
        for Waiter { events, .. } in waiting.into_values() {
            // Who has stopped waiting needs no reason.
            let _ = events.send(Event::Lost(reason.clone()));
        }
        self.close();
        // It may have ended by itself.
        let _ = locked(&self.child).kill();
    }

    /// Hands a message to the writer; whether there is one.
    fn send(&self, message: &Value) -> bool {
        let input = locked(&self.input);
        input.as_ref().is_some_and(|input| input.send(format!("{message}\n").into_bytes()).is_ok())
    }

    fn read(&self, stdout: ChildStdout, output: &Output) {
        let mut reader = BufReader::with_capacity(64 * 1024, stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut reader).take(ANSWER).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 == ANSWER => {
                    return self.lose(format!("an answer is longer than {ANSWER} bytes"));
                }
                // What a login script prints is no message, and is passed over.
                Ok(_) => {
                    if let Ok(answer) = serde_json::from_slice::<Answer>(&line) {
                        self.take(answer, &line, output);
                    }
                }
            }
        }
    }

    fn take(&self, answer: Answer, line: &[u8], output: &Output) {
        if answer.method.as_deref() == Some("notifications/progress") {
            if let Some(progress) = self.progress(line) {
                // When the client is gone, the next answer says so.
                let _ = output.send(progress.to_string().as_bytes());
            }
            return;
        }
        let Some(id) = answer.id.filter(|_| answer.method.is_none()) else { return };
        let events = {
            let mut state = locked(&self.state);
            (state.has_answered, state.used) = (true, Instant::now());
            state.waiting.remove(&id)
        };
        if let Some(Waiter { events, .. }) = events {
            let _ = events.send(Event::Answer(answer));
        }
    }

    /// Progress as it may be passed on: of a call that waits here, and made anew. A host that is in other hands
    /// must not speak for another, nor send the client what is no message.
    fn progress(&self, line: &[u8]) -> Option<Value> {
        let Told { params } = serde_json::from_slice(line).ok()?;
        let token = params.get("progressToken")?;
        let is_known =
            locked(&self.state).waiting.values().any(|waiter| waiter.token.as_ref() == Some(token));
        let number = |name: &str| params.get(name).filter(|value| value.is_number()).cloned();
        let mut told = json!({"progressToken": token, "progress": number("progress")?});
        for (name, value) in [
            ("total", number("total")),
            ("message", params.get("message").filter(|value| value.is_string()).cloned()),
        ] {
            if let (Some(told), Some(value)) = (told.as_object_mut(), value) {
                told.insert(name.to_owned(), value);
            }
        }
        is_known.then(|| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}))
    }

    /// The exit of ssh, which has closed its output.
    fn reap(&self) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            let mut child = locked(&self.child);
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begun.elapsed() < END => {}
                _ => {
                    let _ = child.kill();
                    return child.wait().ok();
                }
            }
            drop(child);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}

/// Writes in a thread of its own: whoever asks has a deadline, and a pipe that nobody empties has none.
fn write(mut stdin: ChildStdin, messages: &Receiver<Vec<u8>>) {
    while let Ok(message) = messages.recv() {
        if stdin.write_all(&message).is_err() {
            return;
        }
    }
}

/// The last of what ssh wrote to stderr.
#[derive(Default)]
struct Complaints {
    /// The bytes, and whether no more can come.
    kept: Mutex<(Vec<u8>, bool)>,
    is_whole: Condvar,
}

impl Complaints {
    fn gather(&self, mut stderr: ChildStderr) {
        let mut chunk = [0; 1024];
        while let Ok(read @ 1..) = stderr.read(&mut chunk) {
            let kept = &mut locked(&self.kept).0;
            kept.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let over = kept.len().saturating_sub(COMPLAINTS);
            kept.drain(..over);
        }
        locked(&self.kept).1 = true;
        self.is_whole.notify_all();
    }

    /// The text, once it is whole; a program that ssh has started may hold stderr open, and is not waited for.
    fn text(&self) -> String {
        let kept = locked(&self.kept);
        let kept = self.is_whole.wait_timeout_while(kept, END, |kept| !kept.1);
        String::from_utf8_lossy(&kept.unwrap_or_else(PoisonError::into_inner).0.0).into_owned()
    }
}
