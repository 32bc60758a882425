#![forbid(unsafe_code)]
//! How a host is named: as ssh(1) knows it, with a user and a port where needed.

use std::str::FromStr;

/// A host behind ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name as it was given: what the client sees.
    pub name: String,
    /// `[user@]host`, as ssh takes it; the host may be an alias of its configuration.
    pub destination: String,
    /// The port, where the name holds one.
    pub port: Option<u16>,
}

impl FromStr for Target {
    type Err = String;

    /// Reads `web1`, `ops@db1:2222` or `ops@[::1]:2222`.
    fn from_str(name: &str) -> Result<Self, String> {
        let (user, place) = match name.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, name),
        };
        let (host, port) = split_port(place)?;
        // A word that begins with a dash would be an option of ssh. The rest are the characters that names,
        // addresses and aliases are made of; none of them means anything to a shell.
        let is_plain = |text: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
        };
        if !is_plain(host) || user.is_some_and(|user| !is_plain(user)) {
            return Err("a host is written as web1, ops@db1:2222 or ops@[::1]:2222".to_owned());
        }
        let destination = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
        Ok(Self { name: name.to_owned(), destination, port })
    }
}

/// A bare IPv6 address has colons of its own: only brackets tell its port.
fn split_port(place: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or_default())),
        None => match place.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (place, None),
        },
    };
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{port}` is no port: write 1 to 65535")),
    });
    Ok((host, port.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_ssh_knows_them_are_read() {
        for (name, destination, port) in [
            ("web1", "web1", None),
            ("ops@db1:2222", "ops@db1", Some(2222)),
            ("::1", "::1", None),
            ("ops@[fe80::1%eth0]:22", "ops@fe80::1%eth0", Some(22)),
            ("[::1]", "::1", None),
        ] {
            let target: Target = name.parse().unwrap();
            assert_eq!((target.destination.as_str(), target.port), (destination, port), "{name}");
            assert_eq!(target.name, name);
        }
    }

    #[test]
    fn what_ssh_or_a_shell_could_take_for_something_else_is_refused() {
        for name in [
            "",
            "-oProxyCommand=id",
            "ops@-oProxyCommand=id",
            "-l@host",
            "a b",
            "a;id",
            "a$(id)",
            "host:0",
            "host:x",
            "host:65536",
            "[::1]x",
            "@host",
            "a\nb",
            "a/b",
        ] {
            assert!(name.parse::<Target>().is_err(), "{name:?}");
        }
    }
}
