#![forbid(unsafe_code)]
//! The files of a chain, in the order of their records: the full ones, named by their first record, and
//! `audit.jsonl`, which is written.

use super::chain::{LINE, Links, Part};
use gloveport_contract::volume;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One file of a chain, open.
pub struct Volume {
    /// The file, at its beginning.
    pub file: File,
    /// Its name, where it is a full one.
    pub full: Option<String>,
}

/// Opens all files of a chain whose last one is `current`, which need not exist where there are others.
///
/// # Errors
/// One of them, or their directory, cannot be read.
pub fn open(current: &Path) -> io::Result<Vec<Volume>> {
    // The one that is written is opened first: where it becomes a full one meanwhile, it is met again, and known.
    let last = match File::open(current) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        result => Some(result?),
    };
    let mut volumes = Vec::new();
    for entry in fs::read_dir(current.parent().unwrap_or(Path::new("/")))? {
        let entry = entry?;
        let Some((name, named)) = entry
            .file_name()
            .to_str()
            .and_then(|name| volume::first(name).map(|first| (name.to_owned(), first)))
        else {
            continue;
        };
        let mut file = File::open(entry.path())?;
        if last.as_ref().is_some_and(|last| is_same(last, &file)) {
            continue;
        }
        let first = first_record(&mut file)?.unwrap_or(named);
        volumes.push((first, named, Volume { file, full: Some(name) }));
    }
    // By what is in them: one that was renamed is found at its place, and its name is the only fault.
    volumes.sort_by_key(|(first, named, _)| (*first, *named));
    let full = volumes.into_iter().map(|(.., volume)| volume);
    Ok(full.chain(last.map(|file| Volume { file, full: None })).collect())
}

/// The files after this one, where it is one of the chain.
///
/// # Errors
/// As [`open`].
pub fn after(current: &Path, file: &File) -> io::Result<Option<Vec<Volume>>> {
    let mut volumes = open(current)?;
    let at = volumes.iter().position(|volume| is_same(&volume.file, file));
    Ok(at.map(|at| volumes.split_off(at + 1)))
}

impl From<Volume> for Part<BufReader<File>> {
    fn from(volume: Volume) -> Self {
        Self { full: volume.full, reader: BufReader::new(volume.file) }
    }
}

/// Whether both are one file.
pub fn is_same(one: &File, other: &File) -> bool {
    let place = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    place(one).is_some_and(|one| Some(one) == place(other))
}

/// The number of the record that a file begins with.
fn first_record(file: &mut File) -> io::Result<Option<u64>> {
    let mut line = Vec::new();
    BufReader::new(&mut *file).take(LINE).read_until(b'\n', &mut line)?;
    file.rewind()?;
    Ok(Links::read(&line).map(|links| links.seq))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A directory with a chain of three files, removed at the end.
    struct Chain(PathBuf);

    impl Chain {
        fn new(name: &str) -> Self {
            let directory = std::env::temp_dir().join(format!("gloveport-{name}-{}", std::process::id()));
            fs::create_dir(&directory).unwrap();
            let this = Self(directory);
            for (name, first) in
                [(volume::name(1), 1), (volume::name(10), 10), ("audit.jsonl".to_owned(), 20)]
            {
                fs::write(this.0.join(name), format!("{{\"seq\":{first},\"prev\":\"\"}}\n")).unwrap();
            }
            fs::write(this.0.join("audit.head"), "").unwrap();
            this
        }

        fn current(&self) -> PathBuf {
            self.0.join("audit.jsonl")
        }

        fn names(&self) -> Vec<Option<String>> {
            open(&self.current()).unwrap().into_iter().map(|volume| volume.full).collect()
        }
    }

    impl Drop for Chain {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_files_stand_in_the_order_of_their_records() {
        let chain = Chain::new("volumes");
        assert_eq!(chain.names(), [Some(volume::name(1)), Some(volume::name(10)), None]);
        fs::rename(chain.0.join(volume::name(1)), chain.0.join(volume::name(15))).unwrap();
        assert_eq!(chain.names(), [Some(volume::name(15)), Some(volume::name(10)), None]);
        fs::remove_file(chain.current()).unwrap();
        assert_eq!(chain.names().len(), 2);
    }

    #[test]
    fn who_follows_a_file_that_becomes_full_finds_those_after_it() {
        let chain = Chain::new("followed");
        let followed = File::open(chain.current()).unwrap();
        assert_eq!(after(&chain.current(), &followed).unwrap().unwrap().len(), 0);
        fs::rename(chain.current(), chain.0.join(volume::name(20))).unwrap();
        fs::write(chain.current(), "{\"seq\":30,\"prev\":\"\"}\n").unwrap();
        assert_eq!(after(&chain.current(), &followed).unwrap().unwrap().len(), 1);
        fs::remove_file(chain.0.join(volume::name(20))).unwrap();
        assert!(after(&chain.current(), &followed).unwrap().is_none());
    }
}
