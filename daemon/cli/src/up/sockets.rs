#![forbid(unsafe_code)]
//! The two sockets, made by root and handed over: neither half needs the right to make them.

use super::Identity;
use crate::failure::Failure;
use crate::files;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

const BACKLOG: i32 = 128;

/// The helper's socket: only the daemon's group may connect.
///
/// # Errors
/// It cannot be made, or somebody listens there.
pub fn helper(path: &Path, identity: &Identity) -> Result<OwnedFd, Failure> {
    make(path, SocketType::SEQPACKET, 0o660, Some(identity.account.gid))
}

/// The daemon's socket for local users: everybody may connect, and the kernel says who it is.
///
/// # Errors
/// It cannot be made, or somebody listens there.
pub fn mcp(path: &Path) -> Result<OwnedFd, Failure> {
    make(path, SocketType::STREAM, 0o666, None)
}

fn make(path: &Path, kind: SocketType, mode: u32, gid: Option<u32>) -> Result<OwnedFd, Failure> {
    let failed = |error: io::Error| files::denied("make the socket", path, &error);
    let new = || socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).map_err(io::Error::from);
    let address = SocketAddrUnix::new(path).map_err(|_| {
        Failure::new(format!("{}: too long for the name of a socket (107 bytes)", path.display()))
            .remedy("name a shorter directory with --state DIR")
    })?;
    if path.exists() {
        if connect(&new().map_err(failed)?, &address).is_ok() {
            return Err(Failure::new(format!("somebody listens on {}", path.display()))
                .remedy("end that program, or name another directory with --state DIR"));
        }
        // Left behind by a program that was killed.
        fs::remove_file(path).map_err(failed)?;
    }
    let socket = new().map_err(failed)?;
    let made = (|| {
        bind(&socket, &address)?;
        // Before it listens nobody can connect, whatever the umask made of its mode.
        chown(path, None, gid)?;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(listen(&socket, BACKLOG)?)
    })();
    made.map_err(failed)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("gloveport-socket-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let first = mcp(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        assert!(mcp(&path).unwrap_err().what().contains("somebody listens"));
        drop(first);
        mcp(&path).unwrap();
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_name_that_is_too_long_is_refused_with_its_limit() {
        let path = std::env::temp_dir().join("x".repeat(120));
        assert!(mcp(&path).unwrap_err().what().contains("too long"));
    }
}
