#![forbid(unsafe_code)]
//! The server of a database handler, and the credential for it.

use super::{Problem, problem};
use crate::catalog::{BuiltinConfig, is_name};
use crate::plan::is_absolute_path;
use crate::url::Url;

/// Checks both keys.
pub(super) fn check(config: &BuiltinConfig) -> Result<(), Problem> {
    if let Some(server) = &config.server {
        check_server(server)?;
    }
    match config.credential.as_deref().filter(|name| !is_name(name)) {
        Some(name) => problem(
            "builtin_config.credential",
            format!("`{name}` is no file name of /etc/gloveport/credentials: 1 to 64 of A-Z a-z 0-9 . _ -"),
        ),
        None => Ok(()),
    }
}

fn check_server(server: &str) -> Result<(), Problem> {
    let reachable = if server.starts_with('/') {
        is_absolute_path(server)
    } else {
        // An authority with a port of its own: a path would not end there, and no other scheme is needed.
        let has_port =
            server.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
        has_port && !server.contains('/') && Url::parse(&format!("http://{server}")).is_ok()
    };
    if reachable {
        Ok(())
    } else {
        problem("builtin_config.server", format!("`{server}` is neither host:port nor the path of a socket"))
    }
}
