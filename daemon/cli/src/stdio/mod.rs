#![forbid(unsafe_code)]
//! `gloveport stdio`: the protocol on stdin and stdout, for clients that start a program.
//!
//! It is a bridge to one daemon, or a router to the daemons of many hosts, and decides nothing: what a message
//! means, and whether it may, the daemon says. Nothing but messages is ever written to stdout.

mod bridge;
mod fleet;
mod framing;
mod message;

use crate::failure::{Failure, Outcome};
use crate::mcp::DaemonArgs;
use bridge::Bridge;
use clap::Args;
pub use fleet::Target;
use fleet::{Fleet, Limits, Ssh};
use framing::{Frame, Input, MESSAGE, Output};
use gloveportd::paths::Paths;
use message::NOT_JSON;
use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long answers are waited for after the client has closed stdin: whoever pipes a few requests in gets
/// their answers, and whoever is gone leaves nothing running.
const GRACE: Duration = Duration::from_secs(1);

/// The protocol on stdin and stdout, for a client that starts a program.
///
/// Speaks to this host's daemon as the local user, or to GLOVEPORT_URL with GLOVEPORT_TOKEN; with --host to
/// the daemons of other hosts, as the local user that ssh(1) logs in as. Ends with its stdin, and its runs with
/// it.
#[derive(Debug, Args)]
pub struct StdioArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// A host to reach over ssh: web1, ops@db1:2222; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<Target>,
    /// A configuration for ssh in place of the user's
    #[arg(long, value_name = "FILE", requires = "hosts")]
    ssh_config: Option<PathBuf>,
    /// Close a host's connection when nothing was asked over it for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    /// How long connecting to a host may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    connect_timeout: u64,
    /// How long one call to a host may take, connecting included, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    deadline: u64,
}

/// What answers the messages of a client.
trait Service {
    /// Where answers go.
    fn output(&self) -> &Output;

    /// Takes one message; what can take long runs in a thread.
    ///
    /// # Errors
    /// The client has gone away.
    fn take(self: &Arc<Self>, bytes: Vec<u8>) -> io::Result<()>;

    /// Lets requests that are nearly done end within `grace`, and ends the others.
    fn finish(&self, grace: Duration);
}

/// Runs the command.
///
/// # Errors
/// The arguments name no daemon, or stdin cannot be read.
pub fn run(args: &StdioArgs, paths: &Paths) -> Outcome {
    if args.hosts.is_empty() {
        return serve(&Arc::new(Bridge::new(args.daemon.daemon(paths)?)));
    }
    let names: Vec<&str> = args.hosts.iter().map(|host| host.name.as_str()).collect();
    if let Some(twice) =
        names.iter().enumerate().find_map(|(at, name)| names.iter().take(at).find(|n| *n == name))
    {
        return Err(Failure::usage(format!("--host {twice} is given twice")));
    }
    let ssh = Ssh { config: args.ssh_config.clone(), connect: Duration::from_secs(args.connect_timeout) };
    let limits =
        Limits { deadline: Duration::from_secs(args.deadline), idle: Duration::from_secs(args.idle) };
    let fleet = Fleet::new(args.hosts.clone(), &ssh, limits)
        .map_err(|error| Failure::new(format!("this host has no room for a thread: {error}")))?;
    serve(&Arc::new(fleet))
}

fn serve<S: Service>(service: &Arc<S>) -> Outcome {
    let mut input = Input::new(io::stdin().lock());
    loop {
        let frame = input.next().map_err(|error| Failure::new(format!("cannot read stdin: {error}")))?;
        let output = service.output();
        if let Some(framing) = input.framing() {
            output.answer_in(framing);
        }
        let taken = match frame {
            None => break,
            Some(Frame::Message(bytes)) => service.take(bytes),
            Some(Frame::TooLong) => {
                output.refuse(&Value::Null, NOT_JSON, &format!("a message is longer than {MESSAGE} bytes"))
            }
            Some(Frame::NoLength) => output.refuse(&Value::Null, NOT_JSON, "a header without Content-Length"),
        };
        if taken.is_err() {
            // The client has closed our stdout: it is gone.
            return Ok(0);
        }
    }
    service.finish(GRACE);
    Ok(0)
}

/// A lock that a panicking thread cannot poison: each state behind one is whole at every moment.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
