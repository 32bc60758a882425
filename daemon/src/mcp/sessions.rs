#![forbid(unsafe_code)]
//! Sessions of the `initialize` revisions. They exist for one reason: only inside a session does a request
//! id mean one request, so only there can `notifications/cancelled` be obeyed. No tool depends on one.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A session that nobody used for this long is forgotten. Clients seldom end theirs.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// All sessions, bounded in number.
#[derive(Clone)]
pub struct Sessions {
    most: usize,
    open: Arc<Mutex<HashMap<String, Session>>>,
}

/// What a client said of itself at `initialize`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// Its name and version.
    pub name: String,
    /// Whether it can show its user a form.
    pub elicits: bool,
}

struct Session {
    principal: String,
    client: Client,
    used: Instant,
    in_flight: Vec<InFlight>,
    next: u64,
}

struct InFlight {
    serial: u64,
    request: Value,
    /// Dropped to cancel.
    _alive: oneshot::Sender<()>,
}

/// A request in flight; its place in the session is given up when this is dropped.
pub struct Running {
    sessions: Sessions,
    session: String,
    serial: u64,
    /// Ready when the request was cancelled.
    pub cancelled: oneshot::Receiver<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.lock().get_mut(&self.session) {
            session.in_flight.retain(|entry| entry.serial != self.serial);
            session.used = Instant::now();
        }
    }
}

impl Sessions {
    /// Keeps at most `most` sessions.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), open: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session for that caller, under an id that cannot be guessed. Where all places are taken, the
    /// session that was unused for longest makes room; its client starts anew on the 404. `None` when the
    /// kernel gives no random numbers or every session is busy: the client is then served without one.
    pub fn open(&self, principal: &str, client: Client) -> Option<String> {
        let id = random_id()?;
        let mut open = self.lock();
        open.retain(|_, session| !session.in_flight.is_empty() || session.used.elapsed() < IDLE);
        if open.len() >= self.most {
            let idle = open.iter().filter(|(_, session)| session.in_flight.is_empty());
            let oldest = idle.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone())?;
            open.remove(&oldest);
        }
        let session = Session {
            principal: principal.to_owned(),
            client,
            used: Instant::now(),
            in_flight: Vec::new(),
            next: 0,
        };
        open.insert(id.clone(), session);
        Some(id)
    }

    /// Does something with a session of that caller and marks it as used. `None`: there is none of that id,
    /// or it is somebody else's, which is the same to the asker.
    fn with<T>(&self, id: &str, principal: &str, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let mut open = self.lock();
        let session = open.get_mut(id).filter(|session| session.principal == principal)?;
        if session.in_flight.is_empty() && session.used.elapsed() >= IDLE {
            open.remove(id);
            return None;
        }
        session.used = Instant::now();
        Some(act(session))
    }

    /// The client as it introduced itself.
    pub fn client(&self, id: &str, principal: &str) -> Option<Client> {
        self.with(id, principal, |session| session.client.clone())
    }

    /// Notes a request in flight.
    pub fn begin(&self, id: &str, principal: &str, request: &Value) -> Option<Running> {
        let (alive, cancelled) = oneshot::channel();
        let serial = self.with(id, principal, |session| {
            let serial = session.next;
            session.next += 1;
            session.in_flight.push(InFlight { serial, request: request.clone(), _alive: alive });
            serial
        })?;
        Some(Running { sessions: self.clone(), session: id.to_owned(), serial, cancelled })
    }

    /// Cancels the request of that id in this session; one that is unknown or over is no matter.
    pub fn cancel(&self, id: &str, principal: &str, request: &Value) {
        self.with(id, principal, |session| session.in_flight.retain(|entry| entry.request != *request));
    }

    /// Ends a session and cancels what runs in it. Whether there was one.
    pub fn close(&self, id: &str, principal: &str) -> bool {
        self.with(id, principal, |_| ()).is_some() && self.lock().remove(id).is_some()
    }
}

/// 128 bits in hexadecimal.
fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).ok()?;
    (filled == bytes.len()).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(name: &str) -> Client {
        Client { name: name.to_owned(), elicits: true }
    }

    fn is_cancelled(running: &mut Running) -> bool {
        running.cancelled.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn a_session_belongs_to_its_caller() {
        let sessions = Sessions::new(4);
        let id = sessions.open("token:a", named("client 1")).unwrap();
        assert_eq!(sessions.client(&id, "token:a"), Some(named("client 1")));
        assert_eq!(sessions.client(&id, "token:b"), None);
        assert!(!sessions.close(&id, "token:b"));
        assert!(sessions.close(&id, "token:a"));
        assert!(!sessions.close(&id, "token:a"));
    }

    #[test]
    fn a_cancellation_meets_the_request_of_its_own_session_only() {
        let sessions = Sessions::new(4);
        let (a, b) =
            (sessions.open("t", Client::default()).unwrap(), sessions.open("t", Client::default()).unwrap());
        let mut first = sessions.begin(&a, "t", &json!(1)).unwrap();
        let mut other = sessions.begin(&b, "t", &json!(1)).unwrap();
        let mut second = sessions.begin(&a, "t", &json!("1")).unwrap();
        sessions.cancel(&a, "t", &json!(1));
        assert!(is_cancelled(&mut first));
        assert!(!is_cancelled(&mut other));
        assert!(!is_cancelled(&mut second));
    }

    #[test]
    fn a_late_cancellation_does_not_meet_a_later_request_of_the_same_id() {
        let sessions = Sessions::new(4);
        let id = sessions.open("t", Client::default()).unwrap();
        drop(sessions.begin(&id, "t", &json!(1)));
        sessions.cancel(&id, "t", &json!(1));
        let mut next = sessions.begin(&id, "t", &json!(1)).unwrap();
        assert!(!is_cancelled(&mut next));
    }

    #[test]
    fn the_number_is_bounded_and_busy_sessions_stay() {
        let sessions = Sessions::new(3);
        let busy = sessions.open("t", Client::default()).unwrap();
        let running = sessions.begin(&busy, "t", &json!(1)).unwrap();
        let ids: Vec<String> = (0..100).filter_map(|_| sessions.open("t", Client::default())).collect();
        assert_eq!(sessions.lock().len(), 3);
        assert!(sessions.client(&busy, "t").is_some());
        assert!(sessions.client(ids.last().unwrap(), "t").is_some());
        assert!(sessions.client(ids.first().unwrap(), "t").is_none());
        drop(running);
    }

    #[test]
    fn closing_a_session_cancels_what_runs_in_it() {
        let sessions = Sessions::new(3);
        let id = sessions.open("t", Client::default()).unwrap();
        let mut running = sessions.begin(&id, "t", &json!(1)).unwrap();
        assert!(sessions.close(&id, "t"));
        assert!(is_cancelled(&mut running));
    }
}
