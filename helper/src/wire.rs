#![forbid(unsafe_code)]
//! One connection: one packet in, several out. A descriptor is never accepted.

use gloveport_contract::limits;
use gloveport_contract::packet::Event;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recv, recvmsg, sendmsg};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How a request came, or did not.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// One whole packet.
    Packet(Vec<u8>),
    /// The peer has closed, or sent nothing in time.
    Nothing,
    /// Something that no daemon sends; what it was.
    Violation(&'static str),
}

/// Why an event could not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The peer does not read: it is stuck, or wants to keep us waiting.
    Stuck,
    /// The peer has gone.
    Gone,
    /// The event is larger than a packet.
    TooLarge,
}

/// Receives the only packet of a connection.
pub fn receive(connection: &OwnedFd, patience: Duration) -> Received {
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
    let mut ready = [PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
    if !matches!(poll(&mut ready, timeout), Ok(1)) {
        return Received::Nothing;
    }
    // One byte more than a packet may have shows that it is too long.
    let mut buffer = vec![0; limits::PACKET + 1];
    let mut control = nix::cmsg_space!([std::os::fd::RawFd; 4]);
    let mut slices = [IoSliceMut::new(&mut buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<()>(connection.as_raw_fd(), &mut slices, Some(&mut control), flags) {
        Ok(message) => message,
        Err(_) => return Received::Nothing,
    };
    let mut descriptors = 0;
    for received in message.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(received) = received {
            descriptors += received.len();
            for descriptor in received {
                // Ours since recvmsg, and wanted by nobody.
                let _ = nix::unistd::close(descriptor);
            }
        }
    }
    let (length, flags) = (message.bytes, message.flags);
    if descriptors > 0 || flags.contains(MsgFlags::MSG_CTRUNC) {
        return Received::Violation("a descriptor came with the request");
    }
    if length > limits::PACKET || flags.contains(MsgFlags::MSG_TRUNC) {
        return Received::Violation("the request is larger than a packet may be");
    }
    if length == 0 {
        // An empty packet reads like the end; both are no request.
        return Received::Nothing;
    }
    buffer.truncate(length);
    Received::Packet(buffer)
}

/// Longest packet that may follow a request, bytes: a word and a name. A longer one is cut, and so is none.
const SECOND: usize = 1024;

/// The packet that a readable connection holds behind the request, `None` where it holds its end. A descriptor
/// that came with it is the kernel's to close: there is no room for one.
pub fn second(connection: &OwnedFd) -> Option<Vec<u8>> {
    let mut buffer = vec![0; SECOND];
    let length = recv(connection.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).ok()?;
    buffer.truncate(length);
    (length > 0).then_some(buffer)
}

/// Sends an event with descriptors, never waiting: a daemon that does not read is no reason to hold a run up.
///
/// # Errors
/// Why not. The run is cancelled then.
pub fn send(connection: &OwnedFd, event: &Event, descriptors: &[BorrowedFd<'_>]) -> Result<(), SendError> {
    let bytes = event.encode().map_err(|_| SendError::TooLarge)?;
    let numbers: Vec<_> = descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let control: &[ControlMessage<'_>] = if numbers.is_empty() { &[] } else { &rights };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    loop {
        return match sendmsg::<()>(connection.as_raw_fd(), &[IoSlice::new(&bytes)], control, flags, None) {
            Ok(_) => Ok(()),
            Err(Errno::EINTR) => continue,
            // ETOOMANYREFS: more descriptors in flight than the daemon has taken.
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ETOOMANYREFS) => Err(SendError::Stuck),
            Err(Errno::EMSGSIZE) => Err(SendError::TooLarge),
            Err(_) => Err(SendError::Gone),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    fn put(socket: &OwnedFd, bytes: &[u8], control: &[ControlMessage<'_>]) {
        sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::empty(), None).unwrap();
    }

    fn open_descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn a_packet_comes_whole_and_silence_is_nothing() {
        let (ours, theirs) = pair();
        put(&theirs, b"request", &[]);
        assert_eq!(receive(&ours, Duration::from_secs(1)), Received::Packet(b"request".to_vec()));
        assert_eq!(receive(&ours, Duration::from_millis(10)), Received::Nothing);
        drop(theirs);
        assert_eq!(receive(&ours, Duration::from_secs(1)), Received::Nothing);
    }

    #[test]
    fn a_second_packet_is_told_from_the_end() {
        let (ours, theirs) = pair();
        put(&theirs, b"first", &[]);
        assert!(matches!(receive(&ours, Duration::from_secs(1)), Received::Packet(_)));
        assert_eq!(second(&ours), None);
        put(&theirs, b"second", &[]);
        assert_eq!(second(&ours).as_deref(), Some(&b"second"[..]));
        drop(theirs);
        assert_eq!(second(&ours), None);
    }

    #[test]
    fn a_packet_that_is_too_long_is_a_violation() {
        let (ours, theirs) = pair();
        put(&theirs, &vec![0; limits::PACKET + 1], &[]);
        assert!(matches!(receive(&ours, Duration::from_secs(1)), Received::Violation(_)));
    }

    #[test]
    fn descriptors_are_refused_and_not_kept() {
        for count in [1, 4, 50] {
            let (ours, theirs) = pair();
            let given = vec![theirs.as_raw_fd(); count];
            put(&theirs, b"request", &[ControlMessage::ScmRights(&given)]);
            let before = open_descriptors();
            assert!(matches!(receive(&ours, Duration::from_secs(1)), Received::Violation(_)));
            // Other tests run beside this one and open a few of their own.
            assert!(open_descriptors() < before + 20);
        }
    }

    #[test]
    fn a_peer_that_does_not_read_is_stuck_and_nobody_waits() {
        let (ours, theirs) = pair();
        let result = (0..10_000).map(|_| send(&ours, &Event::Busy, &[])).find(Result::is_err);
        assert_eq!(result, Some(Err(SendError::Stuck)));
        drop(theirs);
        assert_eq!(send(&ours, &Event::Busy, &[]), Err(SendError::Gone));
    }
}
