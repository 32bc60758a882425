#![forbid(unsafe_code)]
//! Opening declared paths so that nobody but root decides where they lead.
//!
//! The common case is one openat2(2) without symbolic links. Where there are some (a merged /usr has several),
//! they are followed by hand, and each must be root's in a directory of root's: who owns a directory on the
//! way of a declared path could otherwise point it at anything.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Most symbolic links on one path: the kernel's own limit.
const LINKS: usize = 40;

/// Whether a file of this owner is as good as our own: root's, or with `--same-user` the helper's user's.
pub fn is_ours(uid: u32) -> bool {
    uid == 0 || uid == nix::unistd::geteuid().as_raw()
}

/// Opens a path without following a symbolic link that is not root's.
///
/// # Errors
/// `ELOOP` for such a link or too many, `EPERM` never; else those of open(2).
pub fn open(path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    match open_without_links(path, flags) {
        Err(Errno::ELOOP) => open_without_links(&real_path(path)?, flags),
        result => result,
    }
}

/// Opens a path on which there is no symbolic link at all.
///
/// # Errors
/// `ELOOP` where there is one; else those of open(2).
pub fn open_without_links(path: &Path, flags: OFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, path, how)
}

/// The path without symbolic links, every one of which was root's.
///
/// # Errors
/// `ELOOP` for a link of somebody else or too many, `EINVAL` for a path that is not absolute, `ENOENT`.
pub fn real_path(path: &Path) -> Result<PathBuf, Errno> {
    if !path.is_absolute() {
        return Err(Errno::EINVAL);
    }
    let mut real = PathBuf::from("/");
    let mut pending = parts(path);
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(part);
        let status = fs::symlink_metadata(&next).map_err(|error| errno(&error))?;
        if !status.is_symlink() {
            real = next;
            continue;
        }
        links += 1;
        let directory = fs::symlink_metadata(&real).map_err(|error| errno(&error))?;
        if links > LINKS || !is_ours(status.uid()) || !is_ours(directory.uid()) {
            return Err(Errno::ELOOP);
        }
        let target = fs::read_link(&next).map_err(|error| errno(&error))?;
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        pending.extend(parts(&target));
    }
    Ok(real)
}

/// The parts of a path, last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<OsString> = path
        .components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .map(|part| part.as_os_str().to_owned())
        .collect();
    parts.reverse();
    parts
}

/// The number of an error of the standard library.
pub fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gloveport-resolve-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn links_are_followed_to_the_real_path() {
        let dir = scratch("follow");
        fs::create_dir_all(dir.join("real/deep")).unwrap();
        symlink("real", dir.join("link")).unwrap();
        symlink("../link/deep", dir.join("real/up")).unwrap();
        assert_eq!(real_path(&dir.join("link/up")), Ok(dir.join("real/deep")));
        assert!(open(&dir.join("link/up"), OFlag::O_PATH).is_ok());
        assert_eq!(open_without_links(&dir.join("link"), OFlag::O_PATH).unwrap_err(), Errno::ELOOP);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_circle_of_links_ends() {
        let dir = scratch("circle");
        symlink("b", dir.join("a")).unwrap();
        symlink("a", dir.join("b")).unwrap();
        assert_eq!(real_path(&dir.join("a")), Err(Errno::ELOOP));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_link_of_somebody_else_is_not_followed() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let dir = scratch("owner");
        symlink("/etc", dir.join("a")).unwrap();
        std::os::unix::fs::lchown(dir.join("a"), Some(65534), None).unwrap();
        assert_eq!(real_path(&dir.join("a")), Err(Errno::ELOOP));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_magic_link_is_never_followed() {
        assert_eq!(open_without_links(Path::new("/proc/self/cwd"), OFlag::O_PATH).unwrap_err(), Errno::ELOOP);
    }

    #[test]
    fn a_path_that_is_missing_or_relative_has_no_real_path() {
        assert_eq!(real_path(Path::new("/no/such/path")), Err(Errno::ENOENT));
        assert_eq!(real_path(Path::new("etc")), Err(Errno::EINVAL));
    }
}
