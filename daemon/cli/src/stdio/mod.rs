#![forbid(unsafe_code)]
//! `gloveport stdio`: the protocol on stdin and stdout, for clients that start a program.
//!
//! It is a bridge and no server: what a message means, and whether it may, the daemon says. Nothing but
//! messages is ever written to stdout.

mod bridge;
mod framing;
mod message;

use crate::failure::{Failure, Outcome};
use crate::mcp::DaemonArgs;
use bridge::Bridge;
use clap::Args;
use framing::{Frame, Input, MESSAGE};
use gloveportd::paths::Paths;
use message::NOT_JSON;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long answers are waited for after the client has closed stdin: whoever pipes a few requests in gets
/// their answers, and whoever is gone leaves nothing running.
const GRACE: Duration = Duration::from_secs(1);

/// The protocol on stdin and stdout, for a client that starts a program.
///
/// Speaks to this host's daemon as the local user, or to GLOVEPORT_URL with GLOVEPORT_TOKEN. Ends with its
/// stdin, and its runs with it.
#[derive(Debug, Args)]
pub struct StdioArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Runs the command.
///
/// # Errors
/// The arguments name no daemon, or stdin cannot be read.
pub fn run(args: &StdioArgs, paths: &Paths) -> Outcome {
    let bridge = Arc::new(Bridge::new(args.daemon.daemon(paths)?));
    let mut input = Input::new(io::stdin().lock());
    loop {
        let frame = input.next().map_err(|error| Failure::new(format!("cannot read stdin: {error}")))?;
        if let Some(framing) = input.framing() {
            bridge.output().answer_in(framing);
        }
        let taken = match frame {
            None => break,
            Some(Frame::Message(bytes)) => bridge.take(bytes),
            Some(Frame::TooLong) => {
                bridge.refuse(&Value::Null, NOT_JSON, &format!("a message is longer than {MESSAGE} bytes"))
            }
            Some(Frame::NoLength) => bridge.refuse(&Value::Null, NOT_JSON, "a header without Content-Length"),
        };
        if taken.is_err() {
            // The client has closed our stdout: it is gone.
            return Ok(0);
        }
    }
    bridge.finish(GRACE);
    Ok(0)
}
