#![forbid(unsafe_code)]
//! A cgroup v2 subtree of our own, where the service manager has delegated one (`Delegate=yes`): `helper` for
//! ourselves, and `runs` with a group per run, ended by one write, with limits for the run as a whole.
//!
//! Whoever holds `runs/cgroup.kill` ends all runs at once. The audit writer does, and uses it when the parent
//! and all supervisors have gone; and a helper that starts, for what one before it has left.
//!
//! Without a delegation nothing is touched: another manager owns the hierarchy.

use crate::sys::kernel;
use gloveport_contract::catalog::Limits;
use nix::unistd::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Delegated and prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    /// Where the groups of the runs are.
    runs: PathBuf,
    /// The controllers that are ours to use.
    controllers: Vec<Controller>,
}

/// What a group can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }

    /// The file that takes the limit.
    fn file(self) -> &'static str {
        match self {
            Self::Memory => "memory.max",
            Self::Pids => "pids.max",
            Self::Cpu => "cpu.max",
        }
    }

    /// The limit as that file wants it.
    fn limit(self, limits: &Limits) -> String {
        match self {
            Self::Memory => limits.memory().to_string(),
            Self::Pids => limits.processes().to_string(),
            // Microseconds in each tenth of a second, the kernel's own period.
            Self::Cpu => format!("{} 100000", limits.cpu_percent().saturating_mul(1000)),
        }
    }
}

impl Cgroups {
    /// Takes possession of the delegated subtree: moves this process into a leaf, since a group with
    /// processes of its own can hand no controllers down, and turns the controllers on.
    pub fn take() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own_group(&groups)?;
        let root = mount_point(&fs::read_to_string("/proc/self/mountinfo").ok()?)?.join(own);
        is_delegated(&root).then_some(())?;
        let (leaf, runs) = (root.join("helper"), root.join("runs"));
        make(&leaf).ok()?;
        fs::write(leaf.join("cgroup.procs"), "0").ok()?;
        make(&runs).ok()?;
        let available = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let enable = |controller: &Controller| {
            let name = controller.name();
            available.split_whitespace().any(|available| available == name)
                && [&root, &runs]
                    .iter()
                    .all(|group| fs::write(group.join("cgroup.subtree_control"), format!("+{name}")).is_ok())
        };
        let controllers = Controller::ALL.into_iter().filter(enable).collect();
        Some(Self { runs, controllers })
    }

    /// Whether a run's memory is limited as a whole; otherwise RLIMIT_AS limits each process.
    pub fn limits_memory(&self) -> bool {
        self.controllers.contains(&Controller::Memory)
    }

    /// What is limited for each run as a whole, by the names of the files.
    pub fn limits(&self) -> Vec<&'static str> {
        self.controllers.iter().map(|controller| controller.file()).collect()
    }

    /// What ends all runs, whoever holds it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn kill_switch(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.runs.join("cgroup.kill"))
    }

    /// Ends what a helper before this one has left, and removes its groups: that one and a supervisor of its
    /// were killed together. Nobody else may be using the subtree. Yields how many groups there were.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn clear(&self) -> io::Result<usize> {
        self.kill_switch()?.write_all(b"1")?;
        let mut groups = 0;
        for entry in fs::read_dir(&self.runs)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                remove(&entry.path());
                groups += 1;
            }
        }
        Ok(groups)
    }

    fn path(&self, supervisor: Pid) -> PathBuf {
        self.runs.join(supervisor.to_string())
    }

    /// Makes the group of a run.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(&self, supervisor: Pid, limits: &Limits) -> io::Result<RunGroup> {
        let path = self.path(supervisor);
        make(&path)?;
        for controller in &self.controllers {
            fs::write(path.join(controller.file()), controller.limit(limits))?;
        }
        if self.limits_memory() {
            // Without swap the limit is what it says; not every kernel has the file.
            let _ = fs::write(path.join("memory.swap.max"), "0");
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
        if fs::write(path.join("cgroup.kill"), "1").is_ok() {
            remove(&path);
        }
    }
}

/// Removes a group whose members were killed; it stays busy until the last one has gone.
fn remove(group: &Path) {
    for _ in 0..20 {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(Duration::from_millis(5)),
            _ => return,
        }
    }
    crate::log::warning(format_args!("{} is still busy", group.display()));
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
    fn each_limit_is_written_as_its_file_wants_it() {
        let limits: Limits =
            serde_json::from_str(r#"{"memory": "64MiB", "processes": 20, "cpu_percent": 150}"#).unwrap();
        let written = Controller::ALL.map(|controller| (controller.file(), controller.limit(&limits)));
        let expected = [("memory.max", "67108864"), ("pids.max", "20"), ("cpu.max", "150000 100000")];
        assert_eq!(written, expected.map(|(file, limit)| (file, limit.to_owned())));
        assert_eq!(Controller::Cpu.limit(&Limits::default()), "100000 100000");
    }

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
