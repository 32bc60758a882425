//! A cgroup v2 subtree that is delegated to a helper, as a service manager would.

use crate::{processes, scene};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A delegated group. Removed at the end, with what is below it.
#[derive(Debug)]
pub struct Delegated {
    /// Where it is.
    pub path: PathBuf,
    /// Where cgroup v2 had to be mounted for it.
    mounted: Option<PathBuf>,
}

impl Delegated {
    /// Makes one below the group of this process; `place` is where cgroup v2 is mounted where it is not yet.
    ///
    /// # Panics
    /// On a kernel without cgroup v2.
    pub fn make(place: &Path) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
        let there = mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            after.starts_with("cgroup2 ").then(|| before.split(' ').nth(4).map(PathBuf::from))?
        });
        let (root, mounted) = match there {
            Some(root) => (root, None),
            None => {
                scene::make_directory(place);
                run(Command::new("mount").args(["-t", "cgroup2", "none"]).arg(place));
                (place.to_owned(), Some(place.to_owned()))
            }
        };
        let path = root.join(format!("gloveport-test-{}", std::process::id()));
        fs::create_dir(&path).expect("making a cgroup");
        let name = std::ffi::CString::new("trusted.delegate").expect("a name");
        rustix::fs::setxattr(&path, name, b"1", rustix::fs::XattrFlags::empty()).expect("marking a cgroup");
        Self { path, mounted }
    }

    /// What starts a program in it: a program and its words, for [`crate::helper::Preparation`].
    pub fn starter(&self) -> Vec<String> {
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.path.display());
        ["/bin/sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }

    /// The groups of runs in it.
    pub fn runs(&self) -> Vec<PathBuf> {
        // None before the first helper has started in it.
        let entries = fs::read_dir(self.path.join("runs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// Kills whatever is in it.
    fn clear(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        let own = ["runs", "helper", ""].map(|name| self.path.join(name));
        let groups = self.runs().into_iter().chain(own);
        for group in groups.filter(|group| group.exists()) {
            processes::wait_until("the group is empty", Duration::from_secs(5), || {
                fs::remove_dir(&group).is_ok()
            });
        }
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.clear();
        }
        if let Some(place) = &self.mounted {
            run(Command::new("umount").arg(place));
        }
    }
}

fn run(command: &mut Command) {
    assert!(command.status().expect("starting a program").success(), "{command:?}");
}
