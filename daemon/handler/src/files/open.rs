#![forbid(unsafe_code)]
//! Opening below a root: only regular files, and nothing that blocks, acts when opened, or leads outside.

use super::Root;
use crate::failure::{Failure, refuse};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;
use std::fs::File;

/// Opens the fixed part of a root. Links in it are followed: it is part of what was signed.
fn root(root: &Root) -> Result<OwnedFd, Failure> {
    openat2(CWD, &root.fixed, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
        .map_err(|error| failed(&root.fixed, error))
}

/// A root's descriptor, and the way from it to a path that the root covers.
///
/// # Errors
/// The root itself is missing.
pub fn place_of<'p>(base: &Root, path: &'p str) -> Result<(OwnedFd, &'p str), Failure> {
    let rest = path.strip_prefix(base.fixed.as_str()).unwrap_or(path).trim_start_matches('/');
    Ok((root(base)?, rest))
}

fn open(base: &Root, path: &str, flags: OFlags) -> Result<OwnedFd, Failure> {
    let (dir, rest) = place_of(base, path)?;
    let flags = flags | OFlags::CLOEXEC;
    let opened = if rest.is_empty() {
        // The path is the root itself, so the rule of the root holds for it.
        openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
    } else {
        openat2(&dir, rest, flags, Mode::empty(), base.resolve())
    };
    opened.map_err(|error| failed(path, error))
}

/// What a path leads to, without opening it for use.
///
/// # Errors
/// It does not exist, or leads outside.
pub fn look(base: &Root, path: &str) -> Result<Stat, Failure> {
    fstat(open(base, path, OFlags::PATH)?).map_err(|error| failed(path, error))
}

/// A directory below a root, to be listed.
///
/// # Errors
/// It does not exist, leads outside, or may not be listed.
pub fn directory(base: &Root, path: &str) -> Result<OwnedFd, Failure> {
    open(base, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)
}

/// Opens a regular file below a root for reading.
///
/// # Errors
/// It does not exist, leads outside, is not regular, or may not be read.
pub fn regular(base: &Root, path: &str) -> Result<(File, Stat), Failure> {
    // Looked at first: opening some devices has effects of its own.
    let seen = look(base, path)?;
    check_regular(path, &seen)?;
    let file = open(base, path, OFlags::RDONLY | never_waiting())?;
    let stat = fstat(&file).map_err(|error| failed(path, error))?;
    check_regular(path, &stat)?;
    if (stat.st_dev, stat.st_ino) != (seen.st_dev, seen.st_ino) {
        return refuse(format!("{path} was replaced while it was opened: try again"));
    }
    Ok((File::from(file), stat))
}

/// Flags with which an open neither waits (for a writer of a FIFO, for a lease) nor takes a terminal.
pub fn never_waiting() -> OFlags {
    OFlags::NONBLOCK | OFlags::NOCTTY
}

/// Refuses everything but a regular file.
fn check_regular(path: &str, stat: &Stat) -> Result<(), Failure> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symbolic link",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown kind",
    };
    refuse(format!("{path} is {kind}; only regular files are read and written"))
}

/// Says what an error means for a path under a root.
pub fn failed(path: &str, error: Errno) -> Failure {
    match error {
        Errno::XDEV => Failure::refused(format!("{path} leads out of the root of this action")),
        Errno::LOOP => Failure::refused(format!("{path}: a symbolic link on the way is not followed here")),
        Errno::NOENT => Failure::refused(format!("{path} does not exist")),
        Errno::ACCESS | Errno::PERM => {
            Failure::refused(format!("{path}: the account of this action may not do that ({error})"))
        }
        Errno::AGAIN => Failure::refused(format!("{path} is being changed, or held by a lease: try again")),
        Errno::NOTDIR => Failure::refused(format!("{path}: what should be a directory on the way is none")),
        other => Failure::system(path, other),
    }
}
