#![forbid(unsafe_code)]
//! The place that is written: its directory by descriptor, its name, and what is there now.

use crate::failure::{Failure, refuse};
use crate::files::{Root, never_waiting, place_of};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fchmod, fstat, fsync, openat, openat2, statat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};

/// A name in a directory below a root.
pub struct Target<'p> {
    /// The directory, open for reading: it is synced after a change in it.
    pub directory: OwnedFd,
    /// The name in it.
    pub name: &'p str,
    path: &'p str,
}

/// A regular file that is there.
pub struct Existing {
    /// What the kernel says of it.
    pub stat: Stat,
    /// Open for reading, where the account may read it.
    pub file: Option<File>,
    path: String,
}

impl<'p> Target<'p> {
    /// Finds the directory of a path. No symbolic link on the way is followed: what is written must be
    /// where its path says.
    pub fn find(root: &Root, path: &'p str) -> Result<Self, Failure> {
        let (base, rest) = place_of(root, path)?;
        let (parent, name) = rest.rsplit_once('/').unwrap_or((".", rest));
        if name.is_empty() {
            return refuse(format!(
                "{path} is a root of this action itself; only files below it are written"
            ));
        }
        let directory = openat2(
            &base,
            parent,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
        )
        .map_err(|error| match error {
            Errno::NOENT => Failure::refused(format!("{path}: its directory does not exist")),
            other => crate::files::failed(path, other),
        })?;
        Ok(Self { directory, name, path })
    }

    /// The path of another name in the same directory.
    pub fn sibling(&self, name: &str) -> String {
        let directory = self.path.strip_suffix(self.name).unwrap_or_default();
        format!("{directory}{name}")
    }

    /// Says what an error means for this target.
    pub fn failed(&self, error: Errno) -> Failure {
        crate::files::failed(self.path, error)
    }

    /// What is there, if anything.
    ///
    /// # Errors
    /// It is not a regular file with one name.
    pub fn existing(&self) -> Result<Option<Existing>, Failure> {
        let seen = match statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        self.check(&seen)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | never_waiting();
        let (file, stat) = match openat(&self.directory, self.name, flags, Mode::empty()) {
            Ok(file) => {
                let stat = fstat(&file).map_err(|error| self.failed(error))?;
                self.check(&stat)?;
                (Some(File::from(file)), stat)
            }
            Err(Errno::ACCESS) => (None, seen),
            Err(error) => return Err(self.failed(error)),
        };
        Ok(Some(Existing { stat, file, path: self.path.to_owned() }))
    }

    fn check(&self, stat: &Stat) -> Result<(), Failure> {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return refuse(format!("{} is not a regular file; nothing else is written", self.path));
        }
        if stat.st_nlink > 1 {
            return refuse(format!(
                "{} has {} names (hard links): writing it could change a file outside of the roots",
                self.path, stat.st_nlink
            ));
        }
        Ok(())
    }

    /// Looks again, right before the change.
    pub fn check_unchanged(&self, old: &Existing) -> Result<(), Failure> {
        let now = statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.failed(error))?;
        if crate::files::version(&now) == crate::files::version(&old.stat) {
            Ok(())
        } else {
            refuse(format!("{} was changed by somebody else meanwhile: read it again", self.path))
        }
    }

    /// Writes at the end of what is there, in place: a program that has it open goes on with the same file.
    pub fn append(&self, old: &Existing, content: &[u8], mode: Option<u32>) -> Result<(), Failure> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC | never_waiting();
        let file =
            openat(&self.directory, self.name, flags, Mode::empty()).map_err(|error| self.failed(error))?;
        let stat = fstat(&file).map_err(|error| self.failed(error))?;
        self.check(&stat)?;
        if crate::files::version(&stat) != crate::files::version(&old.stat) {
            return refuse(format!("{} was changed by somebody else meanwhile: read it again", self.path));
        }
        let mut file = File::from(file);
        file.write_all(content).and_then(|()| file.sync_all()).map_err(|error| {
            let now = file.metadata().map_or(0, |metadata| metadata.len());
            let written = now.saturating_sub(u64::try_from(stat.st_size).unwrap_or(0));
            Failure::system(
                format!("{}: only {written} of {} bytes were appended", self.path, content.len()),
                error,
            )
        })?;
        match mode {
            Some(mode) => fchmod(&file, Mode::from_raw_mode(mode)).map_err(|error| self.failed(error)),
            None => Ok(()),
        }
    }

    /// Makes a change of names in the directory last.
    pub fn sync(&self) -> Result<(), Failure> {
        fsync(&self.directory).map_err(|error| self.failed(error))
    }
}

impl Existing {
    /// Its content.
    ///
    /// # Errors
    /// It is longer than `most` bytes, or the account may not read it.
    pub fn content(&self, most: u64) -> Result<Vec<u8>, Failure> {
        let Some(file) = self.file.as_ref() else {
            return refuse(format!("{}: the account of this action may not read it", self.path));
        };
        let mut content = Vec::new();
        file.take(most.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|error| Failure::system(&self.path, error))?;
        if content.len() as u64 > most {
            return refuse(format!("{} is longer than the {most} bytes of this action", self.path));
        }
        Ok(content)
    }
}
