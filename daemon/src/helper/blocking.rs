#![forbid(unsafe_code)]
//! The same question for programs without a runtime.

use super::socket::{self, BUFFER, PATIENCE, PAUSE};
use super::status::{ANSWER, PAGES};
use super::{HelperError, Peer, Status};
use gloveport_contract::packet::Request;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

/// Asks the helper what is in force. Root's helper and one of the caller's own user are believed: the
/// question holds no secret.
///
/// # Errors
/// All of [`HelperError`].
pub fn status_blocking(path: &Path) -> Result<Status, HelperError> {
    let mut status = Status::default();
    let mut buffer = vec![0; BUFFER];
    for page in 0..PAGES {
        let packet = Request::Status { page }.encode().map_err(HelperError::TooLarge)?;
        let fd = connect(path)?;
        socket::check_peer(&fd, path, Peer::SameUser)?;
        socket::send(&fd, &packet).map_err(|_| HelperError::Lost)?;
        let time = Timespec::try_from(ANSWER).map_err(|_| HelperError::Busy)?;
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&time)) {
            Ok(0) => return Err(HelperError::Busy),
            Ok(_) => {}
            Err(_) => return Err(HelperError::Lost),
        }
        let received = socket::receive(&fd, &mut buffer).map_err(|_| HelperError::Lost)?;
        if !status.add(socket::decode(&received, &buffer)?)? {
            break;
        }
    }
    Ok(status)
}

fn connect(path: &Path) -> Result<OwnedFd, HelperError> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(fd) = socket::try_connect(path)? {
            return Ok(fd);
        }
        if Instant::now() >= until {
            return Err(HelperError::Busy);
        }
        std::thread::sleep(PAUSE);
    }
}
