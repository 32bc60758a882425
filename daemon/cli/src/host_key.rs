#![forbid(unsafe_code)]
//! The host's own signing key, and its line among the trusted signers.

use crate::catalog::signing::{NAMESPACE, SSH_KEYGEN, cannot_start};
use crate::failure::Failure;
use crate::files;
use gloveportd::paths::Paths;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// The name of the host's own key among the signers.
const PRINCIPAL: &str = "host";

/// Makes the key if there is none, and the trusted signers name it. Returns whether it was made.
///
/// # Errors
/// ssh-keygen is missing or refuses, or a file cannot be written.
pub fn ensure(paths: &Paths) -> Result<bool, Failure> {
    let key = paths.host_key.as_path();
    let is_new = !key.exists();
    if is_new {
        // A comment would carry the name of whoever ran this into a file that is public to the host.
        let empty = OsStr::new("");
        let arguments = ["-q", "-t", "ed25519"].map(OsStr::new);
        let rest = [OsStr::new("-N"), empty, OsStr::new("-C"), empty, OsStr::new("-f"), key.as_os_str()];
        ssh_keygen(&[arguments.as_slice(), rest.as_slice()].concat(), key)?;
    }
    trust(paths, &public_half(key)?)?;
    Ok(is_new)
}

/// Type and public half of a private key, as `trusted_signers` has them.
///
/// # Errors
/// ssh-keygen is missing, or cannot read the key.
pub fn public_half(key: &Path) -> Result<String, Failure> {
    let output = ssh_keygen(&[OsStr::new("-y"), OsStr::new("-f"), key.as_os_str()], key)?;
    // Type and key, without the comment.
    let fields: Vec<&str> = output.split_whitespace().take(2).collect();
    Ok(fields.join(" "))
}

fn trust(paths: &Paths, public: &str) -> Result<(), Failure> {
    let path = &paths.trusted_signers;
    let mut text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(files::denied("read", path, &error)),
    };
    if text.lines().any(|line| !line.trim_start().starts_with('#') && line.contains(public)) {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{PRINCIPAL} namespaces=\"{NAMESPACE}\" {public}\n"));
    files::replace(path, text.as_bytes(), 0o644, None)
}

fn ssh_keygen(arguments: &[&OsStr], key: &Path) -> Result<String, Failure> {
    let output =
        Command::new(SSH_KEYGEN).args(arguments).stdin(Stdio::null()).output().map_err(cannot_start)?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(Failure::new(format!("{SSH_KEYGEN} cannot use {}: {reason}", key.display())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_trusted_once_beside_others() {
        let directory = std::env::temp_dir().join(format!("gloveport-key-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        files::directory(&directory, 0o755).unwrap();
        let paths = Paths::for_state(&directory);
        fs::write(&paths.trusted_signers, "# ours\nalice ssh-ed25519 AAAA").unwrap();
        assert!(ensure(&paths).unwrap());
        let key = fs::read(&paths.host_key).unwrap();
        assert!(!ensure(&paths).unwrap());
        assert_eq!(fs::read(&paths.host_key).unwrap(), key);
        let signers = fs::read_to_string(&paths.trusted_signers).unwrap();
        let lines: Vec<&str> = signers.lines().collect();
        assert_eq!(lines[..2], ["# ours", "alice ssh-ed25519 AAAA"]);
        assert!(lines[2].starts_with("host namespaces=\"gloveport-catalog\" ssh-ed25519 "), "{signers}");
        assert_eq!(lines.len(), 3);
        fs::remove_dir_all(directory).unwrap();
    }
}
