#![forbid(unsafe_code)]
//! `gloveport catalog sign`, by way of ssh-keygen(1): agents, passphrases and hardware keys work, and no
//! private-key code is ours.

use super::{bytes, parse, review, verify};
use crate::failure::{Failure, Outcome};
use crate::out;
use gloveportd::catalog_source::install;
use gloveportd::paths::Paths;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The SSHSIG namespace of catalogues.
pub const NAMESPACE: &str = "gloveport-catalog";

/// Signs a catalogue, and puts one of the host into force.
pub(super) fn run(file: Option<&Path>, key: Option<&Path>, paths: &Paths) -> Outcome {
    let named = file.unwrap_or(&paths.catalog);
    let placed = install::placed_digest(&paths.config_dir, named);
    let file = match &placed {
        Some(digest) => install::placed_path(&paths.config_dir, digest),
        None => named.to_path_buf(),
    };
    let catalog = bytes(&file)?;
    let reviewed = parse(&file, &catalog)?;
    let digest = install::digest(&catalog);
    if placed.as_ref().is_some_and(|named| *named != digest) {
        return Err(Failure::new(format!("{} was changed after it was built", file.display()))
            .remedy("build it again"));
    }
    review::before_signing(&reviewed, placed.is_some().then_some(&paths.catalog))?;
    sign(key.unwrap_or(&paths.host_key), &file)?;
    out::line(signature_of(&file).display());
    out::note(format_args!("signed SHA-256 {digest}"));
    if placed.is_none() {
        return Ok(0);
    }
    match verify::check(&file, &paths.trusted_signers, paths) {
        Ok(output) if !output.status.success() => {
            return Err(Failure::new(format!(
                "signed, but not put into force: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ))
            .remedy(format!("a line of {} names each key that may sign", paths.trusted_signers.display())));
        }
        Ok(_) => {}
        Err(failure) => out::note(format_args!("not verified: {}", failure.what())),
    }
    install::activate(&paths.config_dir, &digest)
        .map_err(|error| Failure::new(format!("signed, but it cannot be put into force: {error}")))?;
    out::note(format_args!("in force: {}", paths.catalog.display()));
    Ok(0)
}

/// Where the signature of a catalogue lies.
pub fn signature_of(file: &Path) -> PathBuf {
    with_suffix(file, ".sig")
}

/// A file of the same name and more.
pub(super) fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Signs a file and writes the signature beside it. A public key signs through ssh-agent.
///
/// # Errors
/// There is no ssh-keygen, it refuses, or the signature cannot be written.
pub fn sign(key: &Path, file: &Path) -> Result<(), Failure> {
    if !key.exists() {
        return Err(Failure::new(format!("there is no signing key {}", key.display()))
            .remedy("name yours with --key FILE, or make one: gloveport catalog keygen"));
    }
    let input = File::open(file)
        .map_err(|error| Failure::new(format!("{} cannot be read: {error}", file.display())))?;
    // Through stdin and stdout, for ssh-keygen asks before it replaces a signature file.
    let output = Command::new(SSH_KEYGEN)
        .args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(key)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .map_err(cannot_start)?;
    if !output.status.success() || !output.stdout.starts_with(b"-----BEGIN SSH SIGNATURE-----") {
        return Err(Failure::new(format!("{SSH_KEYGEN} did not sign with {}", key.display())));
    }
    let signature = signature_of(file);
    install::write(&signature, &output.stdout)
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", signature.display())))
}

/// The program that makes keys and signatures.
pub const SSH_KEYGEN: &str = "ssh-keygen";

/// The failure that it is not there.
pub fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("{SSH_KEYGEN} cannot be started: {error}"))
        .remedy("install the package openssh-client (Debian) or openssh (Fedora)")
}
