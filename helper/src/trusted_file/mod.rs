#![forbid(unsafe_code)]
//! Reads a file that nobody but root can have written.
//!
//! The path is walked from `/` by descriptor, and every directory and symbolic link on the way must be
//! root's, so that what is checked is what is read. The file itself is opened so that neither a FIFO nor a
//! lease can hold us up, and its size is bounded by what is read, not by what `stat` said.

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Largest credential, bytes: a key and its certificates fit.
const CREDENTIAL: usize = 64 * 1024;
/// Most symbolic links on one path, as the kernel has it for itself within a factor.
const LINKS: usize = 8;
const FILE_FLAGS: OFlag =
    OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC).union(OFlag::O_NOCTTY);
const DIRECTORY_FLAGS: OFlag =
    OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Why a file is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFileError {
    /// The file or the directory on the way to it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file or a directory on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It does not exist.
    Missing,
    /// It cannot be opened or read.
    System(Errno),
    /// The path is not absolute.
    Relative,
    /// It is no regular file.
    NotRegular,
    /// It belongs to that uid.
    Owner(u32),
    /// Group or others may write to it; its permission bits.
    Writable(u32),
    /// It is larger than so many bytes.
    TooLarge(usize),
    /// A directory on the way belongs to that uid.
    DirectoryOwner(u32),
    /// Others may write to a directory on the way; its permission bits.
    DirectoryWritable(u32),
    /// A symbolic link where none may be.
    Link,
    /// A symbolic link that belongs to that uid.
    LinkOwner(u32),
    /// More symbolic links than a sane path has.
    TooManyLinks,
    /// A credential that more than its owner could read; its permission bits.
    CredentialMode(u32),
    /// A credential with more than one name.
    CredentialNames,
}

impl fmt::Display for TrustedFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.problem {
            Problem::Missing => write!(f, "{path} does not exist"),
            Problem::System(errno) => write!(f, "{path} cannot be read: {}", errno.desc()),
            Problem::Relative => write!(f, "{path} is not an absolute path"),
            Problem::NotRegular => write!(f, "{path} is not a regular file"),
            Problem::Owner(uid) => write!(f, "{path} belongs to uid {uid}: chown root {path}"),
            Problem::Writable(mode) => {
                write!(f, "{path} has mode {mode:04o}, so others than root may change it: chmod go-w {path}")
            }
            Problem::TooLarge(limit) => write!(f, "{path} is larger than {limit} bytes"),
            Problem::DirectoryOwner(uid) => {
                write!(
                    f,
                    "the directory {path} belongs to uid {uid}, who could exchange what is in it: chown root {path}"
                )
            }
            Problem::DirectoryWritable(mode) => {
                write!(
                    f,
                    "the directory {path} has mode {mode:04o}, so others than root may exchange what is in it: chmod go-w {path}"
                )
            }
            Problem::Link => write!(f, "{path} is a symbolic link: put the file itself there"),
            Problem::LinkOwner(uid) => {
                write!(f, "the symbolic link {path} belongs to uid {uid}: let root make it")
            }
            Problem::TooManyLinks => write!(f, "{path} leads through more than {LINKS} symbolic links"),
            Problem::CredentialMode(mode) => {
                write!(
                    f,
                    "{path} has mode {mode:04o}; a credential has 0600 or 0400: setfacl -b {path}; chmod 600 {path}"
                )
            }
            Problem::CredentialNames => {
                write!(f, "{path} has other names too (hard links); a credential has one: copy it anew")
            }
        }
    }
}

impl std::error::Error for TrustedFileError {}

/// Reads a file of at most `limit` bytes. It belongs to root (with `same_user` also to our own uid), only
/// its owner may write to it, and the same holds for every directory and symbolic link on the way; a
/// sticky directory of root's, such as `/tmp`, may be writable, for there others cannot rename our files.
///
/// # Errors
/// The first thing that is not so, with the way to mend it.
pub fn read(path: &Path, limit: usize, same_user: bool) -> Result<Vec<u8>, TrustedFileError> {
    let (file, stat, path) = open(path, Owners::new(same_user), true, OFlag::O_RDONLY)?;
    check_writers(&path, &stat)?;
    read_all(file, &path, limit)
}

/// Opens a file of ours to read and write it, with `append` only at its end; makes it, for our eyes only,
/// where there is none. The rules are those of [`read`].
///
/// # Errors
/// The first thing that is not so, with the way to mend it.
pub fn open_own(path: &Path, append: bool, same_user: bool) -> Result<File, TrustedFileError> {
    let mode = if append { OFlag::O_RDWR | OFlag::O_APPEND } else { OFlag::O_RDWR };
    let (file, stat, path) = open(path, Owners::new(same_user), true, mode | OFlag::O_CREAT)?;
    check_writers(&path, &stat)?;
    Ok(file)
}

/// Reads a credential: the rules of [`read`], and besides it has mode 0600 or 0400 exactly, one name, no
/// symbolic link as its last part and at most 64 KiB. An access control list that lets anybody else in
/// shows in the group's bits of the mode, which then are its mask.
///
/// # Errors
/// The first thing that is not so, with the way to mend it.
pub fn read_credential(path: &Path, same_user: bool) -> Result<Vec<u8>, TrustedFileError> {
    let (file, stat, path) = open(path, Owners::new(same_user), false, OFlag::O_RDONLY)?;
    let mode = stat.st_mode & 0o7777;
    if mode != 0o600 && mode != 0o400 {
        return fail(&path, Problem::CredentialMode(mode));
    }
    // None at all has one that was replaced by a rename since it was opened: the old one, whole.
    if stat.st_nlink > 1 {
        return fail(&path, Problem::CredentialNames);
    }
    read_all(file, &path, CREDENTIAL)
}

