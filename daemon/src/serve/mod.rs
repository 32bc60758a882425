#![forbid(unsafe_code)]
//! The daemon from its start to its end.
//!
//! The order matters: sockets are bound while that is still possible, then the process confines itself,
//! then the runtime is built.

mod accept;
mod manager;
mod sockets;

use crate::config::Config;
use crate::confine::{self, Confinement};
use crate::helper::Peer as HelperPeer;
use crate::http::{self, AppState};
use crate::log::{self, Level};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::paths::Paths;
use crate::policy::Policy;
use crate::run::Runner;
use accept::Acceptor;
use manager::Manager;
use sockets::Sockets;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long requests in progress may take after the signal to end. Runs are cancelled then.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why serving has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Somebody said so.
    Told,
    /// There is a token now, and TCP is to be listened on. A process that has confined itself cannot bind it any
    /// more: whoever started this one starts the next.
    FirstToken,
}

/// Serves until a signal ends it, or the first token does.
///
/// # Errors
/// Why it cannot serve, and the way out.
pub fn serve(options: &Options) -> Result<End, String> {
    if rustix::process::geteuid().is_root() && !options.same_user {
        return Err("it must not run as root, it is the half without privilege: start it as its own user \
                    (the service does; `gloveport up` does too)"
            .into());
    }
    let paths = options.paths();
    let config_file = options.config.as_ref().unwrap_or(&paths.daemon_config);
    let mut config = Config::load(config_file).map_err(|error| error.to_string())?;
    if !options.listen.is_empty() {
        config.listen = options.listen.clone();
    }
    config.check_listen()?;
    let manager = Manager::from_environment();
    let tokens = Policy::has_tokens(&paths)?;
    let sockets = Sockets::open(&config, tokens)?;
    if sockets.is_empty() {
        return Err(format!(
            "no token: {} holds none, so nothing could be called over TCP, and no local socket was handed \
             over. Make one with `gloveport token add`, or try `gloveport up`",
            paths.tokens.display()
        ));
    }
    let confinement = confine::apply(&paths).map_err(|error| error.to_string())?;
    if !confinement.landlock {
        log::write(Level::Warning, "this kernel has no Landlock: seccomp and file modes confine the daemon");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the runtime cannot be built: {error}"))?;
    let peer = if options.same_user { HelperPeer::SameUser } else { HelperPeer::Root };
    let result = runtime.block_on(run(paths, peer, Arc::new(config), sockets, confinement, manager));
    // A blocking task (a catalogue being parsed) need not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

/// Connections to the metrics at once.
const SCRAPERS: usize = 8;

async fn run(
    paths: Paths,
    peer: HelperPeer,
    config: Arc<Config>,
    sockets: Sockets,
    confinement: Confinement,
    manager: Manager,
) -> Result<End, String> {
    let policy = Policy::new(paths.clone(), peer);
    // Before the first client: a call that comes at once finds the catalogue. A helper that is still away
    // is no reason not to start.
    let _ = policy.refresh().await;
    let runner = Runner::new(&paths, peer, policy.clone());
    let metrics = runner.metrics().clone();
    let router = http::router(AppState::new(policy.clone(), runner, config.clone()));
    let accept = |router, places, metrics| {
        Acceptor::new(router, policy.clone(), places, config.header_timeout, metrics)
    };
    let acceptor = accept(router, config.max_connections, metrics.clone());
    let unusable = |error: std::io::Error| format!("a listener cannot be used: {error}");
    let mut addresses = Vec::new();
    let waits_for_token = sockets.tcp.is_empty() && !config.listen.is_empty();
    for listener in sockets.tcp {
        let listener = TcpListener::from_std(listener).map_err(unusable)?;
        addresses.push(listener.local_addr().map_err(unusable)?);
        tokio::spawn(acceptor.clone().tcp(listener));
    }
    let local = !sockets.unix.is_empty();
    for listener in sockets.unix {
        let listener = UnixListener::from_std(listener).map_err(unusable)?;
        tokio::spawn(acceptor.clone().local(listener));
    }
    if let Some(listener) = sockets.metrics {
        let listener = TcpListener::from_std(listener).map_err(unusable)?;
        // Scrapers are not clients: they neither count as such nor take their places.
        let scrapers = accept(metrics.router(policy.clone()), SCRAPERS, Metrics::default());
        tokio::spawn(scrapers.tcp(listener));
    }
    // Before anybody is told that we are there, and might end us at once.
    let ending = Ending::listen()?;
    announce(&addresses);
    manager.ready(&status(&addresses, local, confinement));
    tokio::spawn(manager.watch());
    let keeping = policy.keep_current();
    let ended = tokio::select! {
        () = ending.come() => End::Told,
        () = keeping => End::Told,
        () = first_token(&policy), if waits_for_token && manager.restarts() => End::FirstToken,
    };
    if ended == End::FirstToken {
        log::write(Level::Info, "the first token is there: starting again, to listen on TCP");
    }
    manager.stopping();
    acceptor.close(FAREWELL).await;
    Ok(ended)
}

/// One line for each TCP listener on stdout, for who chose port 0.
fn announce(addresses: &[SocketAddr]) {
    let mut stdout = std::io::stdout().lock();
    for address in addresses {
        log::write(Level::Info, format_args!("listening on http://{address}/mcp"));
        if !address.ip().to_canonical().is_loopback() {
            log::write(Level::Warning, format_args!("{address} can be reached by other hosts, without TLS"));
        }
        // Nobody reading stdout is no reason not to serve.
        let _ = writeln!(stdout, "listening {address}");
    }
    let _ = stdout.flush();
}

fn status(addresses: &[SocketAddr], local: bool, confinement: Confinement) -> String {
    let mut places: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if local {
        places.push("the local socket".into());
    }
    let tcp = if addresses.is_empty() { "; TCP is closed: no token (gloveport token add)" } else { "" };
    format!("Serving on {}{tcp}; confined by {confinement}", places.join(", "))
}

/// The signals to end, from a service manager or a terminal.
struct Ending {
    terminate: Signal,
    interrupt: Signal,
}

impl Ending {
    /// From now on they no longer kill.
    fn listen() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| format!("signals cannot be received: {error}"));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for one.
    async fn come(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ends when a token has come.
async fn first_token(policy: &Policy) {
    let mut changed = policy.changed();
    while policy.snapshot().tokens.tokens.is_empty() {
        if changed.changed().await.is_err() {
            return;
        }
    }
}
