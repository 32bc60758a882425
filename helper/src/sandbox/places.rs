#![forbid(unsafe_code)]
//! Which paths a program gets: the base, what the sandbox declares, the program itself.

use super::landlock::{Grant, Place};
use super::program::Program;
use super::resolve;
use gloveport_contract::catalog::{Base, ListScope, NetworkClass, Sandbox};
use gloveport_contract::plan::is_under;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{SFlag, fstat};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What every program may read, beside libraries. Each may be absent on a host without a word: what a
/// distribution does not have, its programs do not need.
const MINIMAL: &[&str] = &["/etc/ld.so.cache", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// What the base `system` adds. Not here: /var/log, /var/lib, /run, /tmp, homes, /usr/bin, other /usr/lib.
const SYSTEM: &[&str] = &[
    "/usr/lib/locale",
    "/usr/lib/os-release",
    "/usr/lib/file",
    "/usr/lib/terminfo",
    "/usr/share",
    "/etc",
    "/proc",
    "/sys",
    "/run/utmp",
    "/run/udev/data",
];
/// What name resolution reads. The base `system` has /etc anyway; the minimal base gets these files alone.
const RESOLVER: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/run/systemd/resolve",
];
/// Where the sockets of system services live.
const SYSTEM_SOCKETS: &[&str] = &["/run/systemd", "/run/dbus"];

/// What was declared, opened.
#[derive(Debug, Default)]
pub struct Declared {
    /// The paths that exist.
    pub places: Vec<Place>,
    /// Optional ones that do not.
    pub absent: Vec<String>,
}

/// Opens the declared paths of a sandbox. `protected` are the directories of the helper itself, which no
/// program with uid 0 may be given, nor anything that covers them.
///
/// # Errors
/// A path that is missing, that somebody else's link leads to, or that is protected.
pub fn declared(sandbox: &Sandbox, uid: u32, protected: &[PathBuf]) -> Result<Declared, String> {
    let mut found = Declared::default();
    let kinds = [(&sandbox.read, Grant::Read), (&sandbox.write, Grant::Write)];
    for (declared, grant) in
        kinds.into_iter().flat_map(|(paths, grant)| paths.iter().map(move |p| (p, grant)))
    {
        let (path, optional) = Sandbox::optional_path(declared);
        if uid == 0 {
            refuse_protected(path, protected)?;
        }
        match open(Path::new(path), grant) {
            Ok(place) => found.places.push(place),
            Err(Errno::ENOENT | Errno::ENOTDIR) if optional => found.absent.push(path.to_owned()),
            Err(Errno::ELOOP) => {
                return Err(format!("{path}: a symbolic link on the way does not belong to root"));
            }
            Err(errno) => {
                let hint =
                    if errno == Errno::ENOENT { "; write \"?…\" where it may be absent" } else { "" };
                return Err(format!("{path}: {}{hint}", errno.desc()));
            }
        }
    }
    Ok(found)
}

/// Uid 0 needs no capability to read what belongs to root.
fn refuse_protected(path: &str, protected: &[PathBuf]) -> Result<(), String> {
    let real = resolve::real_path(Path::new(path)).unwrap_or_else(|_| PathBuf::from(path));
    let real = real.to_string_lossy();
    match protected.iter().find(|own| {
        let own = own.to_string_lossy();
        is_under(&own, &real) || is_under(&real, &own)
    }) {
        Some(own) => Err(format!("{path}: uid 0 would reach {}, which is gloveport's own", own.display())),
        None => Ok(()),
    }
}

