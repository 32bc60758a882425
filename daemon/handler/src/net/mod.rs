#![forbid(unsafe_code)]
//! Connections to a declared server: a Unix socket or TCP, and TLS over it.

mod broken;
pub mod tls;

pub use broken::Broken;

use crate::failure::Failure;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long a connection may take to come about.
pub const CONNECT: Duration = Duration::from_secs(5);

/// A connection in both directions.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// Connects to `host:port`, or to the Unix socket of that path. Reading and writing give up after
/// `patience`.
///
/// # Errors
/// The server cannot be reached; the message names it.
pub fn connect(server: &str, patience: Duration) -> Result<Box<dyn Stream>, Failure> {
    open(server, patience).map_err(|error| Failure::system(format!("{server} cannot be reached"), error))
}

fn open(server: &str, patience: Duration) -> io::Result<Box<dyn Stream>> {
    if server.starts_with('/') {
        let stream = UnixStream::connect(server)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        return Ok(Box::new(stream));
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                return Ok(Box::new(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The host of `host:port`, without brackets.
pub fn host_of(server: &str) -> &str {
    server.rsplit_once(':').map_or(server, |(host, _)| host).trim_matches(['[', ']'])
}
