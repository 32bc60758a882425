#![forbid(unsafe_code)]
//! `daemon.toml`: the daemon's settings.

use gloveport_contract::units::{Bytes, Millis};
use serde::Deserialize;
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port of UFO's LinuxAgent server, whose clients find us there.
pub const PORT: u16 = 8010;

/// The settings, with the default of each that the file leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// TCP addresses of the MCP endpoint. Default: `127.0.0.1:8010` and `[::1]:8010`.
    pub listen: Vec<SocketAddr>,
    /// Whether `listen` may name other addresses than loopback ones.
    pub allow_remote: bool,
    /// Host names that are accepted beside the loopback ones, without a port.
    pub allowed_hosts: Vec<String>,
    /// Origins that are accepted beside the loopback ones, as `https://host:port`.
    pub allowed_origins: Vec<String>,
    /// Connections at once, over all listeners.
    pub max_connections: usize,
    /// MCP sessions at once.
    pub max_sessions: usize,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// Largest body of a request, bytes.
    pub body_limit: usize,
    /// Where Prometheus may fetch metrics. Default: nowhere.
    pub metrics_listen: Option<SocketAddr>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
                SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), PORT),
            ],
            allow_remote: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_connections: 512,
            max_sessions: 256,
            header_timeout: Duration::from_secs(30),
            body_limit: 4 * 1024 * 1024,
            metrics_listen: None,
        }
    }
}

/// The file as written. Unknown keys are errors: a mistyped limit is no limit.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<OneOrMany>,
    allow_remote: bool,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    max_connections: Option<usize>,
    max_sessions: Option<usize>,
    header_timeout: Option<Millis>,
    body_limit: Option<Bytes>,
    metrics_listen: Option<SocketAddr>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an address such as \"127.0.0.1:8010\", or a list of them")]
enum OneOrMany {
    One(SocketAddr),
    Many(Vec<SocketAddr>),
}

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    file: PathBuf,
    problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.problem)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads the file. A missing file is all defaults.
    ///
    /// # Errors
    /// The file cannot be read; or the line, the key and what is wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let fail = |problem| ConfigError { file: path.to_path_buf(), problem };
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(fail),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => {
                Err(fail(format!("{error}. The daemon's user must be able to read it (root:gloveport 0640)")))
            }
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The line, the key and what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let default = Self::default();
        let count = |key: &str, value: Option<usize>, default: usize| match value {
            Some(0) => Err(format!("{key}: must be at least 1")),
            given => Ok(given.unwrap_or(default)),
        };
        let body_limit = file.body_limit.map(|bytes| usize::try_from(bytes.0).unwrap_or(usize::MAX));
        Ok(Self {
            listen: match file.listen {
                None => default.listen,
                Some(OneOrMany::One(address)) => vec![address],
                Some(OneOrMany::Many(addresses)) => addresses,
            },
            allow_remote: file.allow_remote,
            allowed_hosts: file.allowed_hosts,
            allowed_origins: file.allowed_origins,
            max_connections: count("max_connections", file.max_connections, default.max_connections)?,
            max_sessions: count("max_sessions", file.max_sessions, default.max_sessions)?,
            header_timeout: match file.header_timeout {
                Some(Millis(0)) => return Err("header_timeout: must be longer than 0".into()),
                Some(Millis(time)) => Duration::from_millis(time),
                None => default.header_timeout,
            },
            body_limit: count("body_limit", body_limit, default.body_limit)?,
            metrics_listen: file.metrics_listen,
        })
    }

    /// Makes sure that no address beyond this host is listened on unless that was asked for.
    ///
    /// # Errors
    /// The address, and the setting that would permit it.
    pub fn check_listen(&self) -> Result<(), String> {
        let remote = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        match self.listen.iter().chain(&self.metrics_listen).find(remote) {
            Some(address) if !self.allow_remote => Err(format!(
                "{address} is not a loopback address: other hosts could reach it. Set `allow_remote = true` \
                 in daemon.toml if that is meant, and put TLS in front of it"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_all_defaults() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
        assert_eq!(Config::load(Path::new("/nonexistent/daemon.toml")), Ok(Config::default()));
    }

    #[test]
    fn every_key_is_read() {
        let config = Config::parse(
            "listen = [\"127.0.0.1:0\"]\nallow_remote = true\nallowed_hosts = [\"box\"]\n\
             allowed_origins = [\"https://box\"]\nmax_connections = 7\nmax_sessions = 8\n\
             header_timeout = \"5s\"\nbody_limit = \"1MiB\"\nmetrics_listen = \"127.0.0.1:9100\"\n",
        )
        .expect("valid");
        assert_eq!(config.listen, ["127.0.0.1:0".parse().expect("address")]);
        assert_eq!((config.max_connections, config.max_sessions), (7, 8));
        assert_eq!((config.header_timeout, config.body_limit), (Duration::from_secs(5), 1 << 20));
        assert!(config.allow_remote && config.metrics_listen.is_some());
    }

    #[test]
    fn a_mistyped_key_is_named_with_its_line() {
        let error = Config::parse("max_sessions = 3\nmax_conections = 9\n").expect_err("unknown key");
        assert!(error.contains("line 2") && error.contains("max_conections"), "{error}");
    }

    #[test]
    fn a_limit_of_zero_is_refused() {
        for text in
            ["max_connections = 0", "max_sessions = 0", "body_limit = \"0\"", "header_timeout = \"0s\""]
        {
            assert!(Config::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_beyond_this_host_takes_a_setting() {
        for (listen, allow, ok) in [
            ("127.0.0.1:8010", false, true),
            ("[::1]:8010", false, true),
            ("127.9.9.9:1", false, true),
            ("0.0.0.0:8010", false, false),
            ("[::]:8010", false, false),
            ("[::ffff:10.0.0.1]:8010", false, false),
            ("10.0.0.1:8010", true, true),
        ] {
            let config =
                Config::parse(&format!("listen = \"{listen}\"\nallow_remote = {allow}")).expect("valid");
            assert_eq!(config.check_listen().is_ok(), ok, "{listen} {allow}");
        }
    }
}
