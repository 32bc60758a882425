#![forbid(unsafe_code)]
//! What confines the audit writer: no capability, and the few system calls that it makes.
//!
//! It stays uid 0, for an account of its own would be one more thing that could be misused, and root
//! without a capability and without a system call that takes a path, a pid or an address can do nothing
//! with its name. The files were opened before.

use nix::sys::signal::SigSet;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;
use std::fmt;

/// System calls of the writer, and what needs them.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_ppoll,           // waiting
    libc::SYS_recvmsg,         // new clients, and the next file
    libc::SYS_recvfrom,        // records
    libc::SYS_sendto,          // receipts, and asking for the next file
    libc::SYS_write,           // lines, and the log on stderr
    libc::SYS_pwrite64,        // the head
    libc::SYS_ftruncate,       // a line that was written in part
    libc::SYS_fdatasync,       // durable records
    libc::SYS_close,           // clients that go
    libc::SYS_clock_gettime,   // times, where the vDSO cannot tell
    libc::SYS_brk,             // memory
    libc::SYS_munmap,          // memory
    libc::SYS_mremap,          // memory
    libc::SYS_madvise,         // memory
    libc::SYS_restart_syscall, // waiting, after a stop signal
    libc::SYS_sigaltstack,     // the end of the main thread
    libc::SYS_exit_group,      // the end
];

/// A layer that could not be put on.
#[derive(Debug)]
pub enum ConfineError {
    /// Signals, groups or the dumpable flag.
    System(nix::errno::Errno),
    /// Capabilities.
    Capabilities(caps::errors::CapsError),
    /// The filter could not be built.
    Build(seccompiler::BackendError),
    /// The filter was not accepted.
    Apply(seccompiler::Error),
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(errno) => write!(f, "signals or groups: {}", errno.desc()),
            Self::Capabilities(error) => write!(f, "capabilities: {error}"),
            Self::Build(error) => write!(f, "seccomp: {error}"),
            Self::Apply(error) => write!(f, "seccomp: {error}"),
        }
    }
}

impl std::error::Error for ConfineError {}

/// Gives up everything that the writer does not need. Signals are blocked, for a service manager sends
/// them to all processes and the last records come after them.
pub fn confine(same_user: bool) -> Result<(), ConfineError> {
    SigSet::all().thread_block().map_err(ConfineError::System)?;
    nix::sys::prctl::set_dumpable(false).map_err(ConfineError::System)?;
    if !same_user {
        nix::unistd::setgroups(&[]).map_err(ConfineError::System)?;
        caps::clear(None, caps::CapSet::Bounding).map_err(ConfineError::Capabilities)?;
    }
    for set in
        [caps::CapSet::Ambient, caps::CapSet::Inheritable, caps::CapSet::Effective, caps::CapSet::Permitted]
    {
        caps::clear(None, set).map_err(ConfineError::Capabilities)?;
    }
    seccompiler::apply_filter(&program().map_err(ConfineError::Build)?).map_err(ConfineError::Apply)
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let only_if = |argument, operator, value: i32| {
        let value = u64::try_from(value).unwrap_or(u64::MAX);
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        SeccompRule::new(vec![condition]).map(|rule| vec![rule])
    };
    let mut rules: BTreeMap<_, _> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // Memory, but never code.
    let not_executable = SeccompCmpOp::MaskedEq(u64::from(libc::PROT_EXEC.unsigned_abs()));
    rules.insert(libc::SYS_mmap, only_if(2, not_executable, 0)?);
    // Whether a descriptor that came is open.
    rules.insert(libc::SYS_fcntl, only_if(1, SeccompCmpOp::Eq, libc::F_GETFD)?);
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?.try_into()
}
