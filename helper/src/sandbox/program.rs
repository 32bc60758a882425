#![forbid(unsafe_code)]
//! The executable of a step: found, opened and judged before anything is forked.

use super::elf::{self, Image};
use super::resolve;
use gloveport_contract::catalog::is_interpreter;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, SFlag, fstat};
use std::fmt;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// An opened executable.
#[derive(Debug)]
pub struct Program {
    /// The file itself: what is checked is what is executed.
    pub file: OwnedFd,
    /// Where it really is.
    pub path: PathBuf,
    /// Its loader, where it is a dynamic program.
    pub loader: Option<PathBuf>,
}

/// Who executes it.
#[derive(Debug, Clone, Copy)]
pub struct Executor<'a> {
    /// The uid.
    pub uid: u32,
    /// The primary group and the others.
    pub groups: &'a [u32],
}

/// Why a file cannot be the program of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramError {
    /// It does not exist.
    Missing(PathBuf),
    /// It exists, and this account cannot execute it.
    NotExecutable(PathBuf, &'static str),
    /// Somebody else than root could change it.
    Untrusted(PathBuf, &'static str),
    /// It would run foreign text, and the action does not say that it may.
    Interpreter(PathBuf),
    /// The system says no.
    System(PathBuf, Errno),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{} does not exist on this host", path.display()),
            Self::NotExecutable(path, why) => write!(f, "{} cannot be executed: {why}", path.display()),
            Self::Untrusted(path, why) => write!(f, "{} is not trusted: {why}", path.display()),
            Self::Interpreter(path) => write!(
                f,
                "{} is an interpreter: it would run whatever text it is given; use `script`, or say \
                 `allow_interpreter: true`",
                path.display()
            ),
            Self::System(path, errno) => write!(f, "{}: {}", path.display(), errno.desc()),
        }
    }
}

impl std::error::Error for ProgramError {}

/// Opens the first of several paths that exists. A program that exists and fails is never passed over.
///
/// # Errors
/// That of the first path when none exists, else that of the one that does.
pub fn open_first(
    path: &Path,
    fallbacks: &[String],
    executor: Executor<'_>,
    interpreter_allowed: bool,
) -> Result<Program, ProgramError> {
    let first = open(path, executor, interpreter_allowed);
    if !matches!(first, Err(ProgramError::Missing(_))) {
        return first;
    }
    fallbacks
        .iter()
        .map(|fallback| open(Path::new(fallback), executor, interpreter_allowed))
        .find(|result| !matches!(result, Err(ProgramError::Missing(_))))
        .unwrap_or(first)
}

/// Opens and judges one executable.
///
/// # Errors
/// What is wrong with it.
pub fn open(path: &Path, executor: Executor<'_>, interpreter_allowed: bool) -> Result<Program, ProgramError> {
    let system = |errno| match errno {
        Errno::ENOENT | Errno::ENOTDIR => ProgramError::Missing(path.to_owned()),
        errno => ProgramError::System(path.to_owned(), errno),
    };
    let real = resolve::real_path(path).map_err(system)?;
    check_directories(&real)?;
    // O_NONBLOCK: a FIFO in its place must not hold the helper up.
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = resolve::open_without_links(&real, flags).map_err(system)?;
    check_file(&real, &fstat(&file).map_err(system)?, executor)?;
    let file = File::from(file);
    let mut head = [0_u8; elf::HEAD];
    let length = file.read_at(&mut head, 0).map_err(|error| system(resolve::errno(&error)))?;
    let loader = match elf::image(head.get(..length).unwrap_or_default()) {
        Image::Elf(loader) => loader,
        Image::Script => return Err(ProgramError::NotExecutable(real, SCRIPT)),
        Image::Unknown => {
            return Err(ProgramError::NotExecutable(real, "it is no ELF program of this machine"));
        }
    };
    // By the file's own name, after every link to it was followed.
    if !interpreter_allowed && is_interpreter(&real.to_string_lossy()) {
        return Err(ProgramError::Interpreter(real));
    }
    let loader = match loader {
        Some(loader) => Some(resolve::real_path(Path::new(&loader)).map_err(|_| {
            ProgramError::NotExecutable(real.clone(), "the loader that it names does not exist")
        })?),
        None => None,
    };
    Ok(Program { file: file.into(), path: real, loader })
}

