#![forbid(unsafe_code)]
//! Resource limits of a run (getrlimit(2)): soft and hard alike, never above what the helper itself has.

use gloveport_contract::catalog::Limits;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// A stack as large as the usual default; an unlimited one would lower the base of all mappings.
const STACK: u64 = 8 << 20;

/// Limits with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rlimits(Vec<(Resource, u64)>);

impl Rlimits {
    /// The limits of a run. `quarter` is a quarter of the address space: with more a program could fill it
    /// down to the page that one-shot exec guards. `limits_memory`: a cgroup limits memory as a whole.
    ///
    /// RLIMIT_NOFILE is not among them: it follows when the executable is at its place.
    pub fn of(limits: &Limits, quarter: u64, limits_memory: bool) -> Self {
        let address_space = if limits_memory { quarter } else { limits.address_space().min(quarter) };
        let mut all = vec![
            (Resource::RLIMIT_CORE, 0),
            (Resource::RLIMIT_AS, address_space),
            (Resource::RLIMIT_STACK, STACK),
            (Resource::RLIMIT_NPROC, limits.processes()),
            (Resource::RLIMIT_FSIZE, limits.file_size()),
        ];
        if let Some(seconds) = limits.cpu_seconds() {
            all.push((Resource::RLIMIT_CPU, seconds));
        }
        Self(all)
    }

    /// Sets them for this process, for good.
    ///
    /// # Errors
    /// Those of setrlimit(2); a limit that is lower already stays as it is.
    pub fn apply(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|(resource, value)| lower(*resource, *value))
    }
}

/// Sets soft and hard to the value, or to the present hard limit where that is lower.
///
/// # Errors
/// Those of setrlimit(2).
pub fn lower(resource: Resource, value: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let value = value.min(hard);
    Ok(setrlimit(resource, value, value)?)
}

/// Raises our own soft limit of descriptors to the hard one: the executables of runs sit at high numbers.
///
/// # Errors
/// Those of setrlimit(2).
pub fn raise_own_descriptors() -> io::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(limits: &Rlimits, wanted: Resource) -> Option<u64> {
        limits.0.iter().find(|(resource, _)| *resource == wanted).map(|(_, value)| *value)
    }

    #[test]
    fn the_defaults_are_those_of_the_decisions() {
        let limits = Rlimits::of(&Limits::default(), 32 << 40, false);
        assert_eq!(value(&limits, Resource::RLIMIT_AS), Some(4 << 30));
        assert_eq!(value(&limits, Resource::RLIMIT_NPROC), Some(128));
        assert_eq!(value(&limits, Resource::RLIMIT_FSIZE), Some(64 << 20));
        assert_eq!(value(&limits, Resource::RLIMIT_CORE), Some(0));
        assert_eq!(value(&limits, Resource::RLIMIT_CPU), None);
    }

    #[test]
    fn a_cgroup_leaves_the_address_space_at_a_quarter() {
        let limits = Rlimits::of(&Limits::default(), 32 << 40, true);
        assert_eq!(value(&limits, Resource::RLIMIT_AS), Some(32 << 40));
    }
}
