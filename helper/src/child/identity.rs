#![forbid(unsafe_code)]
//! Giving up root, in the only order that works, and reading back that it is gone.
//!
//! Bounding set and securebits need CAP_SETPCAP and so come first; groups before gid before uid; and since
//! the securebits keep setresuid(2) from touching capabilities, these are cleared by hand afterwards.

use super::stage::{Failure, Stage};
use crate::in_force::Identity;
use crate::sys::kernel;
use caps::CapSet;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid};
use std::io;

/// NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each locked. KEEP_CAPS is not locked: ping aborts when
/// it cannot set it, and without capabilities it keeps nothing.
const SECUREBITS: u32 = 0xcf;

/// Becomes the identity, with only `bounding` left in the bounding set.
///
/// # Errors
/// The stage and its errno; the caller must end the process.
pub fn become_identity(identity: &Identity, bounding: &[u8]) -> Result<(), Failure> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    at(Stage::Bounding, kernel::drop_bounding(bounding))?;
    at(Stage::Securebits, kernel::set_securebits(SECUREBITS))?;
    at(Stage::Groups, setgroups(&groups).map_err(Into::into))?;
    at(Stage::Gid, setresgid(gid, gid, gid).map_err(Into::into))?;
    at(Stage::Uid, setresuid(uid, uid, uid).map_err(Into::into))?;
    for set in [CapSet::Ambient, CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
        at(Stage::Capabilities, caps::clear(None, set).map_err(|_| io::Error::last_os_error()))?;
    }
    if is_exactly(uid, gid, &groups) && has_no_capability() {
        Ok(())
    } else {
        Err(Failure { stage: Stage::Verify, errno: 0 })
    }
}

/// Names the stage of an error.
pub fn at<T>(stage: Stage, result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure { stage, errno: error.raw_os_error().unwrap_or(Errno::EIO as i32) })
}

/// Every id is the wanted one, and root cannot be had back.
fn is_exactly(uid: Uid, gid: Gid, groups: &[Gid]) -> bool {
    let uids = getresuid().is_ok_and(|ids| [ids.real, ids.effective, ids.saved] == [uid; 3]);
    let gids = getresgid().is_ok_and(|ids| [ids.real, ids.effective, ids.saved] == [gid; 3]);
    let sorted = |groups: &[Gid]| {
        let mut groups: Vec<u32> = groups.iter().map(|group| group.as_raw()).collect();
        groups.sort_unstable();
        groups
    };
    let groups = getgroups().is_ok_and(|now| sorted(&now) == sorted(groups));
    let regained = !uid.is_root() && setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok();
    uids && gids && groups && !regained
}

/// The ambient set is never larger than the permitted one.
fn has_no_capability() -> bool {
    [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable]
        .iter()
        .all(|set| caps::read(None, *set).is_ok_and(|set| set.is_empty()))
}
