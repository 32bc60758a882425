#![forbid(unsafe_code)]
//! The directory of calls that wait for a person: root's alone. The helper writes what waits, root renames
//! decisions into it, and the daemon, which is another user, can do neither.

use crate::trusted_file::{self, Problem, TrustedFileError};
use gloveport_contract::approval::{DECISION, Decision, Pending};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Makes the directory where there is none, and empties it: nothing waits for a helper that has just started.
///
/// # Errors
/// It is not root's alone, or cannot be made.
pub fn prepare(directory: &Path) -> Result<(), String> {
    let problem = |error: io::Error| format!("{}: {error}", directory.display());
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(problem(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(directory).map_err(problem)?;
    if !found.is_dir() || found.uid() != 0 || found.mode() & 0o077 != 0 {
        let shown = directory.display();
        return Err(format!("{shown} is not root's alone: chown root {shown} && chmod 0700 {shown}"));
    }
    for entry in fs::read_dir(directory).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.is_file() {
            fs::remove_file(&path).map_err(problem)?;
        }
    }
    Ok(())
}

/// Shows what waits; a reader sees the whole file or none.
///
/// # Errors
/// It cannot be written.
pub fn show(directory: &Path, waiting: &Pending) -> io::Result<()> {
    let new = directory.join(format!(".new-{}", waiting.id));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec_pretty(waiting)?)?;
    fs::rename(&new, shown(directory, &waiting.id))
}

/// The decision about what waits under this id, if there is one.
///
/// # Errors
/// There is something that is no decision of root's.
pub fn decision(directory: &Path, id: &str) -> Result<Option<Decision>, String> {
    let path = decided(directory, id);
    match trusted_file::read(&path, DECISION, false) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(decision) => Ok(Some(decision)),
            Err(error) => Err(format!("{} is no decision: {error}", path.display())),
        },
        Err(TrustedFileError { problem: Problem::Missing, .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Removes what stands under this id. What is not held cannot be decided about.
pub fn forget(directory: &Path, id: &str) {
    for path in [shown(directory, id), decided(directory, id)] {
        // Not being there is what is wanted.
        let _ = fs::remove_file(path);
    }
}

fn shown(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.json"))
}

fn decided(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.decision"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gloveport-pending-{}-{name}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        path
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = scratch("open");
        fs::write(directory.join("old.json"), "").unwrap();
        assert_eq!(prepare(&directory), Ok(()));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(prepare(&directory).unwrap_err().contains("not root's alone"));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_is_no_decision_of_roots_is_none() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = scratch("decision");
        assert_eq!(decision(&directory, "1"), Ok(None));
        let path = decided(&directory, "1");
        fs::write(&path, r#"{"answer":"approve","digest":"d","by":"root","reason":""}"#).unwrap();
        assert_eq!(decision(&directory, "1").unwrap().unwrap().digest, "d");
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        assert!(decision(&directory, "1").is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "yes").unwrap();
        assert!(decision(&directory, "1").unwrap_err().contains("no decision"));
        forget(&directory, "1");
        assert_eq!(decision(&directory, "1"), Ok(None));
        fs::remove_dir_all(directory).unwrap();
    }
}
