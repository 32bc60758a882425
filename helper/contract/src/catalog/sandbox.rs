#![forbid(unsafe_code)]
//! What the kernel will let a program do.

use super::action::is_default;
use crate::limits;
use crate::units::{Bytes, Millis};
use serde::{Deserialize, Serialize};

/// What may be read without being declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// Loader, libraries, `/usr/share`, `/etc`, `/proc`, `/sys` and a few devices.
    #[default]
    System,
    /// Loader and libraries only. `run_as: root` always has this one.
    Minimal,
}

/// What may be listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListScope {
    /// Every directory that the account may list.
    #[default]
    Everywhere,
    /// Only what may be read.
    Declared,
}

/// A class of sockets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkClass {
    /// AF_NETLINK: routes, socket diagnosis, generic.
    Netlink,
    /// AF_UNIX, with the places where system sockets live.
    Unix,
    /// UDP to anywhere, and TCP port 53.
    Dns,
    /// ICMP echo sockets, with the UDP that ping probes with.
    Icmp,
    /// TCP to these ports.
    Connect(Vec<u16>),
    /// TCP listeners on these ports.
    Bind(Vec<u16>),
}

/// What a program can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// No socket at all.
    #[default]
    None,
    /// An empty network namespace of its own.
    Namespace,
    /// The declared classes.
    Classes(Vec<NetworkClass>),
}

impl Network {
    /// The declared classes; none for `none` and `namespace`.
    pub fn classes(&self) -> &[NetworkClass] {
        match self {
            Self::Classes(classes) => classes,
            Self::None | Self::Namespace => &[],
        }
    }

    /// Whether it has sockets of this host's services.
    pub fn has_unix(&self) -> bool {
        self.classes().contains(&NetworkClass::Unix)
    }
}

/// A named group of further system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyscallGroup {
    /// `name_to_handle_at`, never `open_by_handle_at`.
    Handles,
    /// Memory policy.
    Numa,
    /// POSIX timers.
    Timers,
}

impl SyscallGroup {
    /// The word used in catalogues and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Handles => "handles",
            Self::Numa => "numa",
            Self::Timers => "timers",
        }
    }
}

/// A promise that a run may be told to go without, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// The file system rules: Landlock at all.
    Landlock,
    /// Nothing undeclared is written or truncated.
    NoWrite,
    /// TCP ports are held by the kernel.
    ConnectPorts,
    /// No abstract Unix socket outside the run.
    AbstractSockets,
    /// No signal to a process outside the run.
    Signals,
    /// No device ioctl.
    Ioctl,
    /// After the program has started, no second program.
    OneShotExec,
    /// A cgroup of its own.
    Cgroup,
}

impl Promise {
    /// The word used in catalogues and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::NoWrite => "no_write",
            Self::ConnectPorts => "connect_ports",
            Self::AbstractSockets => "abstract_sockets",
            Self::Signals => "signals",
            Self::Ioctl => "ioctl",
            Self::OneShotExec => "one_shot_exec",
            Self::Cgroup => "cgroup",
        }
    }
}

/// The sandbox of an action, a step or a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What may be read without being declared.
    #[serde(default, skip_serializing_if = "is_default")]
    pub base: Base,
    /// Files and trees to read; `"?/path"` may be absent on a host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read: Vec<String>,
    /// Files and trees to write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write: Vec<String>,
    /// What may be listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub list: ListScope,
    /// Programs that the program may start. Absent: one-shot exec, none at all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exec: Vec<String>,
    /// Sockets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: Network,
    /// Named groups of further system calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub syscalls: Vec<SyscallGroup>,
    /// Capabilities left in the bounding set only, for programs with file capabilities (`net_raw`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub bounding: Vec<String>,
    /// A PID namespace of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub isolate_pids: bool,
    /// A temporary directory of that size, gone with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_tmp: Option<Bytes>,
    /// Promises that the run may go without.
    #[serde(default, skip_serializing_if = "is_default")]
    pub may_lack: Vec<Promise>,
}

impl Sandbox {
    /// A path of `read` or `write` without its mark, and whether it may be absent.
    pub fn optional_path(declared: &str) -> (&str, bool) {
        declared.strip_prefix('?').map_or((declared, false), |path| (path, true))
    }
}

/// Resource limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Memory; see [`Limits::memory`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Largest file written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<Bytes>,
    /// Descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Processor time of one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Millis>,
    /// Processors; see [`Limits::cpu_percent`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u64>,
}

impl Limits {
    /// RLIMIT_NPROC and `pids.max`.
    pub fn processes(&self) -> u64 {
        self.processes.unwrap_or(limits::PROCESSES_DEFAULT)
    }
    /// `memory.max` where a cgroup is delegated, bytes.
    pub fn memory(&self) -> u64 {
        self.memory.map_or(limits::MEMORY_DEFAULT, |bytes| bytes.0)
    }
    /// RLIMIT_AS where no cgroup is, bytes: 4 GiB, or what the action asked for.
    pub fn address_space(&self) -> u64 {
        self.memory.map_or(limits::ADDRESS_SPACE_DEFAULT, |bytes| bytes.0)
    }
    /// RLIMIT_FSIZE, bytes.
    pub fn file_size(&self) -> u64 {
        self.file_size.map_or(limits::FILE_SIZE_DEFAULT, |bytes| bytes.0)
    }
    /// RLIMIT_NOFILE.
    pub fn open_files(&self) -> u64 {
        self.open_files.unwrap_or(limits::OPEN_FILES_DEFAULT)
    }
    /// RLIMIT_CPU in whole seconds, rounded up.
    pub fn cpu_seconds(&self) -> Option<u64> {
        self.cpu.map(|time| time.0.div_ceil(1000).max(1))
    }
    /// `cpu.max` where a cgroup is delegated, in hundredths of one processor.
    pub fn cpu_percent(&self) -> u64 {
        self.cpu_percent.unwrap_or(limits::CPU_PERCENT_DEFAULT)
    }
}
