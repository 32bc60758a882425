#![forbid(unsafe_code)]
//! The listening sockets: handed over by a service manager, or bound by ourselves.

use crate::config::Config;
use crate::log::{self, Level};
use listenfd::ListenFd;
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

/// The sockets of `LISTEN_FDS`. They are numbers, and believing a number takes unsafe code: listenfd's.
fn handed_over() -> Result<Vec<UnixListener>, String> {
    let fail = |what: &dyn std::fmt::Display| format!("LISTEN_FDS: {what}");
    let mut handed = ListenFd::from_env();
    let mut listeners = Vec::new();
    for index in 0..handed.len() {
        let socket = handed.take_unix_listener(index).map_err(|error| fail(&error))?;
        let Some(listener) = socket else { continue };
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
