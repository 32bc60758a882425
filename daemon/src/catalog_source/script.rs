#![forbid(unsafe_code)]
//! Scripts become part of the catalogue: what a reviewer signs is the text itself, not a name on some disk.

use gloveport_contract::catalog::Script;
use gloveport_contract::limits;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Puts the script's text and digest into the action.
///
/// # Errors
/// The key and what is wrong with it.
pub(super) fn embed(script: &mut Script, source: &Path) -> Result<(), (&'static str, String)> {
    if script.body.is_some() {
        return Err(("script.body", "`catalog build` puts the text here; name the file by `file`".into()));
    }
    if script.sha256.is_some() {
        return Err(("script.sha256", "`catalog build` puts the digest here; leave it out".into()));
    }
    let name = script.file.as_str();
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err((
            "script.file",
            format!("`{name}`: name a file beside this one, without a directory and without a leading dot"),
        ));
    }
    let path = source.parent().unwrap_or(Path::new(".")).join(name);
    let body = text(&path).map_err(|problem| ("script.file", format!("{}: {problem}", path.display())))?;
    script.sha256 = Some(super::install::digest(body.as_bytes()));
    script.body = Some(body);
    Ok(())
}

/// The text of a regular file, within the limit of a script. A symbolic link is refused: the file that is
/// signed is the one that lies beside its action.
fn text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    if !fs::symlink_metadata(path).map_err(unreadable)?.is_file() {
        return Err("is no regular file".into());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(limits::SCRIPT as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > limits::SCRIPT {
        return Err(format!("is larger than {} bytes", limits::SCRIPT));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8".into())
}
