#![forbid(unsafe_code)]
//! What privilege the helper needs, and giving up the rest.

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};

/// What the parent keeps, where it was started with it, and why. Supervisors keep CAP_KILL alone, children
/// nothing.
const KEPT: [(Capability, &str); 7] = [
    (Capability::CAP_SETUID, "becoming run_as"),
    (Capability::CAP_SETGID, "becoming run_as"),
    (Capability::CAP_SETPCAP, "emptying the bounding set and locking the securebits"),
    (Capability::CAP_KILL, "ending runs of other users"),
    (Capability::CAP_CHOWN, "pipes belong to their program, the socket to the daemon's group"),
    (Capability::CAP_DAC_READ_SEARCH, "opening declared paths in directories of other users"),
    (
        Capability::CAP_SYS_ADMIN,
        "`network: namespace` and `isolate_pids`; the packaged unit does not grant it",
    ),
];

/// Whether the helper is what it was started as.
///
/// # Errors
/// Root under `--same-user`, or anybody else without it.
pub fn expect(same_user: bool) -> Result<(), String> {
    match (nix::unistd::geteuid().is_root(), same_user) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => {
            Err("--same-user is for a look without root: start it as another user, or leave the option out"
                .into())
        }
        (false, false) => {
            Err("gloveport-helper needs root to run programs as other users; --same-user is for a \
                               first look without, and is no trust boundary"
                .into())
        }
    }
}

/// Whether namespaces can be made.
pub fn makes_namespaces() -> bool {
    caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_ADMIN).unwrap_or(false)
}

/// Gives up every capability that is not needed.
///
/// # Errors
/// The kernel refuses, which would be a surprise.
pub fn reduce() -> Result<(), CapsError> {
    let wanted: CapsHashSet = KEPT.iter().map(|(capability, _)| *capability).collect();
    let had = caps::read(None, CapSet::Permitted)?;
    keep_only(&had.intersection(&wanted).copied().collect())
}

/// Leaves these capabilities permitted and effective, and none to pass on.
///
/// # Errors
/// One of them is not there to be kept.
pub fn keep_only(kept: &CapsHashSet) -> Result<(), CapsError> {
    caps::clear(None, CapSet::Ambient)?;
    caps::clear(None, CapSet::Inheritable)?;
    caps::set(None, CapSet::Effective, kept)?;
    caps::set(None, CapSet::Permitted, kept)
}
