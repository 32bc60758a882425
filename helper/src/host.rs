#![forbid(unsafe_code)]
//! What this host offers, found out once at the start: kernel layers, directories, the place of our programs.

use crate::args::Options;
use crate::cgroup::Cgroups;
use crate::privilege;
use crate::sandbox::{places, temporary};
use crate::supervisor::confine;
use crate::sys::execute::GuardPage;
use crate::sys::kernel;
use gloveport_contract::packet::Layer;
use gloveport_contract::promises;
use nix::unistd::{SysconfVar, sysconf};
use seccompiler::BpfProgram;
use std::fs;
use std::path::{Path, PathBuf};

/// The host, as runs see it.
#[derive(Debug)]
pub struct Host {
    /// The Landlock ABI that rulesets are built for; 0: none.
    pub landlock_abi: u32,
    /// The page whose address is the path of the only exec.
    pub page: GuardPage,
    /// Whether nobody can map anything below that page; otherwise one-shot exec is not promised.
    pub page_is_lowest: bool,
    /// A quarter of the address space.
    pub quarter: u64,
    /// Whether runs can have namespaces of their own.
    pub namespaces: bool,
    /// Why runs can have no temporary directory.
    pub no_temporary: Option<String>,
    /// A delegated cgroup, prepared.
    pub cgroups: Option<Cgroups>,
    /// What keeps a tree of processes from being walked: then only a cgroup ends one for certain.
    pub hidden_children: Option<&'static str>,
    /// The system call filter of every supervisor.
    pub supervisor_filter: BpfProgram,
    /// The directories of shared libraries.
    pub libraries: Vec<PathBuf>,
    /// `gloveport-handler`, beside our own executable.
    pub handler: PathBuf,
    /// Directories that no program with uid 0 may be given.
    pub protected: Vec<PathBuf>,
}

