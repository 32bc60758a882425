#![forbid(unsafe_code)]
//! What the caller named on the file system, looked at as `run_as`: the kernel itself says what this account
//! may reach, and a descriptor is what is judged, not a name.

use super::stage::{Failure, Stage};
use gloveport_contract::plan::{PlannedDirectory, PlannedPath, is_under};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::fstat;
use std::fs;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

/// Enters the working directory.
///
/// # Errors
/// `cwd` with the errno, `cwd_roots` when it really lies elsewhere.
pub fn enter(directory: &PlannedDirectory<'_>) -> Result<(), Failure> {
    let failed = |errno: Errno| Failure { stage: Stage::Cwd, errno: errno as i32 };
    let fd = open(&directory.path, OFlag::O_DIRECTORY).map_err(failed)?;
    if !directory.roots.is_empty() && !lies_under(&fd, directory.roots) {
        return Err(Failure { stage: Stage::CwdRoots, errno: 0 });
    }
    nix::unistd::fchdir(&fd).map_err(failed)?;
    // A directory that was removed, or that is not below our root, has no absolute path (CVE-2024-21626).
    match nix::unistd::getcwd() {
        Ok(path) if path.is_absolute() => Ok(()),
        Ok(_) => Err(failed(Errno::ENOENT)),
        Err(errno) => Err(failed(errno)),
    }
}

/// Looks at the path parameters: each exists where it must, and really lies under its roots. What does not
/// exist yet is judged by the nearest directory above it that does. What changes afterwards is Landlock's.
///
/// # Errors
/// `path` with the errno, `path_roots`.
pub fn look(paths: &[PlannedPath<'_>]) -> Result<(), Failure> {
    for planned in paths {
        let candidates = Path::new(&planned.path).ancestors().filter_map(Path::to_str);
        let mut nearest = None;
        for path in candidates.take_while(|path| planned.roots.iter().any(|root| is_under(path, root))) {
            match open(path, OFlag::empty()) {
                Ok(fd) => {
                    nearest = Some(fd);
                    break;
                }
                Err(Errno::ENOENT) if !planned.must_exist => {}
                Err(errno) => return Err(Failure { stage: Stage::Path, errno: errno as i32 }),
            }
        }
        if nearest.is_some_and(|fd| !lies_under(&fd, planned.roots)) {
            return Err(Failure { stage: Stage::PathRoots, errno: 0 });
        }
    }
    Ok(())
}

/// Pins a path. A magic link (`/proc/PID/cwd`, `/proc/self/fd/N`) would lead out of all that is checked here.
fn open(path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(flags | OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, path, how)
}

/// Whether the real path lies under the real path of one of the roots.
fn lies_under(fd: &OwnedFd, roots: &[String]) -> bool {
    let Some(path) = real_path(fd) else {
        return false;
    };
    roots.iter().any(|root| {
        open(root, OFlag::empty())
            .ok()
            .and_then(|fd| real_path(&fd))
            .is_some_and(|root| is_under(&path, &root))
    })
}

/// The path of an open file; `None` for one that has been removed or is no UTF-8, which no root is.
fn real_path(fd: &impl AsFd) -> Option<String> {
    let fd = fd.as_fd();
    if fstat(fd).ok()?.st_nlink == 0 {
        return None;
    }
    fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gloveport-paths-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("root/inside")).unwrap();
        path
    }

    fn stage(path: &Path, roots: &[String], must_exist: bool) -> Option<Stage> {
        let path = path.to_str().unwrap().to_owned();
        look(&[PlannedPath { name: "p", path, roots, must_exist }]).err().map(|failure| failure.stage)
    }

    #[test]
    fn a_link_out_of_the_roots_is_found_by_where_it_leads() {
        let dir = scratch("escape");
        let roots = [dir.join("root").to_str().unwrap().to_owned()];
        symlink("/etc", dir.join("root/etc")).unwrap();
        symlink("inside", dir.join("root/link")).unwrap();
        assert_eq!(stage(&dir.join("root/inside"), &roots, true), None);
        assert_eq!(stage(&dir.join("root/link"), &roots, true), None);
        assert_eq!(stage(&dir.join("root/etc"), &roots, true), Some(Stage::PathRoots));
        assert_eq!(stage(&dir.join("root/etc/new"), &roots, false), Some(Stage::PathRoots));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_need_not_exist_is_judged_by_its_directory() {
        let dir = scratch("new");
        let roots = [dir.join("root").to_str().unwrap().to_owned()];
        assert_eq!(stage(&dir.join("root/inside/new"), &roots, false), None);
        assert_eq!(stage(&dir.join("root/inside/new"), &roots, true), Some(Stage::Path));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_magic_link_is_no_path() {
        let roots = ["/".to_owned()];
        assert_eq!(stage(Path::new("/proc/self/cwd/x"), &roots, true), Some(Stage::Path));
    }
}
