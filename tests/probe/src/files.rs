//! Ways to read and to change files.

use crate::raw::{self, Outcome};
use crate::{number, text};

/// The attacks of this module. Nothing is created or changed where the path does not lead.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    let path = raw::pointer(text(args, 0));
    let here = libc::AT_FDCWD as usize;
    let open = |flags: i32| raw::call(libc::SYS_openat, &[here, path, flags as usize, 0o600]);
    Some(match subcommand {
        "open" => open(libc::O_RDONLY),
        // write PATH: an existing file.
        "write" => open(libc::O_WRONLY),
        "create" => open(libc::O_WRONLY | libc::O_CREAT),
        "tmpfile" => open(libc::O_RDWR | libc::O_TMPFILE),
        // open-truncate PATH: emptied without the right to write.
        "open-truncate" => open(libc::O_RDONLY | libc::O_TRUNC),
        "truncate" => raw::call(libc::SYS_truncate, &[path, 0]),
        "list" => list(text(args, 0)),
        "remove" => raw::call(libc::SYS_unlinkat, &[here, path, 0]),
        "make-directory" => raw::call(libc::SYS_mkdirat, &[here, path, 0o700]),
        "rename" => raw::call(libc::SYS_renameat2, &[here, path, here, raw::pointer(text(args, 1)), 0]),
        "link" => raw::call(libc::SYS_linkat, &[here, path, here, raw::pointer(text(args, 1)), 0]),
        "symlink" => raw::call(libc::SYS_symlinkat, &[path, here, raw::pointer(text(args, 1))]),
        "make-fifo" => raw::call(libc::SYS_mknodat, &[here, path, libc::S_IFIFO as usize | 0o600, 0]),
        // chmod PATH MODE
        "chmod" => raw::call(libc::SYS_fchmodat, &[here, path, number(args, 1)]),
        "chown" => raw::call(libc::SYS_fchownat, &[here, path, 0, 0, 0]),
        "chroot" => raw::call(libc::SYS_chroot, &[path]),
        "chdir" => raw::call(libc::SYS_chdir, &[path]),
        _ => return None,
    })
}

fn list(path: &str) -> Outcome {
    std::fs::read_dir(path).map(Iterator::count).map_err(|error| error.raw_os_error().unwrap_or(0))
}
