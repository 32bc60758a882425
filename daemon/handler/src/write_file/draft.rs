#![forbid(unsafe_code)]
//! A file under a temporary name, until it is complete, on disk, and has the attributes it should have.

use super::attributes;
use super::target::{Existing, Target};
use crate::failure::{Failure, refuse};
use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, fstat, openat, renameat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::time::SystemTime;

/// The mode of a new file where the caller names none.
pub const NEW_FILE: u32 = 0o600;

/// A temporary file beside a target. It goes away with this value unless it was published.
pub struct Draft<'t> {
    target: &'t Target<'t>,
    name: String,
    file: File,
}

impl<'t> Draft<'t> {
    /// Writes the content beside the target. A run that is killed meanwhile leaves the file behind, under
    /// a name that says whose it is.
    pub fn create(target: &'t Target<'t>, content: &[u8]) -> Result<Self, Failure> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(NEW_FILE);
        let nanos =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let name = format!(".gloveport-{}-{nanos}.tmp", std::process::id());
        let file = openat(&target.directory, &name, flags, mode).map_err(|error| target.failed(error))?;
        let mut draft = Self { target, name, file: File::from(file) };
        draft.file.write_all(content).map_err(|error| Failure::system("writing the new content", error))?;
        Ok(draft)
    }

    /// Takes owner, group, mode and attributes of what is to be replaced; gives the attributes that could
    /// not be taken.
    ///
    /// # Errors
    /// Owner or group cannot be kept: whoever reads the file by them would lose it without a word.
    pub fn take_after(&self, old: &Existing, mode: Option<u32>) -> Result<Vec<String>, Failure> {
        let own = fstat(&self.file).map_err(|error| self.target.failed(error))?;
        if (own.st_uid, own.st_gid) != (old.stat.st_uid, old.stat.st_gid) {
            let (uid, gid) = (Uid::from_raw(old.stat.st_uid), Gid::from_raw(old.stat.st_gid));
            if fchown(&self.file, Some(uid), Some(gid)).is_err() {
                return refuse(format!(
                    "it belongs to {}:{}, and the account of this action cannot keep that: \
                     let the action run as its owner with its group in `groups`, or append",
                    old.stat.st_uid, old.stat.st_gid
                ));
            }
        }
        let not_kept = match &old.file {
            Some(file) => attributes::copy(file.as_fd(), self.file.as_fd()),
            None => vec!["extended attributes (the file cannot be read)".to_owned()],
        };
        // After the owner and the ACL: chown drops bits, and an ACL's mask is part of the mode.
        self.set_mode(mode.unwrap_or(old.stat.st_mode & 0o777))?;
        Ok(not_kept)
    }

    /// Sets the mode, whatever the umask is.
    pub fn set_mode(&self, mode: u32) -> Result<(), Failure> {
        fchmod(&self.file, Mode::from_raw_mode(mode)).map_err(|error| self.target.failed(error))
    }

    /// Renames it over the target.
    pub fn replace(mut self, target: &Target<'_>) -> Result<(), Failure> {
        self.sync()?;
        renameat(&target.directory, &self.name, &target.directory, target.name)
            .map_err(|error| target.failed(error))?;
        self.name.clear();
        target.sync()
    }

    /// Gives it a name that nothing has yet.
    pub fn publish(mut self, target: &Target<'_>, name: &str) -> Result<(), Failure> {
        self.sync()?;
        renameat_with(&target.directory, &self.name, &target.directory, name, RenameFlags::NOREPLACE)
            .map_err(|error| match error {
                Errno::EXIST => {
                    Failure::refused(format!("{} came into being meanwhile", target.sibling(name)))
                }
                other => target.failed(other),
            })?;
        self.name.clear();
        target.sync()
    }

    fn sync(&self) -> Result<(), Failure> {
        self.file.sync_all().map_err(|error| Failure::system("writing the new content to disk", error))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // Nothing more can be done about a failure here; the name says whose the file is.
            let _ = unlinkat(&self.target.directory, &self.name, AtFlags::empty());
        }
    }
}
