#![forbid(unsafe_code)]
//! Accepting connections, within bounds, and serving HTTP/1 on them.

use crate::accounts;
use crate::http::Peer;
use crate::log::{self, Level};
use crate::metrics::Metrics;
use crate::policy::Policy;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;

/// Pause after a failed accept. When descriptors run out the connection stays in the queue and the next
/// attempt fails at once, so without a pause this would spin.
const PAUSE: Duration = Duration::from_millis(100);

/// How often the same trouble is worth a log line.
const COMPLAINT: Duration = Duration::from_secs(60);

/// Accepts on any number of listeners. Cheap to clone.
#[derive(Clone)]
pub struct Acceptor {
    router: Router,
    policy: Policy,
    places: Arc<Semaphore>,
    all_places: u32,
    header_timeout: Duration,
    metrics: Metrics,
    closing: watch::Sender<bool>,
}

impl Acceptor {
    /// An acceptor that serves this router on so many connections at once.
    pub fn new(
        router: Router,
        policy: Policy,
        places: usize,
        header_timeout: Duration,
        metrics: Metrics,
    ) -> Self {
        let places = places.min(Semaphore::MAX_PERMITS);
        Self {
            router,
            policy,
            places: Arc::new(Semaphore::new(places)),
            all_places: u32::try_from(places).unwrap_or(u32::MAX),
            header_timeout,
            metrics,
            closing: watch::Sender::new(false),
        }
    }

    /// Accepts TCP clients for ever.
    pub async fn tcp(self, listener: TcpListener) {
        let mut complained = None;
        loop {
            let Some(place) = self.place().await else { return };
            let Some((stream, address)) = self.next(listener.accept(), &mut complained).await else {
                continue;
            };
            // Replies are small and whole: nothing is gained by waiting for more.
            let _ = stream.set_nodelay(true);
            self.spawn(stream, Peer::Tcp(address), place);
        }
    }

    /// Accepts local users for ever, but nobody that an action runs as: a program must not call in turn.
    pub async fn local(self, listener: UnixListener) {
        let mut complained = None;
        loop {
            let Some(place) = self.place().await else { return };
            let Some((stream, _)) = self.next(listener.accept(), &mut complained).await else { continue };
            let Ok(uid) = stream.peer_cred().map(|cred| cred.uid()) else { continue };
            if self.policy.snapshot().run_as.contains(&uid) {
                log::write(
                    Level::Warning,
                    format_args!("closed a local connection of uid {uid}: actions run as it"),
                );
                continue;
            }
            self.spawn(stream, Peer::Local { uid, user: accounts::name_of(uid) }, place);
        }
    }

    /// Stops accepting, lets requests in progress end, and goes after this time in any case.
    pub async fn close(&self, patience: Duration) {
        self.closing.send_replace(true);
        let _ = tokio::time::timeout(patience, self.places.acquire_many(self.all_places)).await;
    }

    /// A place for one more connection; `None` at the end. Who finds none waits in the kernel's queue.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            () = self.closed() => None,
            place = self.places.clone().acquire_owned() => place.ok(),
        }
    }

    async fn next<T>(
        &self,
        accepted: impl Future<Output = io::Result<T>>,
        complained: &mut Option<Instant>,
    ) -> Option<T> {
        let accepted = tokio::select! {
            () = self.closed() => return None,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok(connection) => Some(connection),
            Err(error) => {
                if complained.is_none_or(|last| last.elapsed() > COMPLAINT) {
                    *complained = Some(Instant::now());
                    log::write(Level::Warning, format_args!("a connection could not be accepted: {error}"));
                }
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }

    /// Ends when no more connections are wanted.
    fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut closing = self.closing.subscribe();
        async move {
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }

    fn spawn<S>(&self, stream: S, peer: Peer, place: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let header_timeout = self.header_timeout;
        let closed = self.closed();
        let present = self.metrics.connection();
        tokio::spawn(async move {
            let _held = (place, present);
            let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer.clone());
                router.clone().oneshot(request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(header_timeout)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = pin!(connection);
            // Clients that go away, or send no HTTP, end their connection; there is nobody to tell.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = closed => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
        });
    }
}
