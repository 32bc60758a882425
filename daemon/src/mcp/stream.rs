#![forbid(unsafe_code)]
//! The answer to `tools/call`: one JSON document where the call is short and silent, else a stream of events
//! that carries progress, is kept alive, and ends with the reply. When the client goes away, the call's
//! future is dropped, and the run ends with it.

use super::Reply;
use super::call::{Invocation, User};
use super::elicit;
use super::envelope::Members;
use super::sessions::Running;
use super::text;
use super::tool_call::ToolCall;
use crate::http::reply::{self, KEEP_ALIVE};
use crate::run::report::Progress;
use axum::body::Bytes;
use axum::response::Response;
use serde_json::{Value, json};
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{interval_at, timeout};

/// How long a silent call is waited for before its answer becomes a stream.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a silent stream gets a comment; proxies commonly close after 30 s or 60 s.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// How often the amount of output is reported.
const OUTPUT_TIME: Duration = Duration::from_millis(500);
/// Events that wait for a slow client; further progress is dropped.
const QUEUE: usize = 16;

/// Calls the tool and answers. `finish` makes the result one of its era.
pub async fn answer(
    invocation: Invocation,
    call: ToolCall,
    id: Value,
    finish: fn(Members) -> Members,
    running: Option<Running>,
) -> Response {
    let (report, progress) = mpsc::channel(QUEUE);
    let reporter = call.progress_token.map(Reporter::new);
    let teller = (invocation.user == User::Told).then(|| Teller::new(invocation.asked.clone()));
    let work = async move {
        match invocation.call(&call.name, call.arguments, &report).await {
            Ok((result, place)) => place.hold(reply::encode(&Reply::new(&id, finish(result)))),
            Err(error) => reply::encode(&error.message(Some(&id))).into(),
        }
    };
    let mut flight = Flight { work: Box::pin(work), progress, reporter, teller, running, events: Vec::new() };
    match timeout(PATIENCE, flight.next()).await {
        Ok(Next::Done(reply)) => reply::encoded(200, reply),
        // Nothing answers a cancelled request; HTTP must, and 202 says that nothing follows.
        Ok(Next::Cancelled) => reply::accepted(),
        Ok(Next::Event(event)) => flight.stream(event),
        Err(_) => flight.stream(KEEP_ALIVE),
    }
}

/// A call on its way.
struct Flight {
    work: Pin<Box<dyn Future<Output = Bytes> + Send>>,
    progress: mpsc::Receiver<Progress>,
    reporter: Option<Reporter>,
    teller: Option<Teller>,
    running: Option<Running>,
    /// What is to be sent next, the last first.
    events: Vec<Next>,
}

enum Next {
    Event(Bytes),
    Done(Bytes),
    Cancelled,
}

impl Flight {
    async fn next(&mut self) -> Next {
        loop {
            if let Some(next) = self.events.pop() {
                return next;
            }
            tokio::select! {
                biased;
                () = cancelled(self.running.as_mut()) => return Next::Cancelled,
                Some(progress) = self.progress.recv() => {
                    let told = self.teller.as_mut().and_then(|teller| teller.event(&progress));
                    let reported = self.reporter.as_mut().and_then(|reporter| reporter.event(&progress));
                    self.events.extend([told, reported].into_iter().flatten().map(Next::Event));
                }
                reply = &mut self.work => {
                    self.events.push(Next::Done(reply));
                    let settled = self.teller.as_mut().and_then(Teller::settled);
                    self.events.extend(settled.map(Next::Event));
                }
            }
        }
    }

    fn stream(mut self, first: Bytes) -> Response {
        let (events, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            // The queue is empty yet.
            let _ = events.try_send(first);
            let start = tokio::time::Instant::now() + KEEP_ALIVE_TIME;
            let mut keep_alive = interval_at(start, KEEP_ALIVE_TIME);
            loop {
                // What does not fit into the queue is dropped: a client that does not read must not hold up
                // the run. The reply waits; when the client has gone, sending it fails at once.
                tokio::select! {
                    () = events.closed() => return,
                    next = self.next() => match next {
                        Next::Event(event) => { let _ = events.try_send(event); }
                        Next::Done(reply) => {
                            for part in reply::event_of(reply) {
                                let _ = events.send(part).await;
                            }
                            return;
                        }
                        Next::Cancelled => return,
                    },
                    _ = keep_alive.tick() => { let _ = events.try_send(KEEP_ALIVE); }
                }
            }
        });
        reply::stream(receiver)
    }
}

/// Ready when the session cancels the request; outside a session never.
async fn cancelled(running: Option<&mut Running>) {
    match running {
        // An error only says that the other end was dropped, which is how it cancels.
        Some(running) => {
            let _ = (&mut running.cancelled).await;
        }
        None => pending().await,
    }
}

/// Tells a client's user what is asked while the call waits for a person at the host.
struct Teller {
    asked: Arc<Mutex<Option<String>>>,
    /// The run that the open question is about.
    open: Option<String>,
}

