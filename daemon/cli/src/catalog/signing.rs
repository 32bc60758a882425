#![forbid(unsafe_code)]
//! `gloveport catalog sign`, by way of ssh-keygen(1): agents, passphrases and hardware keys work, and no
//! private-key code is ours.

use super::{bytes, parse, review, verify};
use crate::failure::{Failure, Outcome};
use crate::out;
use gloveportd::catalog_source::install;
use gloveportd::paths::Paths;
use std::fs;
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
    review::before_signing(&reviewed, placed.is_some().then_some(&paths.catalog));
    let signature = signature(key.unwrap_or(&paths.host_key), &file)?;
    if placed.is_some() {
        try_out(&catalog, &signature, paths)?;
    }
    write(&file, &signature)?;
    out::line(signature_of(&file).display());
    out::note(format_args!("signed SHA-256 {digest}"));
    if placed.is_some() {
        install::activate(&paths.config_dir, &digest)
            .map_err(|error| Failure::new(format!("signed, but it cannot be put into force: {error}")))?;
        out::note(format_args!(
            "{} leads to it; the helper takes it over when it reloads: systemctl reload gloveport-helper",
            paths.catalog.display()
        ));
    }
    Ok(0)
}

/// Lets the helper judge the pair before anything is replaced: a signature that does not count must not
/// take the place of one that does.
fn try_out(catalog: &[u8], signature: &[u8], paths: &Paths) -> Result<(), Failure> {
    let directory = paths.catalogs.join(".trial");
    let file = directory.join(install::CATALOG);
    fs::create_dir_all(&directory)
        .and_then(|()| install::write(&file, catalog))
        .and_then(|()| install::write(&signature_of(&file), signature))
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", directory.display())))?;
    let judged = verify::check(&file, &paths.trusted_signers, paths);
    let _ = fs::remove_dir_all(&directory);
    match judged {
        Ok(Err(reason)) => Err(Failure::new(format!("not signed, and nothing was changed: {reason}"))
            .remedy(format!("each key that may sign has a line in {}", paths.trusted_signers.display()))),
        Ok(Ok(_)) => Ok(()),
        Err(failure) => {
            out::note(format_args!("not verified: {}", failure.what()));
            Ok(())
        }
    }
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
    write(file, &signature(key, file)?)
}

fn write(file: &Path, signature: &[u8]) -> Result<(), Failure> {
    let place = signature_of(file);
    install::write(&place, signature)
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", place.display())))
}

/// The signature of a file, in armour.
fn signature(key: &Path, file: &Path) -> Result<Vec<u8>, Failure> {
    if !key.exists() {
        return Err(Failure::new(format!("there is no signing key {}", key.display()))
            .remedy("name yours with --key FILE, or make one: gloveport catalog keygen"));
    }
    let input = fs::File::open(file)
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
    if output.status.success() && output.stdout.starts_with(b"-----BEGIN SSH SIGNATURE-----") {
        Ok(output.stdout)
    } else {
        Err(Failure::new(format!("{SSH_KEYGEN} did not sign with {}", key.display())))
    }
}

/// The program that makes keys and signatures.
pub const SSH_KEYGEN: &str = "ssh-keygen";

/// The failure that it is not there.
pub fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format!("{SSH_KEYGEN} cannot be started: {error}"))
        .remedy("install the package openssh-client (Debian) or openssh (Fedora)")
}
