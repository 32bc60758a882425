//! User numbers that no other test uses at the same time.
//!
//! RLIMIT_NPROC counts per user over all runs, and a test wants to see whether anything of its own is left: so
//! each has users of its own. They need not exist in `/etc/passwd`.

use crate::processes;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Above every ordinary user, below the numbers that container managers map.
const FIRST: u32 = 200_000;
const LAST: u32 = 200_999;

/// A user number, held until it is dropped; also when the process dies.
#[derive(Debug)]
pub struct Uid {
    /// The number, of the user and of its group.
    pub number: u32,
    // A lock on a file ends with the process that holds it.
    _lock: File,
}

impl Uid {
    /// The lowest one that nobody holds and that runs nothing.
    pub fn take() -> Self {
        let locks = Path::new("/run/gloveport-tests");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(locks).expect("making /run/gloveport-tests");
        for number in FIRST..=LAST {
            let lock = File::create(locks.join(number.to_string())).expect("creating a lock file");
            if lock.try_lock().is_ok() && processes::of(number).is_empty() {
                return Self { number, _lock: lock };
            }
        }
        panic!("every user number from {FIRST} to {LAST} is taken");
    }
}
