#![forbid(unsafe_code)]
//! Where a daemon listens.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one address may take to accept a connection. Loopback answers at once.
const CONNECT: Duration = Duration::from_secs(5);
const SCHEME: &str = "http://";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// Where a daemon listens, and the path of its protocol there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    place: Place,
    authority: String,
    path: String,
}

impl Endpoint {
    /// Reads a URL such as `http://127.0.0.1:8010/mcp`.
    ///
    /// # Errors
    /// Why it is not one that this client speaks.
    pub fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix(SCHEME).ok_or_else(|| match url.strip_prefix("https://") {
            Some(_) => {
                format!("`{url}`: TLS ends before gloveport: name the http:// address behind the proxy")
            }
            None => format!("`{url}` is no URL: write http://127.0.0.1:8010/mcp"),
        })?;
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, format!("/{path}")),
            None => (rest, "/mcp".to_owned()),
        };
        if path.contains(|c: char| !c.is_ascii_graphic()) || authority.contains('@') {
            return Err(format!("`{url}` is no URL: write http://127.0.0.1:8010/mcp"));
        }
        let (host, port) = split_authority(authority)
            .ok_or_else(|| format!("`{authority}` is no address: write 127.0.0.1:8010 or [::1]:8010"))?;
        Ok(Self { place: Place::Tcp { host, port }, authority: authority.to_owned(), path })
    }

    /// The daemon's socket for local users.
    pub fn local(socket: &Path) -> Self {
        Self {
            place: Place::Unix(socket.to_path_buf()),
            authority: "localhost".to_owned(),
            path: "/mcp".to_owned(),
        }
    }

    /// Another path of the same daemon.
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The path of a request.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Whether it is the socket of this host's daemon.
    pub fn is_local(&self) -> bool {
        matches!(self.place, Place::Unix(_))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The last address's reason.
    pub fn connect(&self) -> io::Result<Stream> {
        let (host, port) = match &self.place {
            Place::Unix(path) => return UnixStream::connect(path).map(Stream::Unix),
            Place::Tcp { host, port } => (host.as_str(), *port),
        };
        let mut failure = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Stream::Tcp(stream));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Unix(path) => write!(f, "{}", path.display()),
            // The path may hold a token: it stays out of messages.
            Place::Tcp { .. } => write!(f, "{SCHEME}{}", self.authority),
        }
    }
}

fn split_authority(authority: &str) -> Option<(String, u16)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = if port.is_empty() { 80 } else { port.strip_prefix(':')?.parse().ok()? };
        return host.parse::<std::net::Ipv6Addr>().ok().map(|host| (host.to_string(), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, 80),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '_';
    (!host.is_empty() && host.chars().all(is_host)).then(|| (host.to_owned(), port))
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// To a URL.
    Tcp(TcpStream),
    /// To the local socket.
    Unix(UnixStream),
}

impl Stream {
    /// A second handle of the same connection.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }
    /// Ends the connection for every handle: a run at its other end is cancelled.
    pub fn close(&self) {
        // It may be closed already; then there is nothing left to end.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
    /// Bounds each read; `None` waits for ever.
    ///
    /// # Errors
    /// A time of zero.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(time),
            Self::Unix(stream) => stream.set_read_timeout(time),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buffer),
            Self::Unix(stream) => stream.write(buffer),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_a_daemon_are_read() {
        for (url, host, port, path) in [
            ("http://127.0.0.1:8010/mcp", "127.0.0.1", 8010, "/mcp"),
            ("http://localhost:9/mcp/t/gp_x", "localhost", 9, "/mcp/t/gp_x"),
            ("http://[::1]:8010/mcp", "::1", 8010, "/mcp"),
            ("http://host", "host", 80, "/mcp"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.place, Place::Tcp { host: host.into(), port }, "{url}");
            assert_eq!(endpoint.path(), path);
        }
    }

    #[test]
    fn other_urls_are_refused_with_a_reason() {
        for url in [
            "https://127.0.0.1/mcp",
            "127.0.0.1:8010",
            "http://",
            "http://a:b/",
            "http://u@h/",
            "http://h/a b",
            "http://h/\r\nX: y",
        ] {
            assert!(Endpoint::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_message_about_an_endpoint_holds_no_secret() {
        let endpoint = Endpoint::parse("http://localhost:9/mcp/t/gp_secret").unwrap();
        assert_eq!(endpoint.to_string(), "http://localhost:9");
    }
}