impl Host {
    /// Looks.
    ///
    /// # Errors
    /// What keeps the helper from starting, with the way out.
    pub fn look(options: &Options) -> Result<Self, String> {
        let size = sysconf(SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .and_then(|size| usize::try_from(size).ok())
            .ok_or("the size of a page is unknown")?;
        let lowest: usize = fs::read_to_string("/proc/sys/vm/mmap_min_addr")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or("/proc/sys/vm/mmap_min_addr cannot be read: mount /proc")?;
        let address = lowest.next_multiple_of(size).max(size);
        let page = GuardPage::map(address, size)
            .map_err(|error| format!("the page at {address:#x}, which one-shot exec needs: {error}"))?;
        let own = fs::read_link("/proc/self/exe").map_err(|error| format!("/proc/self/exe: {error}"))?;
        let handler = own.parent().unwrap_or(Path::new("/")).join("gloveport-handler");
        let directories = [&options.paths.catalog, &options.paths.socket, &options.paths.audit];
        let mut protected: Vec<PathBuf> =
            directories.into_iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
        protected.dedup();
        Ok(Self {
            landlock_abi: kernel::landlock_abi().min(promises::NEWEST_ABI),
            page,
            page_is_lowest: lowest > 0,
            quarter: address_space() / 4,
            namespaces: privilege::makes_namespaces(),
            no_temporary: no_temporary(options),
            cgroups: if options.same_user { None } else { Cgroups::take() },
            hidden_children: hidden_children(),
            supervisor_filter: confine::filter()
                .map_err(|error| format!("the system call filter of supervisors: {error}"))?,
            libraries: places::library_directories(),
            handler,
            protected,
        })
    }

    /// The layers, for `Status`.
    pub fn layers(&self) -> Vec<Layer> {
        let layer =
            |name: &str, present: bool, detail: String| Layer { name: name.to_owned(), present, detail };
        let abi = self.landlock_abi;
        let landlock = if abi == 0 {
            "not there: Linux 5.13 or newer with `landlock` in the kernel's lsm= list".to_owned()
        } else {
            format!("ABI {abi}{}", landlock_gaps(abi))
        };
        let page = self.page.address;
        let one_shot = if self.page_is_lowest {
            format!("guarded by the page at vm.mmap_min_addr ({page:#x})")
        } else {
            "vm.mmap_min_addr is 0, so programs can map the page that guards it: sysctl vm.mmap_min_addr=65536"
                .to_owned()
        };
        let cgroup = match &self.cgroups {
            None => {
                "no delegated cgroup v2 subtree: trees are ended by freezing and killing, memory is limited \
                     per process; `Delegate=yes` in the unit"
                    .to_owned()
            }
            Some(cgroups) if cgroups.limits_memory() => {
                format!("one per run, with {}", cgroups.limits().join(", "))
            }
            Some(_) => "one per run; the memory controller is not delegated".to_owned(),
        };
        let tree = self.hidden_children.unwrap_or("descendants are listed from /proc");
        vec![
            layer("landlock", abi > 0, landlock),
            // The helper itself does not start where filters cannot be loaded.
            layer("seccomp", true, "allow-list, default EPERM".to_owned()),
            layer("one_shot_exec", self.page_is_lowest, one_shot),
            layer("cgroup", self.cgroups.is_some(), cgroup),
            layer("tree_walk", self.hidden_children.is_none(), tree.to_owned()),
        ]
    }
}

/// Why `network: namespace` and `isolate_pids` are refused, and the way out.
pub const NO_NAMESPACES: &str = "namespaces need CAP_SYS_ADMIN, which the helper was started without: leave \
     out `network: namespace` and `isolate_pids`, or add CapabilityBoundingSet=CAP_SYS_ADMIN and \
     RestrictNamespaces=no to its unit (systemctl edit gloveport-helper)";

/// Why `private_tmp` is refused for uid 0, and the way out.
pub const NO_TEMPORARY_FOR_ROOT: &str = "there is no `private_tmp` for uid 0: to give a user namespace that account takes \
     CAP_SETFCAP, which the helper does not have; take another `run_as`, or declare a directory under `write`";

/// Why `private_tmp` is refused.
fn no_temporary(options: &Options) -> Option<String> {
    if options.same_user {
        return Some("there is no `private_tmp` under --same-user: to make one takes CAP_SETUID".to_owned());
    }
    temporary::try_host().err()
}

/// Why the processes of a run could be hidden from its supervisor.
fn hidden_children() -> Option<&'static str> {
    if !Path::new("/proc/thread-self/children").exists() {
        return Some(
            "/proc/PID/task/TID/children is missing (CONFIG_PROC_CHILDREN): only a cgroup ends trees",
        );
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    hides_processes(&mounts).then_some(
        "/proc is mounted with hidepid, which hides a run's processes from its supervisor: only a cgroup ends \
         trees that fork on; `Delegate=yes` in the unit",
    )
}

/// Whether /proc is mounted with `hidepid`.
fn hides_processes(mountinfo: &str) -> bool {
    mountinfo.lines().any(|line| {
        let Some((before, after)) = line.split_once(" - ") else { return false };
        before.split(' ').nth(4) == Some("/proc")
            && after
                .split([' ', ','])
                .filter_map(|option| option.strip_prefix("hidepid="))
                .any(|value| !matches!(value, "0" | "off"))
    })
}

/// What this ABI does not hold by itself.
fn landlock_gaps(abi: u32) -> &'static str {
    match abi {
        0..=3 => ": no port rules (Linux 6.7), no scopes for signals and abstract sockets (6.12)",
        4 | 5 => ": no scopes for signals and abstract sockets (Linux 6.12)",
        _ => "",
    }
}

/// The size of this process's address space: the stack is at its upper end, and that end is a power of two.
fn address_space() -> u64 {
    let on_the_stack = 0_u8;
    (std::ptr::from_ref(&on_the_stack).addr() as u64).checked_next_power_of_two().unwrap_or(1 << 47)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_processes_are_noticed() {
        let mount = |options: &str| format!("22 28 0:21 / /proc rw,nosuid shared:5 - proc proc {options}\n");
        assert!(hides_processes(&mount("rw,hidepid=invisible")));
        assert!(hides_processes(&mount("rw,gid=4,hidepid=2")));
        assert!(!hides_processes(&mount("rw,hidepid=off")));
        assert!(!hides_processes(&mount("rw")));
    }

    #[test]
    fn the_address_space_is_a_known_size() {
        // 39 to 48 bits on the machines that we know. The test's thread has its stack in a mapping, still
        // in the upper half.
        let bits = address_space().trailing_zeros();
        assert!((38..=48).contains(&bits), "{bits}");
    }
}
