#![forbid(unsafe_code)]
//! Sealed memory files: bytes that a program gets by descriptor and nobody can change any more.

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;

/// Makes one with these bytes, readable from its beginning.
///
/// # Errors
/// Those of memfd_create(2), `ENOSPC`.
pub fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let seals =
        SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn what_was_sealed_can_be_read_and_not_be_changed() {
        let mut file = File::from(sealed("test", b"text").unwrap());
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        assert_eq!(read, "text");
        assert!(file.write_all(b"more").is_err());
        assert!(file.set_len(0).is_err());
    }
}
