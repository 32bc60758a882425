#![forbid(unsafe_code)]
//! The listening sockets: handed over by a service manager, or bound by ourselves.

use crate::config::Config;
use crate::log::{self, Level};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

/// What the daemon listens on.
pub struct Sockets {
    /// TCP, behind tokens.
    pub tcp: Vec<TcpListener>,
    /// Local users, known by the kernel.
    pub unix: Vec<UnixListener>,
    /// Metrics, for anybody who can connect.
    pub metrics: Option<TcpListener>,
}

impl Sockets {
    /// Takes what was handed over, and binds TCP if there is a token: without one nobody could call (U7).
    ///
    /// # Errors
    /// The socket that cannot be used, and why.
    pub fn open(config: &Config, tokens: bool) -> Result<Self, String> {
        let unix = handed_over()?;
        let tcp = if tokens { bind(&config.listen)? } else { Vec::new() };
        let metrics = bind(config.metrics_listen.as_slice())?.pop();
        Ok(Self { tcp, unix, metrics })
    }

    /// Whether nobody could call.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.unix.is_empty()
    }
}

/// The sockets of `LISTEN_FDS`.
///
/// They are numbers, and to believe a number takes unsafe code. The kernel does it for us: it copies the
/// descriptor out of our own process, or says that there is none.
fn handed_over() -> Result<Vec<UnixListener>, String> {
    let fail = |what: &dyn std::fmt::Display| format!("LISTEN_FDS: {what}");
    let numbers = sd_notify::listen_fds().map_err(|error| fail(&error))?;
    let mut listeners = Vec::new();
    for number in numbers {
        let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| fail(&errno))?;
        let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty())
            .map_err(|errno| fail(&format_args!("descriptor {number} (pidfd_getfd): {errno}")))?;
        let family = rustix::net::sockopt::socket_domain(&socket);
        let listens = rustix::net::sockopt::socket_acceptconn(&socket);
        if family != Ok(rustix::net::AddressFamily::UNIX) || listens != Ok(true) {
            return Err(fail(&format_args!("descriptor {number} is no listening Unix socket")));
        }
        let listener = UnixListener::from(socket);
        listener.set_nonblocking(true).map_err(|error| fail(&error))?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Binds all addresses. A host without IPv6 does not have `[::1]`: then the others must do.
fn bind(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, String> {
    let mut listeners = Vec::new();
    for address in addresses {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        match bound {
            Ok(listener) => listeners.push(listener),
            Err(error)
                if address.is_ipv6()
                    && addresses.len() > 1
                    && error.kind() == ErrorKind::AddrNotAvailable =>
            {
                log::write(Level::Info, format_args!("{address} is not there on this host: {error}"));
            }
            Err(error) => {
                return Err(format!(
                    "cannot listen on {address}: {error}. Another program may hold the port; choose one \
                     with --listen, or `listen` in daemon.toml"
                ));
            }
        }
    }
    Ok(listeners)
}