impl Teller {
    fn new(asked: Arc<Mutex<Option<String>>>) -> Self {
        Self { asked, open: None }
    }

    fn event(&mut self, progress: &Progress) -> Option<Bytes> {
        match progress {
            Progress::AwaitingApproval { id, .. } if self.open.as_ref() != Some(id) => {
                let question = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
                self.open = Some(id.clone());
                Some(reply::event(&reply::encode(&elicit::request(id, &question))))
            }
            Progress::Accepted { .. } => self.settled(),
            _ => None,
        }
    }

    /// Takes an open question back.
    fn settled(&mut self) -> Option<Bytes> {
        let run = self.open.take()?;
        Some(reply::event(&reply::encode(&elicit::settled(&run))))
    }
}

/// Turns progress into notifications, with a number that rises strictly.
struct Reporter {
    token: Value,
    sent: u64,
    output_at: Option<Instant>,
}

impl Reporter {
    fn new(token: Value) -> Self {
        Self { token, sent: 0, output_at: None }
    }

    fn event(&mut self, progress: &Progress) -> Option<Bytes> {
        let message = match progress {
            Progress::Accepted { run, deadline } => {
                format!("accepted as run {run}; at most {}", text::time(*deadline))
            }
            Progress::AwaitingApproval { id, elapsed, timeout } => format!(
                "waiting for approval at the host: gloveport approve {id} ({} s of {} s)",
                elapsed.as_secs(),
                timeout.as_secs()
            ),
            Progress::Step { name, .. } => format!("step {name} has started"),
            Progress::Output { bytes, elapsed } => {
                if self.output_at.is_some_and(|at| at.elapsed() < OUTPUT_TIME) {
                    return None;
                }
                self.output_at = Some(Instant::now());
                format!("{} s, {bytes} bytes of output so far", elapsed.as_secs())
            }
        };
        self.sent += 1;
        Some(reply::event(&reply::encode(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": self.token, "progress": self.sent, "message": message},
        }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(
        work: impl Future<Output = Bytes> + Send + 'static,
        token: Option<Value>,
    ) -> (Flight, mpsc::Sender<Progress>) {
        let (report, progress) = mpsc::channel(QUEUE);
        let reporter = token.map(Reporter::new);
        let work = Box::pin(work);
        (Flight { work, progress, reporter, teller: None, running: None, events: Vec::new() }, report)
    }

    #[tokio::test]
    async fn progress_is_reported_to_who_asked_for_it_and_before_the_reply() {
        let step = || Progress::Step { index: 0, name: "main".to_owned() };
        let (mut asked, report) = flight(async { Bytes::from_static(b"{}") }, Some(json!(0)));
        report.send(step()).await.unwrap();
        report.send(step()).await.unwrap();
        for number in 1..=2 {
            let Next::Event(event) = asked.next().await else { panic!("no event") };
            let text = String::from_utf8(event.to_vec()).unwrap();
            let message: Value =
                serde_json::from_str(text.strip_prefix("event: message\ndata: ").unwrap().trim_end())
                    .unwrap();
            assert_eq!(message["params"]["progress"], number);
            assert_eq!(message["params"]["progressToken"], 0);
        }
        assert!(matches!(asked.next().await, Next::Done(_)));
        let (mut silent, report) = flight(async { Bytes::from_static(b"{}") }, None);
        report.send(step()).await.unwrap();
        assert!(matches!(silent.next().await, Next::Done(_)));
    }

    #[test]
    fn a_user_is_told_once_and_the_question_is_taken_back_when_it_is_settled() {
        let mut teller = Teller::new(Arc::new(Mutex::new(Some("restart?".to_owned()))));
        let waits = || Progress::AwaitingApproval {
            id: "7".to_owned(),
            elapsed: Duration::ZERO,
            timeout: Duration::from_secs(60),
        };
        let event = teller.event(&waits()).unwrap();
        let text = String::from_utf8(event.to_vec()).unwrap();
        assert!(text.contains("elicitation/create") && text.contains("restart?"), "{text}");
        assert!(teller.event(&waits()).is_none());
        let accepted = Progress::Accepted { run: "7".to_owned(), deadline: Duration::from_secs(1) };
        let text = String::from_utf8(teller.event(&accepted).unwrap().to_vec()).unwrap();
        assert!(text.contains("notifications/cancelled") && text.contains("approval-7"), "{text}");
        assert!(teller.settled().is_none());
    }

    #[tokio::test]
    async fn the_work_is_dropped_with_the_stream() {
        let (alive, dropped) = tokio::sync::oneshot::channel::<()>();
        let (flight, _report) = flight(
            async move {
                let _alive = alive;
                pending().await
            },
            None,
        );
        let response = flight.stream(KEEP_ALIVE);
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(response);
        let ended = timeout(Duration::from_secs(5), dropped).await;
        assert!(matches!(ended, Ok(Err(_))));
    }
}
