#![forbid(unsafe_code)]
//! The answer to `tools/call`: one JSON document where the call is short and silent, else a stream of events
//! that carries progress, is kept alive, and ends with the reply. When the client goes away, the call's
//! future is dropped, and the run ends with it.

use super::Reply;
use super::call::{Invocation, ToolCall};
use super::envelope::Members;
use super::sessions::Running;
use super::text;
use crate::http::reply::{self, KEEP_ALIVE};
use crate::run::report::Progress;
use axum::body::Bytes;
use axum::response::Response;
use serde_json::{Value, json};
use std::future::{Future, pending};
use std::pin::Pin;
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
    let work = async move {
        match invocation.call(&call.name, call.arguments, &report).await {
            Ok((result, place)) => place.hold(reply::encode(&Reply::new(&id, finish(result.into_members())))),
            Err(error) => reply::encode(&error.message(Some(&id))).into(),
        }
    };
    let mut flight = Flight { work: Box::pin(work), progress, reporter, running };
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
    running: Option<Running>,
}

enum Next {
    Event(Bytes),
    Done(Bytes),
    Cancelled,
}

impl Flight {
    async fn next(&mut self) -> Next {
        loop {
            tokio::select! {
                biased;
                () = cancelled(self.running.as_mut()) => return Next::Cancelled,
                Some(progress) = self.progress.recv() => {
                    if let Some(event) = self.reporter.as_mut().and_then(|reporter| reporter.event(&progress)) {
                        return Next::Event(event);
                    }
                }
                reply = &mut self.work => return Next::Done(reply),
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
            Progress::Accepted { deadline } => {
                format!("accepted; at most {}", text::time(*deadline))
            }
            Progress::AwaitingApproval { id } => {
                format!("waiting for approval at the host: gloveport approve {id}")
            }
            Progress::Step { name, .. } => format!("step {name} has started"),
            Progress::Output { bytes } => {
                if self.output_at.is_some_and(|at| at.elapsed() < OUTPUT_TIME) {
                    return None;
                }
                self.output_at = Some(Instant::now());
                format!("{bytes} bytes of output so far")
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
        (Flight { work: Box::pin(work), progress, reporter, running: None }, report)
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
