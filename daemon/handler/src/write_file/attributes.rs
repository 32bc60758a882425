#![forbid(unsafe_code)]
//! Extended attributes and the ACL, which is one of them.

use rustix::fd::BorrowedFd;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

/// Largest value of an attribute, bytes (`XATTR_SIZE_MAX` of Linux), and of the list of names.
const LARGEST: usize = 64 * 1024;

/// Copies them; gives the names of those that could not be copied. Labels and capabilities
/// (`security.*`) are left to the kernel: a label follows policy, and changed content loses capabilities.
pub fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Vec<String> {
    let mut names = vec![0; LARGEST];
    let length = match flistxattr(from, &mut names) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Vec::new(),
        Err(error) => return vec![format!("extended attributes ({error})")],
    };
    names.truncate(length);
    let mut lost = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if name.starts_with(b"security.") {
            continue;
        }
        let mut value = vec![0; LARGEST];
        let copied = fgetxattr(from, name, &mut value).and_then(|length| {
            value.truncate(length);
            fsetxattr(to, name, &value, XattrFlags::empty())
        });
        if copied.is_err() {
            lost.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    lost
}
