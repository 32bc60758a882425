#![forbid(unsafe_code)]
//! The names of the child's preparation steps, as results, records and AUDIT.md have them.

/// A step of the preparation. Their order here is the order in which they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Closing what belongs to others.
    Inherited,
    /// Waiting for its turn.
    Turn,
    /// Default dispositions.
    Signals,
    /// An own session.
    Session,
    /// stdin, stdout, stderr.
    Stdio,
    /// OOM score and core dump filter.
    Proc,
    /// Resource limits.
    Limits,
    /// An empty network namespace.
    Network,
    /// Capability bounding set.
    Bounding,
    /// Locked securebits.
    Securebits,
    /// Supplementary groups.
    Groups,
    /// Real, effective and saved gid.
    Gid,
    /// Real, effective and saved uid.
    Uid,
    /// No capability in any set.
    Capabilities,
    /// Reading all of it back.
    Verify,
    /// Signal on the supervisor's death.
    Parent,
    /// An own session keyring.
    Keyring,
    /// Working directory.
    Cwd,
    /// The working directory is outside its roots.
    CwdRoots,
    /// A path parameter.
    Path,
    /// A path parameter is outside its roots.
    PathRoots,
    /// no_new_privs.
    NoNewPrivs,
    /// The Landlock domain.
    Landlock,
    /// Declared descriptors, the executable at its place, all others closed by exec.
    Descriptors,
    /// RLIMIT_NOFILE.
    OpenFiles,
    /// The filter.
    Seccomp,
    /// The exec itself.
    Exec,
}

/// All stages with their names, in order.
pub const STAGES: [(Stage, &str); 27] = [
    (Stage::Inherited, "inherited"),
    (Stage::Turn, "turn"),
    (Stage::Signals, "signals"),
    (Stage::Session, "session"),
    (Stage::Stdio, "stdio"),
    (Stage::Proc, "proc"),
    (Stage::Limits, "limits"),
    (Stage::Network, "network"),
    (Stage::Bounding, "bounding"),
    (Stage::Securebits, "securebits"),
    (Stage::Groups, "groups"),
    (Stage::Gid, "gid"),
    (Stage::Uid, "uid"),
    (Stage::Capabilities, "capabilities"),
    (Stage::Verify, "verify"),
    (Stage::Parent, "parent"),
    (Stage::Keyring, "keyring"),
    (Stage::Cwd, "cwd"),
    (Stage::CwdRoots, "cwd_roots"),
    (Stage::Path, "path"),
    (Stage::PathRoots, "path_roots"),
    (Stage::NoNewPrivs, "no_new_privs"),
    (Stage::Landlock, "landlock"),
    (Stage::Descriptors, "descriptors"),
    (Stage::OpenFiles, "open_files"),
    (Stage::Seccomp, "seccomp"),
    (Stage::Exec, "exec"),
];

/// A failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub stage: Stage,
    /// errno of the call that failed; 0 where none did.
    pub errno: i32,
}

impl Failure {
    /// Its bytes on the report pipe.
    pub fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [self.stage as u8, a, b, c, d]
    }

    /// The name of the stage and errno from a report; `None` when nothing was reported: the exec succeeded,
    /// or the child was killed before it.
    pub fn read(report: &[u8]) -> Option<(&'static str, i32)> {
        let [stage, a, b, c, d] = *report else {
            return None;
        };
        let name = STAGES.get(usize::from(stage)).map_or("unknown", |(_, name)| name);
        Some((name, i32::from_le_bytes([a, b, c, d])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_name_at_its_place() {
        for (index, (stage, name)) in STAGES.iter().enumerate() {
            assert_eq!(usize::from(*stage as u8), index, "{name}");
        }
    }

    #[test]
    fn a_report_reads_back() {
        let failure = Failure { stage: Stage::Cwd, errno: libc::ENOENT };
        assert_eq!(Failure::read(&failure.to_bytes()), Some(("cwd", libc::ENOENT)));
        assert_eq!(Failure::read(&[]), None);
        assert_eq!(Failure::read(&[255, 1, 0, 0, 0]), Some(("unknown", 1)));
    }
}
