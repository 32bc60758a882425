#![forbid(unsafe_code)]
//! Where a catalogue lies on a host, and how a new one comes into force.
//!
//! ```text
//! CONFIG/catalogs/DIGEST/catalog.json        what `catalog build` wrote
//! CONFIG/catalogs/DIGEST/catalog.json.sig    what `catalog sign` added
//! CONFIG/catalogs/built   -> DIGEST          the newest build
//! CONFIG/catalogs/current -> DIGEST          what is in force
//! CONFIG/catalog.json     -> catalogs/current/catalog.json
//! CONFIG/catalog.json.sig -> catalogs/current/catalog.json.sig
//! ```
//!
//! Catalogue and signature change together, by the one rename that replaces `current`. Whoever reads the
//! pair sees the old one or the new one, never one file of each.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// File name of a catalogue.
pub const CATALOG: &str = "catalog.json";
/// File name of its signature.
pub const SIGNATURE: &str = "catalog.json.sig";
const CATALOGS: &str = "catalogs";
const CURRENT: &str = "current";
const BUILT: &str = "built";

/// The digest of a catalogue: lower-case hexadecimal SHA-256 of the file's bytes.
pub fn digest(bytes: &[u8]) -> String {
    gloveport_contract::catalog::hex(&hmac_sha256::Hash::hash(bytes))
}

/// Writes a catalogue to its place under a configuration directory, as its newest build. It is not in force
/// before it is signed and [`activate`]d.
///
/// Returns the path of its `catalog.json`.
///
/// # Errors
/// The directory cannot be written.
pub fn place(config: &Path, json: &str) -> io::Result<PathBuf> {
    let digest = digest(json.as_bytes());
    let catalogs = config.join(CATALOGS);
    let directory = catalogs.join(&digest);
    fs::create_dir_all(&directory)?;
    // The daemon reads here as its own user, whatever the umask of who builds.
    for public in [&catalogs, &directory] {
        fs::set_permissions(public, Permissions::from_mode(0o755))?;
    }
    let file = directory.join(CATALOG);
    write(&file, json.as_bytes())?;
    switch(&catalogs.join(BUILT), Path::new(&digest))?;
    Ok(file)
}

/// Puts the catalogue of that digest into force, together with its signature.
///
/// # Errors
/// The pair is not complete, or the links cannot be written.
pub fn activate(config: &Path, digest: &str) -> io::Result<()> {
    let catalogs = config.join(CATALOGS);
    for name in [CATALOG, SIGNATURE] {
        fs::metadata(catalogs.join(digest).join(name))?;
    }
    switch(&catalogs.join(CURRENT), Path::new(digest))?;
    for name in [CATALOG, SIGNATURE] {
        let through = Path::new(CATALOGS).join(CURRENT).join(name);
        if fs::read_link(config.join(name)).is_ok_and(|target| target == through) {
            continue;
        }
        switch(&config.join(name), &through)?;
    }
    Ok(())
}

/// The digest of a file that lies under a configuration directory as [`place`] puts it, and `None` for any
/// other file. For the name of what is in force ([`CATALOG`] itself) it is the newest build's.
pub fn placed_digest(config: &Path, file: &Path) -> Option<String> {
    let catalogs = fs::canonicalize(config.join(CATALOGS)).ok()?;
    let in_force = fs::canonicalize(config).ok()?.join(CATALOG);
    let named = std::path::absolute(file).ok()?;
    let parent = fs::canonicalize(named.parent()?).ok()?;
    let real = if parent.join(named.file_name()?) == in_force {
        fs::canonicalize(catalogs.join(BUILT).join(CATALOG)).ok()?
    } else {
        fs::canonicalize(&named).ok()?
    };
    let directory = real.parent()?;
    let is_placed = directory.parent()? == catalogs && real.file_name()? == CATALOG;
    is_placed.then(|| directory.file_name()?.to_str().map(str::to_owned))?
}

/// The place of a catalogue of that digest.
pub fn placed_path(config: &Path, digest: &str) -> PathBuf {
    config.join(CATALOGS).join(digest).join(CATALOG)
}

/// Replaces a file as a whole, world-readable: a catalogue is public to the host.
///
/// # Errors
/// The directory cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write;
    let new = free(path)?;
    // Newly made, never followed: the directory may be one where others write too.
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Points a link somewhere else, by one rename.
fn switch(link: &Path, target: &Path) -> io::Result<()> {
    let new = free(link)?;
    symlink(target, &new)?;
    fs::rename(&new, link)
}

/// A free name in the same directory, for what will be renamed.
fn free(path: &Path) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".new-");
    name.push(path.file_name().unwrap_or_default());
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(new),
    }
}
