#![forbid(unsafe_code)]
//! The files of the chain beside the one that is written: a full one is renamed to the number of its first
//! record, and a new one takes its place. Nothing is ever removed or overwritten here.

use super::chain::Position;
use super::journal::{JournalError, TAIL};
use crate::trusted_file;
use gloveport_contract::volume;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Which file it is: device and inode.
pub type Place = (u64, u64);

/// Which file is open.
///
/// # Errors
/// Those of fstat(2).
pub fn place(file: &File) -> io::Result<Place> {
    file.metadata().map(|found| (found.dev(), found.ino()))
}

/// Whether that file is what stands at the path.
pub fn is_at(path: &Path, place: Place) -> bool {
    fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == place)
}

/// The newest full file beside the one that is written.
///
/// # Errors
/// The directory cannot be read.
pub fn newest(current: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in fs::read_dir(current.parent().unwrap_or(Path::new("/")))? {
        let entry = entry?;
        let first = entry.file_name().to_str().and_then(volume::first);
        newest = newest.max(first.map(|first| (first, entry.path())));
    }
    Ok(newest.map(|(_, path)| path))
}

/// Opens an empty log where there is none, and locks it.
///
/// # Errors
/// It is not trusted, or somebody else has put something there.
pub fn begin(path: &Path, same_user: bool) -> Result<File, JournalError> {
    let file = trusted_file::open_own(path, true, same_user).map_err(JournalError::File)?;
    let system = |error| JournalError::System(path.to_owned(), error);
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(JournalError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => return Err(system(error)),
        Ok(()) => {}
    }
    if file.metadata().map_err(system)?.len() > 0 {
        return Err(JournalError::Replaced(path.to_owned()));
    }
    Ok(file)
}

/// Opens an empty head.
///
/// # Errors
/// It is not trusted.
pub fn begin_head(path: &Path, same_user: bool) -> Result<File, JournalError> {
    let file = trusted_file::open_own(path, false, same_user).map_err(JournalError::File)?;
    file.set_len(0).map_err(|error| JournalError::System(path.to_owned(), error))?;
    Ok(file)
}

/// Renames a full log by its first record, and opens the next one in its place.
///
/// # Errors
/// It begins with no record, or a file has that name already; the log then stays where it is.
pub fn turn(current: &Path, same_user: bool) -> Result<File, JournalError> {
    let system = |error: io::Error| JournalError::System(current.to_owned(), error);
    let mut line = Vec::new();
    let most = u64::try_from(TAIL).unwrap_or(u64::MAX);
    let log = File::open(current).map_err(system)?;
    BufReader::new(log).take(most).read_until(b'\n', &mut line).map_err(system)?;
    let first = Position::of_line(line.trim_ascii_end())
        .ok_or_else(|| system(io::Error::other("its first line is no record, so it cannot be named")))?;
    let full = current.with_file_name(volume::name(first.seq));
    rename(current, &full).map_err(|error| JournalError::System(full.clone(), error))?;
    begin(current, same_user).inspect_err(|_| {
        // The writer goes on in it, wherever it is; so it should be where readers look.
        let _ = rename(&full, current);
    })
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)?;
    // On disk before anything is in the next file.
    File::open(to.parent().unwrap_or(Path::new("/")))?.sync_all()
}
