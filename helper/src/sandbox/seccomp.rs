#![forbid(unsafe_code)]
//! The filter of a run: an allow-list, with ENOSYS where a library should fall back to an older call.
//!
//! One-shot exec rests on this module: `execveat` passes only with exactly the descriptor and the pointer
//! that the child itself uses, and no call that passes can put memory at that pointer again. The conditions
//! were attacked one by one; SECURITY.md says how, and what each of them closes.

use super::calls;
use super::{network, packed};
use crate::sys::execute::GuardPage;
use gloveport_contract::catalog::{Network, SyscallGroup};
use nix::unistd::Pid;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;

/// What a filter depends on. Filters are built once per distinct key when a catalogue is loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterKey {
    /// The classes of sockets.
    pub network: Network,
    /// Named groups of further calls.
    pub groups: Vec<SyscallGroup>,
    /// Whether the program may start declared children: then Landlock holds exec, not this filter.
    pub children: bool,
    /// Whether anything may be written: then metadata may be changed too.
    pub writes: bool,
    /// The descriptor of the executable: the run's RLIMIT_NOFILE.
    pub executable: u32,
}

/// The rules of the allow-list while it is put together.
#[derive(Default)]
pub struct Rules(BTreeMap<i64, Vec<SeccompRule>>);

impl Rules {
    /// Lets a call pass with any arguments.
    pub fn always(&mut self, call: libc::c_long) {
        self.0.insert(call, Vec::new());
    }

    /// Lets a call pass when a rule fits; several rules are alternatives.
    pub fn when(&mut self, call: libc::c_long, rule: SeccompRule) {
        match self.0.get_mut(&call) {
            // No rule at all means "always", which no further rule may narrow by accident.
            Some(rules) if rules.is_empty() => {}
            Some(rules) => rules.push(rule),
            None => {
                self.0.insert(call, vec![rule]);
            }
        }
    }

    /// The map that seccompiler takes.
    pub fn into_map(self) -> BTreeMap<i64, Vec<SeccompRule>> {
        self.0
    }
}

/// A rule of which every condition must hold.
pub fn all_of<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}

/// A condition on a 32-bit argument. Comparing 64 bits of an `int` could be dodged by setting the upper ones.
pub fn dword(argument: u8, operator: SeccompCmpOp, value: u32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
}

/// A condition on some bits of a 32-bit argument.
pub fn masked(argument: u8, mask: u32, value: u32) -> Result<SeccompCondition, BackendError> {
    dword(argument, SeccompCmpOp::MaskedEq(mask.into()), value)
}

/// A condition on a pointer.
fn qword(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
}

/// Builds the filter for a kernel of this Landlock ABI, with the guard page at its place.
///
/// # Errors
/// What seccompiler does not take; on an architecture it does not know, its name.
pub fn build(key: &FilterKey, abi: u32, page: GuardPage) -> Result<BpfProgram, BackendError> {
    packed::pack(rules(key, abi, page)?.into_map(), absent(abi))
}

/// A filter for kernels whose Landlock does not hold signals (below ABI 6): this process may signal itself,
/// so that it can abort, and its process group, which is in the run's own session. A child that it forks has
/// another number: it can signal its group, and abort by libc's last resort, an illegal instruction.
///
/// # Errors
/// What seccompiler does not take.
pub fn own_signals(own: Pid) -> Result<BpfProgram, BackendError> {
    /// Signals that come with input on a descriptor go to whomever these name. (FIOSETOWN, SIOCSPGRP.)
    const OWNER_OF_SOCKET: [u32; 2] = [0x8901, 0x8902];
    let own = own.as_raw() as u32;
    let stranger = || dword(0, SeccompCmpOp::Ne, own);
    let mut refused = Rules::default();
    refused.when(libc::SYS_kill, all_of([stranger()?, dword(0, SeccompCmpOp::Ne, 0)?])?);
    for call in [libc::SYS_tgkill, libc::SYS_tkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo] {
        refused.when(call, all_of([stranger()?])?);
    }
    refused.always(libc::SYS_pidfd_send_signal);
    for command in [libc::F_SETOWN, F_SETOWN_EX] {
        refused.when(libc::SYS_fcntl, all_of([dword(1, SeccompCmpOp::Eq, command as u32)?])?);
    }
    for request in OWNER_OF_SOCKET {
        refused.when(libc::SYS_ioctl, all_of([dword(1, SeccompCmpOp::Eq, request)?])?);
    }
    let eperm = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(refused.into_map(), SeccompAction::Allow, eperm, arch)?.try_into()
}

/// The command of fcntl(2), which the libc crate lacks.
const F_SETOWN_EX: libc::c_int = 15;

/// Calls that are answered with ENOSYS. clone3's flags are behind a pointer; EPERM would break threads in
/// Python, ENOSYS makes libraries use clone. openat2 could truncate below ABI 3, with its flags behind a
/// pointer as well.
fn absent(abi: u32) -> &'static [libc::c_long] {
    if abi < 3 { &[libc::SYS_clone3, libc::SYS_openat2] } else { &[libc::SYS_clone3] }
}