/// Whose files count.
#[derive(Clone, Copy)]
struct Owners {
    own: u32,
}

impl Owners {
    fn new(same_user: bool) -> Self {
        Self { own: if same_user { nix::unistd::geteuid().as_raw() } else { 0 } }
    }

    fn include(self, uid: u32) -> bool {
        uid == 0 || uid == self.own
    }
}

fn fail<T>(path: &Path, problem: Problem) -> Result<T, TrustedFileError> {
    Err(TrustedFileError { path: path.to_owned(), problem })
}

fn system(path: &Path) -> impl Fn(Errno) -> TrustedFileError {
    move |errno| TrustedFileError {
        path: path.to_owned(),
        problem: match errno {
            Errno::ENOENT => Problem::Missing,
            Errno::ELOOP => Problem::Link,
            errno => Problem::System(errno),
        },
    }
}

/// Opens the file at the end of the path, checks its kind and owner, and says where it really is.
fn open(
    path: &Path,
    owners: Owners,
    last_may_be_link: bool,
    flags: OFlag,
) -> Result<(File, FileStat, PathBuf), TrustedFileError> {
    let (directory, real, name) = walk(path, owners, last_may_be_link)?;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    let file = openat(&directory, name.as_os_str(), FILE_FLAGS | flags, mode).map_err(system(&real))?;
    let stat = fstat(&file).map_err(system(&real))?;
    if kind(&stat) != SFlag::S_IFREG {
        return fail(&real, Problem::NotRegular);
    }
    if !owners.include(stat.st_uid) {
        return fail(&real, Problem::Owner(stat.st_uid));
    }
    Ok((File::from(file), stat, real))
}

/// Walks to the directory that holds the last part. Gives that directory, the real path of the file and
/// its name in the directory.
fn walk(
    path: &Path,
    owners: Owners,
    last_may_be_link: bool,
) -> Result<(OwnedFd, PathBuf, OsString), TrustedFileError> {
    if !path.is_absolute() {
        return fail(path, Problem::Relative);
    }
    let root = nix::fcntl::open("/", DIRECTORY_FLAGS, Mode::empty()).map_err(system(Path::new("/")))?;
    check_directory(&root, Path::new("/"), owners)?;
    let mut place = Place { real: PathBuf::from("/"), directories: vec![root] };
    let mut rest: Vec<OsString> = parts(path);
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            place.up();
            continue;
        }
        let here = place.real.join(&name);
        let Some(directory) = place.directories.last() else { return fail(path, Problem::NotRegular) };
        let stat = match fstatat(directory, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            // The last part may be made; whether it may is for the opening to say.
            Err(Errno::ENOENT) if rest.is_empty() => None,
            Err(errno) => return Err(system(&here)(errno)),
        };
        if let Some(stat) = stat.filter(|stat| kind(stat) == SFlag::S_IFLNK) {
            if rest.is_empty() && !last_may_be_link {
                return fail(&here, Problem::Link);
            }
            if !owners.include(stat.st_uid) {
                return fail(&here, Problem::LinkOwner(stat.st_uid));
            }
            links += 1;
            if links > LINKS {
                return fail(path, Problem::TooManyLinks);
            }
            let target = PathBuf::from(readlinkat(directory, name.as_os_str()).map_err(system(&here))?);
            if target.is_absolute() {
                place.restart();
            }
            rest.extend(parts(&target));
            continue;
        }
        if rest.is_empty() {
            let directory = place.directories.pop();
            return directory.map_or_else(|| fail(path, Problem::NotRegular), |fd| Ok((fd, here, name)));
        }
        let next =
            openat(directory, name.as_os_str(), DIRECTORY_FLAGS, Mode::empty()).map_err(system(&here))?;
        check_directory(&next, &here, owners)?;
        place.down(next, here);
    }
    // The path ended in `/`, `..` or a link to a directory.
    fail(&place.real, Problem::NotRegular)
}

/// Where a walk has come to: the open directories from `/` down to it, so that `..` needs no lookup.
struct Place {
    real: PathBuf,
    directories: Vec<OwnedFd>,
}

impl Place {
    fn down(&mut self, directory: OwnedFd, real: PathBuf) {
        self.directories.push(directory);
        self.real = real;
    }

    fn up(&mut self) {
        if self.directories.len() > 1 {
            self.directories.pop();
            self.real.pop();
        }
    }

    fn restart(&mut self) {
        self.directories.truncate(1);
        self.real = PathBuf::from("/");
    }
}

/// The parts of a path, the next one last.
fn parts(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsStr::from_bytes(b"..").to_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn check_writers(path: &Path, stat: &FileStat) -> Result<(), TrustedFileError> {
    if stat.st_mode & 0o022 != 0 { fail(path, Problem::Writable(stat.st_mode & 0o7777)) } else { Ok(()) }
}

fn check_directory(directory: impl AsFd, path: &Path, owners: Owners) -> Result<(), TrustedFileError> {
    let stat = fstat(directory).map_err(system(path))?;
    if !owners.include(stat.st_uid) {
        return fail(path, Problem::DirectoryOwner(stat.st_uid));
    }
    if stat.st_mode & 0o022 != 0 && stat.st_mode & 0o1000 == 0 {
        return fail(path, Problem::DirectoryWritable(stat.st_mode & 0o7777));
    }
    Ok(())
}

fn read_all(file: File, path: &Path, limit: usize) -> Result<Vec<u8>, TrustedFileError> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that grows while it is read from one that fits.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| TrustedFileError {
        path: path.to_owned(),
        problem: Problem::System(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
    })?;
    if bytes.len() > limit { fail(path, Problem::TooLarge(limit)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
