#![forbid(unsafe_code)]
//! The listening socket: handed over by the service manager, or made here.

use crate::args::Options;
use crate::sys::descriptors;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::sockopt::{AcceptConn, PeerCredentials, SockType as SockTypeOption};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, chown};
use std::fs::{self, Permissions};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

/// The first descriptor that a service manager hands over (sd_listen_fds(3)).
const FIRST: RawFd = 3;
/// Connections that wait to be accepted. A full queue makes connect(2) wait or fail, and nothing else.
const BACKLOG: i32 = 128;

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The daemon.
    Daemon,
    /// Root, for `gloveport status` and `doctor`.
    Root,
    /// Anybody else.
    Stranger,
}

/// A listening socket, and whether its file is ours to remove.
#[derive(Debug)]
pub struct Listener {
    /// The socket; accepting never blocks.
    pub socket: OwnedFd,
    made_here: bool,
}

impl Listener {
    /// Takes over the socket of `LISTEN_FDS`, or makes it.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(options: &Options) -> Result<Self, String> {
        let (socket, made_here) = match handed_over() {
            Some(number) => (take_over(number)?, false),
            None => (make(&options.paths.socket, options)?, true),
        };
        fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|errno| errno.desc())?;
        Ok(Self { socket, made_here })
    }

    /// Removes the file of a socket that was made here.
    pub fn remove(&self, path: &Path) {
        if self.made_here {
            // Gone already is as good.
            let _ = fs::remove_file(path);
        }
    }
}

/// Who connected. The kernel noted it at connect(2); it does not change any more.
pub fn peer(connection: &OwnedFd, daemon_uid: u32) -> Peer {
    match getsockopt(connection, PeerCredentials).map(|credentials| credentials.uid()) {
        Ok(uid) if uid == daemon_uid => Peer::Daemon,
        Ok(0) => Peer::Root,
        _ => Peer::Stranger,
    }
}

fn handed_over() -> Option<RawFd> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    (number("LISTEN_PID") == Some(std::process::id()) && number("LISTEN_FDS") >= Some(1)).then_some(FIRST)
}

fn take_over(number: RawFd) -> Result<OwnedFd, String> {
    let wrong = |what: &str| {
        format!(
            "descriptor {number} of LISTEN_FDS is {what}: expected a listening socket of ListenSequentialPacket="
        )
    };
    let socket = descriptors::inherited(number).map_err(|_| wrong("not open"))?;
    if getsockopt(&socket, SockTypeOption) != Ok(SockType::SeqPacket)
        || getsockopt(&socket, AcceptConn) != Ok(true)
    {
        return Err(wrong("something else"));
    }
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|errno| errno.desc())?;
    Ok(socket)
}

fn make(path: &Path, options: &Options) -> Result<OwnedFd, String> {
    let problem = |what: &str, errno: Errno| format!("{what} {}: {}", path.display(), errno.desc());
    let new = || {
        socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|errno| problem("making", errno))
    };
    let address = UnixAddr::new(path).map_err(|errno| problem("the path", errno))?;
    if fs::symlink_metadata(path).is_ok_and(|status| status.file_type().is_socket()) {
        if connect(new()?.as_raw_fd(), &address).is_ok() {
            return Err(format!("another helper listens at {}: stop it first", path.display()));
        }
        fs::remove_file(path).map_err(|error| format!("removing the stale {}: {error}", path.display()))?;
    }
    let socket = new()?;
    // Nobody can connect between bind and chown.
    let before = umask(Mode::from_bits_truncate(0o777));
    let bound = bind(socket.as_raw_fd(), &address);
    umask(before);
    bound.map_err(|errno| problem("binding", errno))?;
    if !options.same_user {
        chown(path, Some(Uid::from_raw(0)), Some(Gid::from_raw(options.daemon_gid)))
            .map_err(|errno| problem("giving the daemon's group", errno))?;
    }
    let mode = if options.same_user { 0o600 } else { 0o660 };
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| format!("setting the mode of {}: {error}", path.display()))?;
    let backlog = Backlog::new(BACKLOG).map_err(|errno| problem("listening at", errno))?;
    listen(&socket, backlog).map_err(|errno| problem("listening at", errno))?;
    Ok(socket)
}