const SCRIPT: &str = "it is a `#!` file, for which the kernel would start a second program; use `script`, which \
                      names the interpreter and signs the text";

fn check_file(path: &Path, status: &FileStat, executor: Executor<'_>) -> Result<(), ProgramError> {
    let wrong = |why| Err(ProgramError::NotExecutable(path.to_owned(), why));
    let untrusted = |why| Err(ProgramError::Untrusted(path.to_owned(), why));
    if SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) != SFlag::S_IFREG {
        return wrong("it is no regular file");
    }
    if !resolve::is_ours(status.st_uid) {
        return untrusted("it does not belong to root");
    }
    if status.st_mode & 0o022 != 0 {
        return untrusted("others than its owner may write to it: chmod go-w");
    }
    let bits = if executor.uid == status.st_uid {
        0o100
    } else if executor.groups.contains(&status.st_gid) {
        0o010
    } else {
        0o001
    };
    // Root executes what anybody may execute.
    let bits = if executor.uid == 0 { 0o111 } else { bits };
    if status.st_mode & bits == 0 {
        return wrong("its permission bits do not let this account");
    }
    Ok(())
}

/// Who can write to a directory on the way could put another file there.
fn check_directories(path: &Path) -> Result<(), ProgramError> {
    for directory in path.ancestors().skip(1) {
        let status = fs::symlink_metadata(directory)
            .map_err(|error| ProgramError::System(directory.to_owned(), resolve::errno(&error)))?;
        let sticky = status.mode() & 0o1000 != 0;
        if !resolve::is_ours(status.uid()) {
            return Err(ProgramError::Untrusted(
                directory.to_owned(),
                "this directory does not belong to root",
            ));
        }
        if status.mode() & 0o022 != 0 && !sticky {
            let why = "others than root may write to this directory: chmod go-w";
            return Err(ProgramError::Untrusted(directory.to_owned(), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYBODY: Executor<'static> = Executor { uid: 65534, groups: &[65534] };

    #[test]
    fn a_program_of_the_host_is_opened_with_its_loader() {
        let program = open(Path::new("/bin/cat"), ANYBODY, false).unwrap();
        assert_eq!(program.path.file_name().unwrap(), "cat");
        assert!(program.loader.is_some());
    }

    #[test]
    fn what_cannot_be_executed_is_told_apart() {
        let error = |path: &str| open(Path::new(path), ANYBODY, false).unwrap_err();
        assert_eq!(error("/usr/bin/no-such"), ProgramError::Missing("/usr/bin/no-such".into()));
        assert!(matches!(error("/etc/passwd"), ProgramError::NotExecutable(_, _)));
        assert!(matches!(error("/etc"), ProgramError::NotExecutable(_, _)));
        assert!(matches!(error("/bin/sh"), ProgramError::Interpreter(_)));
        assert!(open(Path::new("/bin/sh"), ANYBODY, true).is_ok());
    }

    #[test]
    fn a_fallback_is_taken_only_when_the_program_does_not_exist() {
        let fallback = ["/bin/cat".to_owned()];
        let found = open_first(Path::new("/no/such"), &fallback, ANYBODY, false).unwrap();
        assert_eq!(found.path.file_name().unwrap(), "cat");
        let failed = open_first(Path::new("/etc/passwd"), &fallback, ANYBODY, false);
        assert!(matches!(failed, Err(ProgramError::NotExecutable(_, _))));
        let missing = open_first(Path::new("/no/such"), &["/no/other".to_owned()], ANYBODY, false);
        assert_eq!(missing.unwrap_err(), ProgramError::Missing("/no/such".into()));
    }
}
