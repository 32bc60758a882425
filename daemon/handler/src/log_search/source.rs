#![forbid(unsafe_code)]
//! One file as a stream of bytes: decompressed where it is gzip, as far as the scan goes, and with no line
//! longer than [`LINE`].

use super::candidates::Candidate;
use crate::failure::{Failure, refuse};
use crate::files;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Longest line, bytes. A longer one is searched in pieces, so that a gigabyte without a line end needs no
/// gigabyte of memory.
pub const LINE: usize = 256 * 1024;
/// Bytes that are read from a file at once.
const BLOCK: usize = 128 * 1024;

/// Beginnings of files that are compressed in a way that is not read here.
const OTHERS: [(&[u8], &str); 5] = [
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
];

/// A file that is ready to be searched.
pub struct Opened {
    /// Its bytes.
    pub source: Source,
    /// Bytes at its beginning that are left out.
    pub skipped: u64,
}

/// Opens a file. Of a plain one only what it holds now is read, so that a file which grows faster than it
/// is read comes to an end; if that is more than `budget` and `from_end`, the last part of it.
///
/// # Errors
/// It is not a regular file any more, may not be read, or is compressed otherwise.
pub fn open(file: &Candidate<'_>, budget: u64, from_end: bool) -> Result<Opened, Failure> {
    let failed = |error| Failure::system(&file.path, error);
    let (mut inner, _) = files::regular(file.root, &file.path)?;
    let mut magic = [0; 6];
    let length = read_start(&mut inner, &mut magic).map_err(failed)?;
    let magic = magic.get(..length).unwrap_or_default();
    inner.rewind().map_err(failed)?;
    if let Some((_, name)) = OTHERS.iter().find(|(mark, _)| magic.starts_with(mark)) {
        return refuse(format!("compressed with {name}: only gzip is read"));
    }
    if magic.starts_with(b"\x1f\x8b") {
        let gzip = MultiGzDecoder::new(BufReader::with_capacity(BLOCK, inner));
        return Ok(Opened { source: Source::new(Bytes::Gzip(Box::new(gzip)), budget), skipped: 0 });
    }
    let size = inner.metadata().map_err(failed)?.len();
    let skipped = if from_end { size.saturating_sub(budget) } else { 0 };
    inner.seek(SeekFrom::Start(skipped)).map_err(failed)?;
    Ok(Opened { source: Source::new(Bytes::Plain(inner.take(size - skipped)), budget), skipped })
}

fn read_start(file: &mut File, into: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = into.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

enum Bytes {
    Plain(io::Take<File>),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(into),
            Self::Gzip(gzip) => gzip.read(into),
        }
    }
}

/// The stream. A read error ends it like the end of the file, and is kept: what came before it is searched.
pub struct Source {
    bytes: Bytes,
    budget: u64,
    read: u64,
    since_line_end: usize,
    folds: Vec<u64>,
    error: Option<io::Error>,
    ended: bool,
}

impl Source {
    fn new(bytes: Bytes, budget: u64) -> Self {
        Self { bytes, budget, read: 0, since_line_end: 0, folds: Vec::new(), error: None, ended: false }
    }

    /// Bytes that were read, after decompression.
    pub fn read_bytes(&self) -> u64 {
        self.read
    }

    /// Offsets in the stream at which a line end was put in.
    pub fn folds(&self) -> &[u64] {
        &self.folds
    }

    /// Whether the budget was used up before the file ended.
    pub fn is_spent(&self) -> bool {
        !self.ended && self.read >= self.budget
    }

    /// What of the file was not read, and why.
    pub fn unread(&self) -> Option<String> {
        match &self.error {
            Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Some(format!("gzip data ends early, after {} bytes of text", self.read))
            }
            Some(error) => Some(format!("after {} bytes: {error}", self.read)),
            None if self.is_spent() => Some(format!("what follows its first {} bytes: max_scan", self.read)),
            None => None,
        }
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.since_line_end >= LINE
            && let Some(first) = into.first_mut()
        {
            *first = b'\n';
            self.folds.push(self.read + self.folds.len() as u64);
            self.since_line_end = 0;
            return Ok(1);
        }
        let left = usize::try_from(self.budget - self.read).unwrap_or(usize::MAX);
        let most = into.len().min(left).min(LINE - self.since_line_end);
        let Some(part) = into.get_mut(..most).filter(|part| !part.is_empty()) else {
            return Ok(0);
        };
        let length = match self.bytes.read(part) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.error = Some(error);
                0
            }
        };
        self.ended = length == 0;
        self.read += length as u64;
        let last_end = part.get(..length).and_then(|part| part.iter().rposition(|byte| *byte == b'\n'));
        self.since_line_end = match last_end {
            Some(at) => length - at - 1,
            None => self.since_line_end + length,
        };
        Ok(length)
    }
}
