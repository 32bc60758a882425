#![forbid(unsafe_code)]
//! The daemon's command line.

use crate::paths::Paths;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
gloveportd: the unprivileged half of gloveport. It speaks MCP and asks gloveport-helper.

Usage: gloveportd [--state DIR] [--config FILE] [--listen ADDR:PORT]... [--same-user]

  --state DIR          one directory in place of /etc/gloveport and /run/gloveport
                       (also by GLOVEPORT_STATE)
  --config FILE        settings (default: daemon.toml in /etc/gloveport or the state directory)
  --listen ADDR:PORT   TCP address; replaces those of the settings, may be repeated
  --same-user          accept a helper that runs as this user: no trust boundary, for a first look
  --version            the version
";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Serve.
    Serve(Options),
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

/// How to serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The state directory.
    pub state: Option<PathBuf>,
    /// The settings, where they are not at their place.
    pub config: Option<PathBuf>,
    /// TCP addresses; empty: those of the settings.
    pub listen: Vec<SocketAddr>,
    /// Whether a helper of our own user is accepted.
    pub same_user: bool,
}

impl Options {
    /// The paths that these options mean.
    pub fn paths(&self) -> Paths {
        Paths::from_env_or(self.state.clone())
    }
}

/// Reads the arguments, without the program's name.
///
/// # Errors
/// The argument and what is wrong with it.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut options = Options::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().ok_or_else(|| format!("{argument:?}: not UTF-8"))?;
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        let takes_value = matches!(name, "--state" | "--config" | "--listen");
        if !takes_value && attached.is_some() {
            return Err(format!("{name}: takes no value"));
        }
        let mut value = || {
            let value = attached.clone().or_else(|| arguments.next());
            value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{name}: a value is missing"))
        };
        match name {
            "--state" => options.state = Some(value()?.into()),
            "--config" => options.config = Some(value()?.into()),
            "--listen" => options.listen.push(address(&value()?)?),
            "--same-user" => options.same_user = true,
            "--help" | "-h" => return Ok(Command::Help),
            "--version" => return Ok(Command::Version),
            _ => return Err(format!("{text}: unknown argument; see gloveportd --help")),
        }
    }
    Ok(Command::Serve(options))
}

fn address(value: &OsString) -> Result<SocketAddr, String> {
    value.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        format!("--listen {value:?}: write an address and a port, as 127.0.0.1:8010 or [::1]:8010")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Command, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn every_argument_is_understood_in_both_forms() {
        let expected = Options {
            state: Some("/s".into()),
            config: Some("/c".into()),
            listen: vec!["127.0.0.1:0".parse().expect("address"), "[::1]:1".parse().expect("address")],
            same_user: true,
        };
        let separate = ["--state", "/s", "--config", "/c", "--listen", "127.0.0.1:0", "--listen", "[::1]:1"];
        assert_eq!(read(&[&separate[..], &["--same-user"]].concat()), Ok(Command::Serve(expected.clone())));
        let attached =
            ["--same-user", "--state=/s", "--config=/c", "--listen=127.0.0.1:0", "--listen=[::1]:1"];
        assert_eq!(read(&attached), Ok(Command::Serve(expected)));
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (arguments, expected) in [
            (&["--stat", "/s"][..], "--stat: unknown"),
            (&["--state"], "--state: a value"),
            (&["--state="], "--state: a value"),
            (&["--listen", "localhost:1"], "--listen"),
            (&["--same-user=yes"], "--same-user: takes no value"),
            (&["extra"], "extra: unknown"),
        ] {
            assert!(read(arguments).expect_err("refused").starts_with(expected), "{arguments:?}");
        }
    }

    #[test]
    fn help_and_version_are_answers() {
        assert_eq!((read(&["--help"]), read(&["--version"])), (Ok(Command::Help), Ok(Command::Version)));
    }
}
