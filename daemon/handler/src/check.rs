#![forbid(unsafe_code)]
//! `gloveport-handler --check NAME CONFIGURATION`: whether a server can be reached and logged in at, and whether
//! the account there may do more than the handler asks for. `gloveport doctor` starts it, as the account of the
//! action. The credential is stdin, so that whoever starts this opens the file and does not read it.

use crate::answer::Answer;
use crate::credential::Credential;
use crate::failure::Failure;
use crate::{mysql_query, net, redis_command};
use gloveport_contract::catalog::BuiltinConfig;
use serde::Serialize;
use serde_json::json;
use std::io::Read;
use std::net::IpAddr;

/// Largest credential, bytes, as the helper has it.
const CREDENTIAL: u64 = 64 * 1024;

/// One thing that was found. It holds nothing of the credential but the account's name.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `ok` or `warn`; what does not work at all is an error of the whole check.
    status: &'static str,
    /// What was found, and why it matters.
    pub detail: String,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn ok(detail: impl Into<String>) -> Self {
        Self { status: "ok", detail: detail.into(), remedy: None }
    }

    /// It works, and deserves a look.
    pub fn warn(detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: "warn", detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

/// Answers `--check`.
///
/// # Errors
/// The credential is none, or the server cannot be reached or refuses the account.
pub fn run(name: &str, configuration: &str) -> Result<Answer, Failure> {
    let config: BuiltinConfig = serde_json::from_str(configuration)
        .map_err(|error| Failure::configuration(format!("the configuration: {error}")))?;
    let credential = match &config.credential {
        None => Credential::default(),
        Some(name) => Credential::parse(name, &stdin()?)?,
    };
    let mut findings: Vec<Finding> = exposed(&config, &credential).into_iter().collect();
    findings.extend(match name {
        "mysql_query" => mysql_query::account::examine(&config, credential)?,
        "redis_command" => redis_command::account::examine(&config, &credential)?,
        other => {
            return Err(Failure::configuration(format!("`{other}` takes no credential: nothing to check")));
        }
    });
    Ok(Answer::new(json!({ "findings": findings })))
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(CREDENTIAL).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| Failure::system("the credential on stdin", error))
}

/// A connection that others on its way could read.
fn exposed(config: &BuiltinConfig, credential: &Credential) -> Option<Finding> {
    let server = config.server.as_deref().unwrap_or_default();
    let host = net::host_of(server);
    let is_here = server.starts_with('/')
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    (!is_here && credential.ca.is_none()).then(|| {
        Finding::warn(
            format!("{server} is another host and the credential has no `ca`: what is asked and answered travels unencrypted"),
            "let the server speak TLS, and name its authority: ca = \"/etc/gloveport/tls/ca.pem\"",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_host_without_tls_is_exposed() {
        let found = |server: &str, ca: Option<&str>| {
            let config = BuiltinConfig { server: Some(server.into()), ..BuiltinConfig::default() };
            exposed(&config, &Credential { ca: ca.map(str::to_owned), ..Credential::default() }).is_some()
        };
        assert!(found("db.example.net:3306", None) && found("10.0.0.7:6379", None));
        assert!(!found("db.example.net:3306", Some("/etc/gloveport/tls/ca.pem")));
        for here in ["/run/mysqld/mysqld.sock", "localhost:3306", "127.0.0.1:6379", "[::1]:6379"] {
            assert!(!found(here, None), "{here}");
        }
    }
}
