#![forbid(unsafe_code)]
//! Connection and login.

use super::resp::{self, Reply};
use crate::credential::Credential;
use crate::failure::{Failure, refuse};
use crate::net::{self, Broken, Stream};
use gloveport_contract::catalog::BuiltinConfig;
use std::io::BufReader;
use std::time::Duration;

/// How long the server may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an answer to a command of our own.
const SHORT: usize = 4096;

/// A connection that is logged in.
pub type Redis = BufReader<Box<dyn Stream>>;

/// Connects, logs in and chooses the database.
///
/// # Errors
/// The server cannot be reached, or refuses the account or the database.
pub fn open(config: &BuiltinConfig, credential: &Credential) -> Result<Redis, Failure> {
    let server = config.server.as_deref().unwrap_or_default();
    let mut stream = net::connect(server, PATIENCE)?;
    if credential.ca.is_some() {
        stream = net::tls::upgrade(stream, net::host_of(server), credential)?;
    }
    let mut redis = BufReader::new(stream);
    if let Some(password) = &credential.password {
        let mut login = vec!["AUTH"];
        login.extend(credential.user.as_deref());
        login.push(password);
        own(&mut redis, &login, "the login")?;
    }
    if let Some(db) = config.db {
        own(&mut redis, &["SELECT", &db.to_string()], "choosing the database")?;
    }
    Ok(redis)
}

/// Sends a command and receives its reply of at most `most` bytes.
///
/// # Errors
/// There is no reply that could be read.
pub fn ask(redis: &mut Redis, words: &[&str], most: usize) -> Result<Reply, Broken> {
    resp::send(redis.get_mut(), words)?;
    let mut budget = most;
    resp::receive(redis, &mut budget)
}

/// A command of our own, of which only success matters. What the server says of it holds no secret: it
/// never repeats a password.
fn own(redis: &mut Redis, words: &[&str], what: &str) -> Result<(), Failure> {
    match ask(redis, words, SHORT).map_err(|broken| broken.of(what))? {
        Reply::Error(text) => refuse(format!("{what} was refused by the server: {text}")),
        _ => Ok(()),
    }
}
