#![forbid(unsafe_code)]
//! The sandbox of a built-in handler, derived from its signed configuration: the roots it may read or
//! write and the port it must reach. Nobody has to write a sandbox block for a handler, or can get it wrong.

use super::{Action, Base, Builtin, BuiltinConfig, ListScope, Network, NetworkClass, Sandbox};

impl Action {
    /// All sandboxes that it may use, its own one first.
    pub fn sandboxes(&self) -> Vec<Sandbox> {
        let steps = self.steps.iter().flatten().filter_map(|step| step.sandbox.clone());
        let rules = self
            .builtin_config
            .iter()
            .flat_map(|config| config.rules())
            .filter_map(|rule| rule.sandbox.clone());
        let own = match self.builtin {
            Some(builtin) if builtin != Builtin::Command => builtin.sandbox(self.builtin_config.as_ref()),
            _ => self.sandbox.clone(),
        };
        std::iter::once(own).chain(steps).chain(rules).collect()
    }
}

impl Builtin {
    /// The sandbox that this handler needs with that configuration.
    pub fn sandbox(self, config: Option<&BuiltinConfig>) -> Sandbox {
        let mut sandbox = Sandbox { base: Base::Minimal, list: ListScope::Declared, ..Sandbox::default() };
        let Some(config) = config else {
            return sandbox;
        };
        match self {
            Self::Command => {}
            Self::LogSearch => sandbox.read = roots(&config.roots),
            Self::ReadFile => sandbox.read = roots(&config.read),
            Self::WriteFile => {
                // What is there is read for a diff, a backup and the attributes that are kept.
                sandbox.read = roots(&config.write);
                sandbox.write = roots(&config.write);
            }
            Self::MysqlQuery | Self::RedisCommand => {
                sandbox.network = server(config.server.as_deref().unwrap_or_default());
                sandbox.read = certificates();
            }
            Self::HttpGet => {
                let mut ports: Vec<u16> =
                    config.url_prefixes.iter().filter_map(|url| url_port(url)).collect();
                ports.sort_unstable();
                ports.dedup();
                sandbox.network = Network::Classes(vec![NetworkClass::Dns, NetworkClass::Connect(ports)]);
                sandbox.read = certificates();
            }
        }
        sandbox
    }
}

/// Name resolution, the system's certificate authorities, and certificates that a credential names.
fn certificates() -> Vec<String> {
    [
        "?/etc/ssl/certs",
        "?/etc/pki",
        "?/etc/gloveport/tls",
        "?/usr/share/ca-certificates",
        "?/etc/resolv.conf",
        "?/etc/hosts",
        "?/etc/nsswitch.conf",
        "?/etc/host.conf",
        "?/etc/gai.conf",
        "?/run/systemd/resolve",
    ]
    .map(String::from)
    .to_vec()
}

/// The directories above the first wildcard of each root or glob. Each may be absent on a host: the
/// handler says so when it is asked for.
fn roots(declared: &[String]) -> Vec<String> {
    let mut found: Vec<String> = declared.iter().map(|glob| format!("?{}", fixed_part(glob))).collect();
    found.sort();
    found.dedup();
    found
}

/// The leading directories of a glob that hold no wildcard: `/home/ops` of `/home/ops/**`.
pub fn fixed_part(glob: &str) -> &str {
    match glob.find(['*', '?', '[', '{']) {
        None => glob,
        Some(wildcard) => {
            let before = glob.get(..wildcard).unwrap_or(glob);
            let end = before.rfind('/').unwrap_or(0);
            before.get(..end).filter(|path| !path.is_empty()).unwrap_or("/")
        }
    }
}

/// `host:port` is a port and, for a name, its resolution; a path is a Unix socket.
fn server(server: &str) -> Network {
    if server.starts_with('/') {
        return Network::Classes(vec![NetworkClass::Unix]);
    }
    let Some((host, port)) = server.rsplit_once(':') else {
        return Network::None;
    };
    let Ok(port) = port.parse::<u16>() else {
        return Network::None;
    };
    let mut classes = vec![NetworkClass::Connect(vec![port])];
    if host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err() {
        classes.insert(0, NetworkClass::Dns);
    }
    Network::Classes(classes)
}

/// The port of an `http` or `https` URL.
fn url_port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let default = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    match authority.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.parse().ok(),
        _ => Some(default),
    }
}
