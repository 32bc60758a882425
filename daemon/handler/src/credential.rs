#![forbid(unsafe_code)]
//! A database credential, as the helper hands it over by descriptor.

use crate::call::Call;
use crate::failure::Failure;
use serde::Deserialize;

/// The keys of a credential file. It has no `Debug`: a secret is not to be printed by accident.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// Account; of Redis the ACL user, absent for its `default` user.
    pub user: Option<String>,
    /// Password; absent where the server knows the account by the socket's peer.
    pub password: Option<String>,
    /// Certificates that the server's must lead to: a path, or PEM text. Its presence asks for TLS.
    pub ca: Option<String>,
    /// The client's certificate chain: a path, or PEM text.
    pub cert: Option<String>,
    /// The key of `cert`: a path, or PEM text.
    pub key: Option<String>,
}

impl Credential {
    /// The action's credential, or an empty one where the action names none.
    ///
    /// # Errors
    /// The descriptor is missing, or its content is no credential. The message holds none of the content.
    pub fn receive(call: &Call) -> Result<Self, Failure> {
        let Some(name) = &call.config.credential else {
            return Ok(Self::default());
        };
        Self::parse(name, &call.credential()?)
    }

    /// Reads a credential file's content.
    ///
    /// # Errors
    /// It is no credential. The message holds none of it.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Failure> {
        // The parser's own message would quote the line that it dislikes.
        let credential: Self = toml::from_slice(bytes).map_err(|_| {
            Failure::configuration(format!(
                "the credential `{name}` is not TOML with user, password, ca, cert, key as strings"
            ))
        })?;
        match (&credential.cert, &credential.key) {
            (Some(_), None) | (None, Some(_)) => Err(Failure::configuration(format!(
                "the credential `{name}` has only one of cert and key: a client certificate needs both"
            ))),
            _ if credential.cert.is_some() && credential.ca.is_none() => {
                Err(Failure::configuration(format!(
                    "the credential `{name}` has a client certificate and no ca: name the authority of the server"
                )))
            }
            _ => Ok(credential),
        }
    }
}
