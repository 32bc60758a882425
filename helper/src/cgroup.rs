#![forbid(unsafe_code)]
//! A cgroup v2 subtree of our own, where the service manager has delegated one (`Delegate=yes`): a group per
//! run, ended by one write, with limits for the run as a whole.
//!
//! Without a delegation nothing is touched: another manager owns the hierarchy.

use crate::sys::kernel;
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Delegated and prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    /// The subtree that is ours.
    root: PathBuf,
    /// Whether memory can be limited.
    memory: bool,
    /// Whether processes can be counted.
    pids: bool,
}

impl Cgroups {
    /// Takes possession of the delegated subtree: moves this process into a leaf, since a group with
    /// processes of its own can hand no controllers down, and turns the controllers on.
    pub fn take() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own_group(&groups)?;
        let root = mount_point(&fs::read_to_string("/proc/self/mountinfo").ok()?)?.join(own);
        is_delegated(&root).then_some(())?;
        let leaf = root.join("helper");
        make(&leaf).ok()?;
        fs::write(leaf.join("cgroup.procs"), "0").ok()?;
        let available = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let enable = |name: &str| {
            available.split_whitespace().any(|controller| controller == name)
                && fs::write(root.join("cgroup.subtree_control"), format!("+{name}")).is_ok()
        };
        Some(Self { memory: enable("memory"), pids: enable("pids"), root })
    }

    /// Whether a run's memory is limited as a whole; otherwise RLIMIT_AS limits each process.
    pub fn limits_memory(&self) -> bool {
        self.memory
    }

    fn path(&self, supervisor: Pid) -> PathBuf {
        self.root.join(format!("run-{supervisor}"))
    }

    /// Makes the group of a run.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(&self, supervisor: Pid, memory: u64, processes: u64) -> io::Result<RunGroup> {
        let path = self.path(supervisor);
        make(&path)?;
        if self.memory {
            fs::write(path.join("memory.max"), memory.to_string())?;
            // Without swap the limit is what it says; not every kernel has the file.
            let _ = fs::write(path.join("memory.swap.max"), "0");
        }
        if self.pids {
            fs::write(path.join("pids.max"), processes.to_string())?;
        }
        let writable = |name: &str| OpenOptions::new().write(true).open(path.join(name));
        Ok(RunGroup {
            members: writable("cgroup.procs")?,
            kill: writable("cgroup.kill")?,
            events: File::open(path.join("cgroup.events"))?,
            memory_events: File::open(path.join("memory.events")).ok(),
        })
    }

    /// Ends whatever is left of a run and removes its group. Called by the parent when a supervisor has gone.
    pub fn remove(&self, supervisor: Pid) {
        let path = self.path(supervisor);
        if fs::write(path.join("cgroup.kill"), "1").is_err() {
            return;
        }
        // The group stays busy until the last member is reaped.
        for _ in 0..20 {
            match fs::remove_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(Duration::from_millis(5)),
                _ => return,
            }
        }
        crate::log::warning(format_args!("{} is still busy", path.display()));
    }
}

/// The open control files of a run's group: no path is looked up after privilege is given up.
#[derive(Debug)]
pub struct RunGroup {
    members: File,
    kill: File,
    events: File,
    memory_events: Option<File>,
}

impl RunGroup {
    /// Puts a process into it.
    ///
    /// # Errors
    /// `EAGAIN` above the limit of processes.
    pub fn add(&mut self, process: Pid) -> io::Result<()> {
        self.members.write_all(process.to_string().as_bytes())
    }

    /// Kills every member, also those that are being forked at this moment, and waits until all have gone.
    pub fn end(&mut self, patience: Duration, mut reap: impl FnMut()) -> bool {
        if self.kill.write_all(b"1").is_err() {
            return false;
        }
        let end = Instant::now() + patience;
        loop {
            reap();
            if !self.is_populated() {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// Whether a process is left in it.
    pub fn is_populated(&mut self) -> bool {
        counter(&mut self.events, "populated") != Some(0)
    }

    /// How often the kernel killed a member for want of memory.
    pub fn memory_kills(&mut self) -> u64 {
        self.memory_events.as_mut().and_then(|events| counter(events, "oom_kill")).unwrap_or(0)
    }
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// systemd marks what it delegates with an extended attribute.
fn is_delegated(group: &Path) -> bool {
    ["trusted.delegate", "user.delegate"]
        .iter()
        .any(|name| kernel::attribute(group, name).is_ok_and(|value| value == b"1"))
}

/// The path of our group below the mount: the line with hierarchy 0 is cgroup v2.
fn own_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}

/// Where cgroup v2 is mounted.
fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let kind = after.split(' ').next()?;
        (kind == "cgroup2").then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// The number behind a key in a flat-keyed control file.
fn counter(file: &mut File, key: &str) -> Option<u64> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_v2_group_and_its_mount_are_found_beside_v1_hierarchies() {
        let groups = "12:pids:/x\n1:name=systemd:/y\n0::/system.slice/gloveport-helper.service\n";
        assert_eq!(own_group(groups), Some("system.slice/gloveport-helper.service"));
        assert_eq!(own_group("12:pids:/x\n"), None);
        let mounts = "30 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro\n\
                      41 30 0:36 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_point("30 25 0:26 / /sys rw - sysfs sysfs rw\n"), None);
    }
}
