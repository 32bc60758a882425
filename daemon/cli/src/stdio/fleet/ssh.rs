#![forbid(unsafe_code)]
//! The engine: OpenSSH's own client, so that its configuration, agents, jump hosts, hardware keys and shared
//! connections work as they do by hand.

use super::target::Target;
use crate::out;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The command at the other end. A forced command of `authorized_keys` takes its place.
const REMOTE: [&str; 2] = ["gloveport", "stdio"];
/// ssh's own exit code for everything that failed on its side.
const SSH_FAILED: i32 = 255;
/// A shell's exit code for a program that it cannot find.
const NOT_FOUND: i32 = 127;
/// Longest reason that is told, characters.
const REASON: usize = 600;

/// How ssh is called.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// A configuration in place of the user's.
    pub config: Option<PathBuf>,
    /// How long a connection may take from the start to the first answer of gloveport.
    pub connect: Duration,
}

impl Ssh {
    /// The command for one connection. What is given on the command line comes before any configuration,
    /// so no configuration can make ssh ask a question, accept an unknown host key or forward anything.
    pub fn command(&self, target: &Target) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-T");
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        let connect = format!("ConnectTimeout={}", self.connect.as_secs().max(1));
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "EscapeChar=none",
            "ConnectionAttempts=1",
            // A connection that died without a word is noticed within 15 seconds.
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            // A banner is no error.
            "LogLevel=ERROR",
            connect.as_str(),
        ] {
            command.args(["-o", option]);
        }
        if let Some(port) = target.port {
            command.args(["-p", &port.to_string()]);
        }
        command.arg("--").arg(&target.destination).args(REMOTE);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Why a connection ended: what ssh said, and how to see it by hand.
    pub fn reason(&self, target: &Target, status: Option<ExitStatus>, stderr: &str) -> String {
        let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // The last two lines: what is wrong and what follows. Before them stands advice such as to forget a key.
        let said = out::printable(&lines.get(lines.len().saturating_sub(2)..).unwrap_or_default().join("; "));
        let said: String = said.chars().take(REASON).collect();
        let what = match (status.and_then(|status| status.code()), said.as_str()) {
            (Some(NOT_FOUND), _) => {
                "gloveport is not installed there, or not in the PATH of that user".into()
            }
            (Some(SSH_FAILED), "") => "the connection was lost".to_owned(),
            (_, "") => "the other end closed the connection".to_owned(),
            (_, said) => said.to_owned(),
        };
        format!("{what} (try by hand: {})", self.by_hand(target))
    }

    fn by_hand(&self, target: &Target) -> String {
        let config = self.config.iter().map(|config| format!(" -F {}", config.display()));
        let port = target.port.iter().map(|port| format!(" -p {port}"));
        let options: String = config.chain(port).collect();
        format!("ssh{options} {} {} </dev/null", target.destination, REMOTE.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh() -> Ssh {
        Ssh { config: None, connect: Duration::from_secs(15) }
    }

    #[test]
    fn nothing_of_the_configuration_can_weaken_the_connection() {
        let command = ssh().command(&"ops@db1:2222".parse().unwrap());
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        for option in ["BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=15", "ForwardAgent=no"] {
            assert!(words.iter().any(|word| word == option), "{words:?}");
        }
        assert!(words.ends_with(&["-p", "2222", "--", "ops@db1", "gloveport", "stdio"].map(String::from)));
    }

    #[test]
    fn a_reason_is_what_ssh_said_and_cannot_move_a_cursor() {
        let target = "ops@db1".parse().unwrap();
        let reason = ssh().reason(
            &target,
            None,
            "remove it with: ...\nx\n\nHost key\u{1b}[2J verification failed.\r\n",
        );
        assert_eq!(
            reason,
            "x; Host key\\u{1b}[2J verification failed. (try by hand: ssh ops@db1 gloveport stdio </dev/null)"
        );
        assert!(ssh().reason(&target, None, "").starts_with("the other end closed the connection"));
    }
}
