#![forbid(unsafe_code)]
//! Files that both halves trust: replaced as a whole, with an owner and a mode; and who else could write.

use crate::accounts;
use crate::failure::Failure;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Replaces a file as a whole: a reader sees the old one or the new one. The file belongs to the caller and
/// to the group `gid`.
///
/// # Errors
/// What could not be written, and why.
pub fn replace(path: &Path, bytes: &[u8], mode: u32, gid: Option<u32>) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".new-{name}"));
    let written = (|| {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        fchown(&file, None, gid)?;
        // After the owner: a change of owner may clear bits, and the umask took some at creation.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    })();
    written.map_err(|error| denied("write", path, &error))
}

/// Makes a directory if there is none, with that mode.
///
/// # Errors
/// It cannot be made, or something else has its name.
pub fn directory(path: &Path, mode: u32) -> Result<(), Failure> {
    let made = match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => Ok(()),
            _ => Err(error),
        },
        other => other,
    };
    made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
        .map_err(|error| denied("make the directory", path, &error))
}

/// A failure to do something with a path, with the way out where it is privilege that lacks.
pub fn denied(action: &str, path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot {action} {}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
            failure.remedy("run it as root (sudo), or name a state directory of your own with --state DIR")
        }
        io::ErrorKind::NotFound => failure.remedy(
            "is gloveport set up here? `gloveport init` prepares a host; --state DIR names a directory",
        ),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::StorageFull => {
            failure.remedy("free or remount the file system")
        }
        _ => failure,
    }
}

/// Holds a directory against other `gloveport` commands until it is dropped.
///
/// # Errors
/// The directory cannot be opened.
pub fn lock(directory: &Path) -> Result<File, Failure> {
    let file = File::open(directory).map_err(|error| denied("open", directory, &error))?;
    flock(&file, FlockOperation::LockExclusive).map_err(|error| denied("lock", directory, &error.into()))?;
    Ok(file)
}

/// Why a path is not safe from other users: some part of it belongs to somebody else, or others may write
/// there. `owner` is whose it should be, root's always may. A sticky directory of root's, as `/tmp` is, is
/// accepted on the way.
pub fn exposed(path: &Path, owner: u32) -> Option<String> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => return Some(format!("{}: {error}", path.display())),
    };
    let parts: Vec<&Path> = real.ancestors().collect();
    parts.into_iter().rev().find_map(|part| exposure(part, owner, part == real))
}

fn exposure(part: &Path, owner: u32, is_last: bool) -> Option<String> {
    let shown = part.display();
    let found = match fs::symlink_metadata(part) {
        Ok(found) => found,
        Err(error) => return Some(format!("{shown}: {error}")),
    };
    let mode = found.mode();
    if found.uid() != 0 && found.uid() != owner {
        let whose = accounts::name_of(found.uid());
        return Some(format!("{shown} belongs to {whose}; it should belong to {}", accounts::name_of(owner)));
    }
    let sticky = !is_last && found.is_dir() && mode & 0o1000 != 0 && found.uid() == 0;
    if mode & 0o022 != 0 && !sticky {
        return Some(format!("{shown} may be written by others (mode {:04o})", mode & 0o7777));
    }
    None
}

/// The first directory on the way to `path` that other users cannot pass through.
pub fn closed_parent(path: &Path) -> Option<PathBuf> {
    let parents: Vec<&Path> = path.ancestors().skip(1).collect();
    let closed = parents
        .into_iter()
        .rev()
        .find(|parent| fs::metadata(parent).is_ok_and(|found| found.mode() & 0o001 == 0))?;
    Some(closed.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gloveport-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        directory(&path, 0o755).unwrap();
        path
    }

    #[test]
    fn a_replaced_file_has_its_new_content_and_mode() {
        let directory = scratch("replace");
        let file = directory.join("tokens.json");
        replace(&file, b"one", 0o600, None).unwrap();
        replace(&file, b"two", 0o640, None).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn what_others_can_write_is_exposed_and_a_sticky_parent_is_not() {
        let me = rustix::process::getuid().as_raw();
        let directory = scratch("exposed");
        assert_eq!(exposed(&directory, me), None);
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        assert!(exposed(&directory, me).unwrap().contains("may be written by others"));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_closed_parent_is_found() {
        let directory = scratch("closed");
        assert_eq!(closed_parent(&directory.join("x")), None);
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed_parent(&directory.join("x/y")), Some(directory.clone()));
        fs::remove_dir_all(directory).unwrap();
    }
}
