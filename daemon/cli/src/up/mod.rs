#![forbid(unsafe_code)]
//! `gloveport up`: try it, in the foreground, and leave nothing behind.

mod prepare;
mod program;
mod ready;
mod sockets;
mod state;

use crate::accounts::{self, Account};
use crate::failure::{Failure, Outcome};
use clap::Args;
use gloveportd::config::Config;
use gloveportd::paths::{Paths, STATE_VARIABLE};
use program::Program;
use state::State;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Try gloveport on this host, in the foreground, until Ctrl-C.
///
/// Makes a signing key and a token in the state directory, builds and signs the catalogues, and starts the
/// helper (as root) and the daemon (as the user `gloveport`). The default state directory,
/// /run/gloveport-try, is removed at the end; one that is named with --state is kept.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Where the daemon listens; port 0: any free one; may be repeated [default: 127.0.0.1:8010 and [::1]:8010]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Vec<SocketAddr>,
    /// A directory of YAML files in place of the ready catalogues; may be repeated
    #[arg(long, value_name = "DIR")]
    catalog: Vec<PathBuf>,
    /// When ready, print one line of JSON: endpoint, token, socket, state
    #[arg(long)]
    json: bool,
    /// Run everything as the caller: no root, and no boundary between daemon, helper and programs
    #[arg(long)]
    same_user: bool,
    /// Whom the daemon runs as
    #[arg(long, value_name = "NAME|UID")]
    daemon_user: Option<String>,
}

/// Whom the daemon runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    account: Account,
    /// Whether everything runs as the caller.
    same_user: bool,
    /// Whether the caller named the daemon's user.
    is_chosen: bool,
}

/// Runs the command.
///
/// # Errors
/// What cannot be prepared or started, or which half died.
pub fn run(args: &UpArgs, named: Option<PathBuf>) -> Outcome {
    let identity = identity(args)?;
    let from_environment =
        || std::env::var_os(STATE_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let named = named.or_else(from_environment).map(|dir| std::path::absolute(&dir).unwrap_or(dir));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        // From here on a signal is an orderly end, whatever has been made so far.
        let mut signals = Signals::new()?;
        let state = State::open(named, &identity)?;
        ports_are_free(&state.paths, &args.listen)?;
        let token = prepare::prepare(&state.paths, &args.catalog, &identity)?;
        serve(args, &identity, &state, &token, &mut signals).await
    })
}

/// Checks that the caller may start the two halves as they should be started.
fn identity(args: &UpArgs) -> Result<Identity, Failure> {
    let own = rustix::process::geteuid();
    if args.same_user && own.is_root() {
        return Err(Failure::usage("--same-user is for a first look without root")
            .remedy("as root leave it out: that has all layers; or start it as another user"));
    }
    if args.same_user {
        let name = accounts::name_of(own.as_raw());
        let account = Account { name, uid: own.as_raw(), gid: rustix::process::getegid().as_raw() };
        return Ok(Identity { account, same_user: true, is_chosen: false });
    }
    if !own.is_root() {
        return Err(Failure::new(
            "without root there are no separate users: nothing would keep daemon, helper and programs apart",
        )
        .remedy("run it as root (sudo gloveport up), or take a first look without that layer: gloveport up --same-user"));
    }
    let account = accounts::find(args.daemon_user.as_deref().unwrap_or(accounts::DAEMON))?;
    if account.uid == 0 {
        return Err(
            Failure::usage("the daemon must not run as root").remedy("name another user with --daemon-user")
        );
    }
    Ok(Identity { account, same_user: false, is_chosen: args.daemon_user.is_some() })
}

/// Looks before anything is started, so that the message is about the port and nothing else.
fn ports_are_free(paths: &Paths, listen: &[SocketAddr]) -> Result<(), Failure> {
    let configured = Config::load(&paths.daemon_config).map_err(|error| Failure::new(error.to_string()))?;
    let listen = if listen.is_empty() { configured.listen } else { listen.to_vec() };
    match listen.iter().find(|address| {
        TcpListener::bind(address).is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
    }) {
        None => Ok(()),
        Some(address) => Err(Failure::new(format!("{address} is taken by another program")).remedy(format!(
            "`ss -ltnp 'sport = {}'` shows it; or listen elsewhere: --listen 127.0.0.1:0",
            address.port()
        ))),
    }
}

/// Starts both halves, says how to reach them, and ends them: at a signal, or when one of them ends.
async fn serve(
    args: &UpArgs,
    identity: &Identity,
    state: &State,
    token: &str,
    signals: &mut Signals,
) -> Outcome {
    let paths = &state.paths;
    let sockets = (sockets::helper(&paths.helper_socket, identity)?, sockets::mcp(&paths.mcp_socket)?);
    let mut common: Vec<OsString> = vec!["--state".into(), state.directory().into()];
    if identity.same_user {
        common.push("--same-user".into());
    }
    let mut for_helper = common.clone();
    if !identity.same_user {
        for_helper.extend(["--daemon-user".into(), identity.account.uid.to_string().into()]);
    }
    let listen = args.listen.iter().flat_map(|address| ["--listen".into(), address.to_string().into()]);
    let for_daemon: Vec<OsString> = common.into_iter().chain(listen).collect();

    let bin = &paths.bin_dir;
    let mut helper = Program::start("gloveport-helper", bin, &for_helper, sockets.0, None)?;
    let mut daemon = Program::start("gloveportd", bin, &for_daemon, sockets.1, Some(identity))?;
    let stdout = daemon.stdout();
    let result = tokio::select! {
        failure = helper.died() => Err(failure),
        failure = daemon.died() => Err(failure),
        () = signals.any() => Ok(0),
        result = ready::announce(args, identity, state, token, stdout) => result,
    };
    daemon.stop().await;
    helper.stop().await;
    result.map_err(|failure| failure.remedy(state.how_to_examine()))
}

/// The signals that end a program in the foreground.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> Result<Self, Failure> {
        let of =
            |kind| signal(kind).map_err(|error| Failure::new(format!("cannot wait for signals: {error}")));
        Ok(Self([of(SignalKind::interrupt())?, of(SignalKind::terminate())?, of(SignalKind::hangup())?]))
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {},
            _ = terminate.recv() => {},
            _ = hangup.recv() => {},
        }
    }
}
