#![forbid(unsafe_code)]
//! Tells the service manager how far we are (sd_notify(3)): one datagram, no library.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Ready to serve, with a sentence for `systemctl status`.
pub fn ready(status: &str) {
    send(&format!("READY=1\nSTATUS={}", one_line(status)));
}

/// A sentence for `systemctl status`.
pub fn status(text: &str) {
    send(&format!("STATUS={}", one_line(text)));
}

/// A reload has begun; [`ready`] ends it. systemd matches it with the signal by the monotonic clock.
pub fn reloading() {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from);
    let microseconds = now.map_or(0, |now| now.as_micros());
    send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
}

/// The end has begun.
pub fn stopping() {
    send("STOPPING=1");
}

/// A newline would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn send(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send_to(name.as_bytes(), state) {
        crate::log::warning(format_args!("NOTIFY_SOCKET: the service manager cannot be told: {error}"));
    }
}

fn send_to(name: &[u8], state: &str) -> std::io::Result<()> {
    let address = match name.split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(Path::new(std::ffi::OsStr::from_bytes(name)))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abstract_socket_hears_the_state() {
        let name = format!("gloveport-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send_to(format!("@{name}").as_bytes(), "READY=1").unwrap();
        let mut buffer = [0; 32];
        let length = manager.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_error_and_no_panic() {
        assert!(send_to(b"/nonexistent/notify", "READY=1").is_err());
        assert!(send_to(b"", "READY=1").is_err());
    }

    #[test]
    fn a_status_cannot_smuggle_an_assignment() {
        assert_eq!(one_line("a\nMAINPID=1"), "a MAINPID=1");
    }
}