fn rules(key: &FilterKey, abi: u32, page: GuardPage) -> Result<Rules, BackendError> {
    let mut rules = Rules::default();
    for (call, _) in calls::BASE {
        rules.always(*call);
    }
    if key.writes {
        for (call, _) in calls::METADATA {
            rules.always(*call);
        }
    }
    for group in &key.groups {
        for call in calls::group(*group) {
            rules.always(*call);
        }
    }
    network::allow(&key.network, abi, &mut rules)?;
    files(abi, &mut rules)?;
    process(&mut rules)?;
    memory(page, &mut rules)?;
    rules.when(
        libc::SYS_execveat,
        all_of([
            dword(0, SeccompCmpOp::Eq, key.executable)?,
            qword(1, SeccompCmpOp::Eq, page.address as u64)?,
            dword(4, SeccompCmpOp::Eq, libc::AT_EMPTY_PATH as u32)?,
        ])?,
    );
    if key.children {
        rules.always(libc::SYS_execve);
    }
    Ok(rules)
}

/// Keeps `no_write` where Landlock has no right for truncation (below ABI 3), and `ioctl` where it has none
/// for devices (below ABI 5).
fn files(abi: u32, rules: &mut Rules) -> Result<(), BackendError> {
    if abi >= 3 {
        for (call, _) in calls::OPENING {
            rules.always(*call);
        }
    } else {
        for (call, flags) in calls::OPENING_FLAGS {
            let truncate = libc::O_TRUNC as u32;
            rules.when(*call, all_of([masked(*flags, truncate, 0)?])?);
            for mode in [libc::O_WRONLY, libc::O_RDWR] {
                rules.when(*call, all_of([masked(*flags, libc::O_ACCMODE as u32, mode as u32)?])?);
            }
        }
    }
    if abi >= 5 {
        // Pushing characters into a terminal's input is the way out of a session (CVE-2005-4890). Only the
        // lower half of the request counts: a 64-bit comparison is dodged by the upper one (CVE-2019-7303).
        rules.when(
            libc::SYS_ioctl,
            all_of([
                dword(1, SeccompCmpOp::Ne, libc::TIOCSTI as u32)?,
                dword(1, SeccompCmpOp::Ne, libc::TIOCLINUX as u32)?,
            ])?,
        );
    } else {
        for request in calls::HARMLESS_IOCTLS {
            rules.when(libc::SYS_ioctl, all_of([dword(1, SeccompCmpOp::Eq, *request as u32)?])?);
        }
    }
    Ok(())
}

/// New processes, and what a process may say about itself but not about another.
fn process(rules: &mut Rules) -> Result<(), BackendError> {
    /// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
    const NEW_NAMESPACES: u32 = 0x7e02_0000;
    rules.when(libc::SYS_clone, all_of([masked(0, NEW_NAMESPACES, 0)?])?);
    for call in [libc::SYS_prlimit64, libc::SYS_sched_setaffinity] {
        rules.when(call, all_of([dword(0, SeccompCmpOp::Eq, 0)?])?);
    }
    rules.when(
        libc::SYS_setpriority,
        all_of([dword(0, SeccompCmpOp::Eq, libc::PRIO_PROCESS)?, dword(1, SeccompCmpOp::Eq, 0)?])?,
    );
    rules.when(libc::SYS_personality, all_of([dword(0, SeccompCmpOp::Eq, u32::MAX)?])?);
    for option in calls::PRCTL {
        rules.when(libc::SYS_prctl, all_of([dword(0, SeccompCmpOp::Eq, *option as u32)?])?);
    }
    #[cfg(target_arch = "x86_64")]
    for code in calls::ARCH_PRCTL {
        rules.when(libc::SYS_arch_prctl, all_of([dword(0, SeccompCmpOp::Eq, code)?])?);
    }
    Ok(())
}

/// Nobody gets memory at the guard page: not by a fixed address, not by a low hint (the kernel rounds it up
/// to just there), not by a stack that grows down.
fn memory(page: GuardPage, rules: &mut Rules) -> Result<(), BackendError> {
    let grows = libc::MAP_GROWSDOWN as u32;
    let fixed = (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as u32;
    let above = (page.address + page.size) as u64;
    rules.when(libc::SYS_mmap, all_of([qword(0, SeccompCmpOp::Eq, 0)?, masked(3, fixed | grows, 0)?])?);
    rules.when(
        libc::SYS_mmap,
        all_of([
            qword(0, SeccompCmpOp::Ge, above)?,
            qword(0, SeccompCmpOp::Lt, 1 << 56)?,
            masked(3, grows, 0)?,
        ])?,
    );
    // Not to a fixed place, and not away from under a mapping that stays.
    rules.when(libc::SYS_mremap, all_of([masked(3, !(libc::MREMAP_MAYMOVE as u32), 0)?])?);
    Ok(())
}

#[cfg(test)]
mod tests;