/// Opens the base of a sandbox: what is there of it.
pub fn base(sandbox: &Sandbox, uid: u32, libraries: &[PathBuf]) -> Vec<Place> {
    let system = sandbox.base == Base::System && uid != 0;
    let mut wanted: Vec<(&Path, Grant)> =
        libraries.iter().map(|path| (path.as_path(), Grant::Read)).collect();
    let mut read =
        |paths: &[&'static str]| wanted.extend(paths.iter().map(|path| (Path::new(*path), Grant::Read)));
    read(MINIMAL);
    if system {
        read(SYSTEM);
    }
    if sandbox.network.classes().contains(&NetworkClass::Dns) {
        read(RESOLVER);
    }
    if sandbox.network.has_unix() {
        read(SYSTEM_SOCKETS);
        wanted.push((Path::new("/"), Grant::Resolve));
    }
    wanted.push((Path::new("/dev/null"), Grant::Write));
    if sandbox.list == ListScope::Everywhere {
        wanted.push((Path::new("/"), Grant::List));
    }
    wanted.into_iter().filter_map(|(path, grant)| open(path, grant).ok()).collect()
}

/// Opens a program and its loader for execution.
///
/// # Errors
/// When one of them has gone since it was found.
pub fn executable(program: &Program) -> Result<Vec<Place>, String> {
    std::iter::once(&program.path)
        .chain(&program.loader)
        .map(|path| {
            open(path, Grant::Execute).map_err(|errno| format!("{}: {}", path.display(), errno.desc()))
        })
        .collect()
}

fn open(path: &Path, grant: Grant) -> Result<Place, Errno> {
    let fd = resolve::open(path, OFlag::O_PATH)?;
    let kind = SFlag::from_bits_truncate(fstat(&fd)?.st_mode & SFlag::S_IFMT.bits());
    Ok(Place { fd, directory: kind == SFlag::S_IFDIR, grant })
}

/// The directories of shared libraries on this host, without links and doubles.
pub fn library_directories() -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let mut named: Vec<PathBuf> = ["/lib", "/usr/lib"].map(|base| Path::new(base).join(&triplet)).to_vec();
    named.extend(["/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"].map(PathBuf::from));
    let configurations =
        fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|entry| entry.path());
    for file in std::iter::once(PathBuf::from("/etc/ld.so.conf")).chain(configurations) {
        let text = fs::read_to_string(file).unwrap_or_default();
        named.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    let too_wide =
        |path: &Path| ["/", "/usr", "/lib", "/usr/lib", "/opt"].iter().any(|wide| path == Path::new(wide));
    let real: BTreeSet<PathBuf> = named
        .iter()
        .filter_map(|path| resolve::real_path(path).ok())
        .filter(|path| !too_wide(path))
        .collect();
    real.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(paths: &[&str]) -> Sandbox {
        Sandbox { read: paths.iter().map(|path| (*path).to_owned()).collect(), ..Sandbox::default() }
    }

    #[test]
    fn an_optional_path_may_be_absent_and_is_listed_any_other_is_an_error() {
        let found = declared(&reading(&["?/no/such", "/etc"]), 1000, &[]).unwrap();
        assert_eq!(found.absent, ["/no/such"]);
        assert_eq!(found.places.len(), 1);
        let error = declared(&reading(&["/no/such"]), 1000, &[]).unwrap_err();
        assert!(error.starts_with("/no/such: "), "{error}");
    }

    #[test]
    fn uid_0_is_not_given_what_covers_the_helpers_own_files() {
        let own = [PathBuf::from("/etc/gloveport")];
        for path in ["/etc", "/", "/etc/gloveport", "/etc/gloveport/credentials/db"] {
            assert!(declared(&reading(&[path]), 0, &own).is_err(), "{path}");
        }
        assert!(declared(&reading(&["/etc/passwd"]), 0, &own).is_ok());
        assert!(declared(&reading(&["/etc"]), 1000, &own).is_ok());
    }

    #[test]
    fn uid_0_gets_the_minimal_base() {
        let system = base(&Sandbox::default(), 1000, &[]).len();
        let for_root = base(&Sandbox::default(), 0, &[]).len();
        assert!(for_root < system);
    }

    #[test]
    fn no_library_directory_is_all_of_usr() {
        let found = library_directories();
        assert!(!found.is_empty());
        assert!(found.iter().all(|path| path.components().count() >= 3), "{found:?}");
    }
}
