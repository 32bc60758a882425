#![forbid(unsafe_code)]
//! One host: its connection, opened when it is needed and closed when it is not, and what is known of it.

use super::link::{Answer, Event, Link, Unsent};
use super::ssh::Ssh;
use super::target::Target;
use crate::stdio::framing::Output;
use crate::stdio::locked;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a host may take to confirm that it has read a cancellation.
const CONFIRM: Duration = Duration::from_secs(5);
/// The longest list of tools of one host, bytes: one host must not take the memory of all.
const LIST: usize = 16 << 20;
/// Pages of tools that are read at most: a daemon that never ends its list must not hold the client.
const PAGES: usize = 1000;

/// A host.
pub struct Host {
    target: Target,
    ssh: Ssh,
    output: Arc<Output>,
    link: Mutex<Option<Arc<Link>>>,
    known: Mutex<Known>,
}

/// What is known of a host.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Its tools, as it listed them last.
    pub tools: Option<Vec<Value>>,
    /// Why it did not answer the last time.
    pub trouble: Option<String>,
}

impl Known {
    /// Whether the host has neither answered nor failed.
    pub fn is_nothing(&self) -> bool {
        self.tools.is_none() && self.trouble.is_none()
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The host cannot be reached: nothing has run there.
    Unreachable(String),
    /// The connection was lost while the answer was waited for.
    Lost(String),
    /// Too many requests wait for this host.
    Busy,
    /// The deadline passed; whether the host confirmed that it has ended the run.
    Late {
        /// It did.
        confirmed: bool,
    },
    /// The client does not want the answer any more.
    Cancelled,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default, rename = "nextCursor")]
    next: Option<String>,
}

impl Host {
    /// A host that nothing was asked of yet. Progress of its calls goes to `output`.
    pub fn new(target: Target, ssh: Ssh, output: Arc<Output>) -> Self {
        Self { target, ssh, output, link: Mutex::default(), known: Mutex::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.target.name
    }

    /// What is known of it.
    pub fn known(&self) -> Known {
        locked(&self.known).clone()
    }

    /// Asks the host, over the connection that there is or a new one, and waits until the deadline at most,
    /// connecting included. `cancel` is where the client's cancellation comes in, and the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask(
        &self,
        method: &str,
        params: Value,
        deadline: Instant,
        (sender, events): (Sender<Event>, &Receiver<Event>),
    ) -> Result<Answer, Trouble> {
        let result = self.exchange(method, params, deadline, sender, events);
        match &result {
            Ok(_) => locked(&self.known).trouble = None,
            Err(Trouble::Unreachable(reason) | Trouble::Lost(reason)) => {
                locked(&self.known).trouble = Some(reason.clone());
            }
            Err(_) => {}
        }
        result
    }

    fn exchange(
        &self,
        method: &str,
        params: Value,
        deadline: Instant,
        sender: Sender<Event>,
        events: &Receiver<Event>,
    ) -> Result<Answer, Trouble> {
        let (link, id) = self.send(method, &params, &sender)?;
        loop {
            let first_by = link.first_answer_by(self.ssh.connect);
            let until = first_by.map_or(deadline, |time| time.min(deadline));
            match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Answer(answer)) => return Ok(answer),
                Ok(Event::Lost(reason)) if link.has_answered() => return Err(Trouble::Lost(reason)),
                Ok(Event::Lost(reason)) => return Err(Trouble::Unreachable(reason)),
                Ok(Event::Cancelled) => {
                    link.cancel(id);
                    return Err(Trouble::Cancelled);
                }
                Err(_) if Instant::now() >= deadline => {
                    link.cancel(id);
                    let confirmed = link.has_answered() && link.answers_within(CONFIRM);
                    return Err(Trouble::Late { confirmed });
                }
                // Everything that waits for this connection learns of it as an event, this request too.
                Err(_) if !link.has_answered() => {
                    link.lose(format!("no answer within {} s", self.ssh.connect.as_secs()));
                }
                // The first answer has come meanwhile, and was another's.
                Err(_) => {}
            }
        }
    }

    /// Sends a request. A connection that is closed between the look and the use is opened again, once.
    fn send(
        &self,
        method: &str,
        params: &Value,
        events: &Sender<Event>,
    ) -> Result<(Arc<Link>, u64), Trouble> {
        let mut reason = String::new();
        for _ in 0..2 {
            let link = self.link()?;
            match link.ask(method, params.clone(), events.clone()) {
                Ok(id) => return Ok((link, id)),
                Err(Unsent::Busy) => return Err(Trouble::Busy),
                Err(Unsent::Lost(why)) => reason = why,
            }
        }
        Err(Trouble::Unreachable(reason))
    }

    /// The connection, a new one where there is none.
    fn link(&self) -> Result<Arc<Link>, Trouble> {
        let mut held = locked(&self.link);
        if let Some(link) = held.as_ref().filter(|link| !link.is_lost()) {
            return Ok(Arc::clone(link));
        }
        let link = Link::open(&self.ssh, &self.target, &self.output)
            .map_err(|error| Trouble::Unreachable(format!("cannot start ssh: {error}")))?;
        *held = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Asks for its tools, and remembers them. Tools that were known before stay known when it does not answer.
    pub fn refresh(&self, deadline: Instant) {
        let mut tools = Vec::new();
        let mut size = 0;
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let (sender, events) = mpsc::channel();
            let Ok(answer) = self.ask("tools/list", params, deadline, (sender, &events)) else { return };
            let page =
                answer.result.as_ref().and_then(|result| serde_json::from_str::<Page>(result.get()).ok());
            let Some(page) = page else {
                locked(&self.known).trouble = Some(refusal(&answer));
                return;
            };
            size += answer.result.as_ref().map_or(0, |result| result.get().len());
            if size > LIST {
                locked(&self.known).trouble = Some(format!("its list of tools is longer than {LIST} bytes"));
                return;
            }
            tools.extend(page.tools);
            cursor = page.next;
            if cursor.is_none() {
                locked(&self.known).tools = Some(tools);
                return;
            }
        }
        locked(&self.known).trouble = Some(format!("its list of tools has more than {PAGES} pages"));
    }

    /// Whether there is a connection that has answered.
    pub fn is_connected(&self) -> bool {
        locked(&self.link).as_ref().is_some_and(|link| !link.is_lost() && link.has_answered())
    }

    /// Closes a connection that nothing was asked over for so long.
    pub fn close_idle(&self, idle: Duration) {
        let mut held = locked(&self.link);
        if let Some(link) = held.take_if(|link| link.idle().is_some_and(|time| time >= idle)) {
            link.close();
        }
    }

    /// Closes the connection, and returns it: it is lost once ssh has ended.
    pub fn close(&self) -> Option<Arc<Link>> {
        let link = locked(&self.link).take();
        if let Some(link) = &link {
            link.close();
        }
        link
    }
}

/// The message of an error that a host answered with.
fn refusal(answer: &Answer) -> String {
    let error: Value =
        answer.error.as_ref().and_then(|error| serde_json::from_str(error.get()).ok()).unwrap_or_default();
    error.get("message").and_then(Value::as_str).unwrap_or("its answer is none of gloveport").to_owned()
}
