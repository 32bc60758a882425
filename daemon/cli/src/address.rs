#![forbid(unsafe_code)]
//! Where this host's daemon can be reached over TCP.

use gloveportd::config::Config;
use gloveportd::paths::Paths;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The file in which `gloveport up` notes the URL of its daemon: its port may be one that the kernel chose.
pub fn note_of(paths: &Paths) -> PathBuf {
    paths.run_dir.join("endpoint")
}

/// The URL of the daemon: the one that `gloveport up` noted, else the first of its settings.
pub fn of_daemon(paths: &Paths) -> String {
    if let Ok(noted) = fs::read_to_string(note_of(paths)) {
        return noted.trim().to_owned();
    }
    let listen = Config::load(&paths.daemon_config).unwrap_or_default().listen;
    let default = Config::default().listen;
    listen.first().or(default.first()).map(|address| url(*address)).unwrap_or_default()
}

/// The URL of the protocol at an address.
pub fn url(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}
