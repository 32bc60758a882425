#![forbid(unsafe_code)]
//! `gloveport catalog keygen`.

use super::signing::{NAMESPACE, SSH_KEYGEN, cannot_start, with_suffix};
use crate::failure::{Failure, Outcome};
use crate::{host_key, out};
use gloveportd::paths::Paths;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Makes a key: the host's own, or one at a place of its own, which ssh-keygen asks about.
pub(super) fn run(file: Option<&Path>, hardware: bool, paths: &Paths) -> Outcome {
    let Some(file) = file else {
        let made = host_key::ensure(paths)?;
        let verb = if made { "made" } else { "was there already" };
        out::note(format_args!(
            "{} {verb}; trusted by {}",
            paths.host_key.display(),
            paths.trusted_signers.display()
        ));
        return Ok(0);
    };
    if file.exists() {
        return Err(Failure::new(format!("{} exists; a key is never replaced", file.display()))
            .remedy("name another file, or remove it first"));
    }
    let kind = if hardware { "ed25519-sk" } else { "ed25519" };
    let status = Command::new(SSH_KEYGEN)
        .args(["-q", "-t", kind, "-C", "", "-f"])
        .arg(file)
        .status()
        .map_err(cannot_start)?;
    let public = with_suffix(file, ".pub");
    let line = fs::read_to_string(&public).ok().filter(|_| status.success());
    let Some(line) = line else {
        return Err(Failure::new(format!("{SSH_KEYGEN} made no key {}", file.display())));
    };
    out::note(format_args!(
        "on each host that shall trust it, add this line to {}:",
        paths.trusted_signers.display()
    ));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let principal: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    out::line(format_args!("{principal} namespaces=\"{NAMESPACE}\" {}", line.trim()));
    Ok(0)
}
