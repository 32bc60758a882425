#![forbid(unsafe_code)]
//! One connection of the daemon to the helper. Dropping it cancels the run.

use super::socket::{self, BUFFER, PATIENCE, PAUSE};
use super::{HelperError, Peer};
use gloveport_contract::packet::{Event, Request};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

/// A connection that has sent its request.
pub struct Connection {
    // Tokio has no type for SOCK_SEQPACKET; its stream type polls any socket, and only `async_io` is used.
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects, makes sure who listens, and sends the request as one packet.
    ///
    /// # Errors
    /// All of [`HelperError`]; nothing was sent unless it is `Lost`.
    pub async fn open(path: &Path, peer: Peer, request: &Request) -> Result<Self, HelperError> {
        let packet = request.encode().map_err(HelperError::TooLarge)?;
        let fd = connect(path).await?;
        socket::check_peer(&fd, path, peer)?;
        let stream = UnixStream::from_std(StdStream::from(fd))
            .map_err(|reason| HelperError::unreachable(path, reason))?;
        stream
            .async_io(Interest::WRITABLE, || socket::send(stream.as_fd(), &packet))
            .await
            .map_err(|_| HelperError::Lost)?;
        Ok(Self { stream, buffer: vec![0; BUFFER] })
    }

    /// Has the run ended, whatever its action says of a closed connection. Its events go on to the end.
    ///
    /// # Errors
    /// `Lost`.
    pub async fn end(&self, by: String) -> Result<(), HelperError> {
        let packet = Request::End { by }.encode().map_err(HelperError::TooLarge)?;
        self.stream
            .async_io(Interest::WRITABLE, || socket::send(self.stream.as_fd(), &packet))
            .await
            .map_err(|_| HelperError::Lost)
    }

    /// The next event with its descriptors; `None` when the helper has closed.
    ///
    /// # Errors
    /// `Lost` or `Protocol`.
    pub async fn next(&mut self) -> Result<Option<(Event, Vec<OwnedFd>)>, HelperError> {
        let Self { stream, buffer } = self;
        let received = stream
            .async_io(Interest::READABLE, || socket::receive(stream.as_fd(), buffer))
            .await
            .map_err(|_| HelperError::Lost)?;
        Ok(socket::decode(&received, buffer)?.map(|event| (event, received.descriptors)))
    }
}

async fn connect(path: &Path) -> Result<OwnedFd, HelperError> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(fd) = socket::try_connect(path)? {
            return Ok(fd);
        }
        if Instant::now() >= until {
            return Err(HelperError::Busy);
        }
        sleep(PAUSE).await;
    }
}
