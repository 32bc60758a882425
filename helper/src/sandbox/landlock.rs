#![forbid(unsafe_code)]
//! The Landlock ruleset of a run: built for exactly the rights that this kernel has, all of them required.
//!
//! Best effort is not for us: a right that silently is not handled is a promise that silently is not kept.

use super::network;
use gloveport_contract::catalog::Network;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// What may be done at and below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// List directories.
    List,
    /// Read files and list directories.
    Read,
    /// Read one program or its loader, and execute it.
    Execute,
    /// Read, and make, change and remove files.
    Write,
    /// Everything but executing and device files: the temporary directory of the run.
    Own,
    /// Connect to sockets by path: everywhere for the class `unix`, which names no places (ABI 9).
    Resolve,
}

impl Grant {
    fn rights(self) -> BitFlags<AccessFs> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => read,
            Self::Execute => make_bitflags!(AccessFs::{Execute | ReadFile}),
            Self::Write => read | make_bitflags!(AccessFs::{WriteFile | MakeReg | RemoveFile | Truncate}),
            Self::Own => {
                Self::Write.rights()
                    | make_bitflags!(AccessFs::{MakeDir | RemoveDir | MakeSym | MakeFifo | MakeSock | Refer | ResolveUnix})
            }
            Self::Resolve => AccessFs::ResolveUnix.into(),
        }
    }
}

/// An opened path and what may be done there.
#[derive(Debug)]
pub struct Place {
    /// The path, pinned.
    pub fd: OwnedFd,
    /// Whether it is a directory.
    pub directory: bool,
    /// What may be done.
    pub grant: Grant,
}

impl Place {
    /// The temporary directory of a run.
    ///
    /// # Errors
    /// Too many open descriptors.
    pub fn temporary(directory: &OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: directory.try_clone()?, directory: true, grant: Grant::Own })
    }
}

/// Builds the ruleset for this ABI (at least 1).
///
/// # Errors
/// What the kernel or the crate refuses: nothing is left out silently.
pub fn build(abi: u32, places: &[Place], network: &Network) -> Result<Option<OwnedFd>, RulesetError> {
    let abi = named(abi);
    let handled = AccessFs::from_all(abi);
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(handled)?;
    // In an empty namespace there is nobody to reach: a program may talk to itself there.
    let ports = if *network == Network::Namespace { BitFlags::EMPTY } else { AccessNet::from_all(abi) };
    if !ports.is_empty() {
        ruleset = ruleset.handle_access(ports)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    let mut ruleset = ruleset.create()?.set_compatibility(CompatLevel::HardRequirement);
    let for_files = AccessFs::from_file(abi);
    for place in places {
        let mut rights = place.grant.rights() & handled;
        if !place.directory {
            // The right to list means nothing on a file, and the kernel refuses the rule.
            rights &= for_files;
        }
        if !rights.is_empty() {
            ruleset = ruleset.add_rule(PathBeneath::new(place.fd.as_fd(), rights))?;
        }
    }
    if !ports.is_empty() {
        for port in network::connect_ports(network) {
            ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
        for port in network::bind_ports(network) {
            ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::BindTcp))?;
        }
    }
    Ok(ruleset.into())
}

fn named(abi: u32) -> ABI {
    match abi {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_never_includes_executing() {
        assert!(!Grant::Write.rights().contains(AccessFs::Execute));
        assert!(!Grant::Read.rights().contains(AccessFs::Execute));
        assert!(!Grant::Own.rights().contains(AccessFs::Execute));
        assert!(!Grant::Read.rights().contains(AccessFs::WriteFile));
    }

    #[test]
    fn a_newer_kernel_is_asked_for_the_newest_rights_we_know() {
        assert_eq!(named(gloveport_contract::promises::NEWEST_ABI), ABI::V9);
        assert_eq!(named(12), ABI::V9);
    }
}
