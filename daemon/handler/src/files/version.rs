#![forbid(unsafe_code)]
//! A token for "the file as I saw it".

use crate::call::hex;
use rustix::fs::Stat;

/// The token of a file that does not exist.
pub const ABSENT: &str = "absent";

/// The token of a file: it changes with its content, its owner, its mode, and when it is replaced. It is
/// made of what the kernel records about the file, so that it costs nothing for a large one; two changes of
/// the same size within one tick of the kernel's clock (4 ms before Linux 6.13) can go unseen.
pub fn version(stat: &Stat) -> String {
    let mut hash = hmac_sha256::Hash::new();
    for part in [
        i128::from(stat.st_dev),
        i128::from(stat.st_ino),
        i128::from(stat.st_size),
        i128::from(stat.st_mtime),
        i128::from(stat.st_mtime_nsec),
        i128::from(stat.st_ctime),
        i128::from(stat.st_ctime_nsec),
    ] {
        hash.update(part.to_le_bytes());
    }
    let digest = hash.finalize();
    hex(digest.first_chunk::<16>().unwrap_or(&[0; 16]))
}
