#![forbid(unsafe_code)]
//! On SIGTERM the statement is ended on the server too: a server goes on with it when its client is gone.

use super::login::Login;
use crate::failure::Failure;
use crate::net::CONNECT;
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::pipe;
use std::io::Read;
use std::sync::Arc;
use std::thread;

/// The exit code of a program that SIGTERM ended, as a shell has it.
const TERMINATED: i32 = 128 + SIGTERM;

/// From now on, SIGTERM sends `KILL QUERY` over a second connection and ends the process. The helper waits
/// 200 ms between TERM and KILL; a statement that outlives that is ended by its own time limit.
pub fn on_termination(mut login: Login, thread: u32) -> Result<Arc<Login>, Failure> {
    login.patience = login.patience.max(CONNECT);
    let login = Arc::new(login);
    // A pipe and not a pair of sockets: a run that reaches its server by TCP may have no Unix sockets.
    let (mut arrived, signal) = std::io::pipe().map_err(|error| Failure::system("a pipe", error))?;
    pipe::register(SIGTERM, signal).map_err(|error| Failure::system("SIGTERM", error))?;
    let again = Arc::clone(&login);
    thread::Builder::new()
        .name("cancel".to_owned())
        .spawn(move || {
            if arrived.read_exact(&mut [0]).is_ok() {
                let killed = again
                    .connect()
                    .map(|mut connection| connection.command(&format!("KILL QUERY {thread}")).is_ok());
                if !matches!(killed, Ok(true)) {
                    eprintln!("the statement could not be ended on the server; its time limit will end it");
                }
                std::process::exit(TERMINATED);
            }
        })
        .map_err(|error| Failure::system("starting a thread", error))?;
    Ok(login)
}
