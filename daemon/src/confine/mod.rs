#![forbid(unsafe_code)]
//! The daemon gives up what it does not need: executing, writing, connecting elsewhere.
//!
//! Landlock and seccomp bind the calling thread and the threads that it starts. So this happens before the
//! runtime is built: confined inside of it, a worker thread could still execute.

mod calls;

use crate::paths::Paths;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::fmt;
use std::path::Path;

/// The newest Landlock ABI whose rights are known here. A newer kernel enforces no more than these: what it
/// adds could forbid what the daemon needs.
const KNOWN: ABI = ABI::V7;

/// Where account names are looked up. The directory and not the file, which is replaced when it changes.
const ACCOUNTS: &str = "/etc";

/// What confines the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confinement {
    /// Whether Landlock holds what is read and written. A kernel without it leaves that to file modes.
    pub landlock: bool,
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.landlock { "seccomp, Landlock" } else { "seccomp, no Landlock in this kernel" })
    }
}

/// Why the daemon could not be confined: it must not serve then.
#[derive(Debug)]
pub enum ConfineError {
    /// The dumpable attribute.
    Process(rustix::io::Errno),
    /// Landlock is there and refused.
    Landlock(landlock::RulesetError),
    /// The filter could not be built.
    Filter(seccompiler::BackendError),
    /// The filter could not be loaded.
    Seccomp(seccompiler::Error),
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the daemon could not be confined (")?;
        match self {
            Self::Process(errno) => write!(f, "prctl: {errno}")?,
            Self::Landlock(error) => write!(f, "Landlock: {error}")?,
            Self::Filter(error) => write!(f, "seccomp filter: {error}")?,
            Self::Seccomp(error) => write!(f, "seccomp: {error}")?,
        }
        f.write_str(
            "): the service's own SystemCallFilter may forbid it; `gloveport doctor` looks at the unit",
        )
    }
}

impl std::error::Error for ConfineError {}

/// Confines the calling thread, and every thread that it starts from now on.
///
/// # Errors
/// A layer that the kernel has could not be put in force.
pub fn apply(paths: &Paths) -> Result<Confinement, ConfineError> {
    // What the daemon knows (tokens that pass through) is not for other programs of its user.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(ConfineError::Process)?;
    // Both layers set no_new_privs before they bind.
    let status = restrict(&paths.config_dir).map_err(ConfineError::Landlock)?;
    for filter in filters().map_err(ConfineError::Filter)? {
        seccompiler::apply_filter(&filter).map_err(ConfineError::Seccomp)?;
    }
    Ok(Confinement { landlock: matches!(status.landlock, LandlockStatus::Available { .. }) })
}

/// Reading settings, catalogue, tokens and account names; nothing else, and no TCP but what is bound already.
fn restrict(config_dir: &Path) -> Result<RestrictionStatus, landlock::RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::Signal)?;
    // systemd's notification socket is an abstract one in some containers.
    let notify_is_abstract =
        std::env::var_os("NOTIFY_SOCKET").is_some_and(|name| name.as_encoded_bytes().starts_with(b"@"));
    if !notify_is_abstract {
        ruleset = ruleset.scope(Scope::AbstractUnixSocket)?;
    }
    ruleset.create()?.add_rules(path_beneath_rules([config_dir, Path::new(ACCOUNTS)], read))?.restrict_self()
}

/// The programs in the order in which they are loaded; the strictest answer counts.
fn filters() -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let errno = |number: rustix::io::Errno| SeccompAction::Errno(number.raw_os_error().unsigned_abs());
    // The flags of clone3 are behind a pointer, out of a filter's sight. ENOSYS makes libc use clone.
    let absent =
        SeccompFilter::new(calls::absent(), SeccompAction::Allow, errno(rustix::io::Errno::NOSYS), arch)?;
    let allowed =
        SeccompFilter::new(calls::allowed()?, errno(rustix::io::Errno::PERM), SeccompAction::Allow, arch)?;
    Ok([absent.try_into()?, allowed.try_into()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::process::Command;

    /// Runs on a confined thread with a runtime built there, as the daemon does. Other tests go on
    /// unconfined.
    fn confined<T: Send + 'static>(test: impl FnOnce(tokio::runtime::Runtime) -> T + Send + 'static) -> T {
        std::thread::spawn(|| {
            apply(&Paths::for_state(&std::env::temp_dir())).expect("confined");
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("runtime");
            test(runtime)
        })
        .join()
        .expect("thread")
    }

    #[test]
    fn no_thread_can_execute_a_program() {
        let tries = confined(|runtime| {
            let execute = || Command::new("/bin/true").status().map_err(|error| error.kind());
            let from_worker = async { tokio::spawn(async move { execute() }).await.expect("task") };
            let from_blocking = async { tokio::task::spawn_blocking(execute).await.expect("task") };
            [execute(), runtime.block_on(from_worker), runtime.block_on(from_blocking)]
        });
        for result in tries {
            assert_eq!(result.expect_err("refused"), ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn nothing_is_written_and_little_is_read() {
        confined(|_runtime| {
            let denied = |result: std::io::Result<()>| {
                assert_eq!(result.expect_err("refused").kind(), ErrorKind::PermissionDenied);
            };
            denied(std::fs::write(std::env::temp_dir().join("gloveport-confined"), "x"));
            denied(std::fs::read("/proc/version").map(drop));
            denied(std::fs::remove_file("/etc/hostname"));
            assert!(std::fs::read("/etc/passwd").is_ok());
        });
    }

    #[test]
    fn only_unix_sockets_can_be_made() {
        confined(|runtime| {
            runtime.block_on(async {
                let tcp = tokio::net::TcpStream::connect("127.0.0.1:1").await.expect_err("refused");
                assert_eq!(tcp.kind(), ErrorKind::PermissionDenied);
                let (mut a, mut b) = tokio::net::UnixStream::pair().expect("pair");
                tokio::io::copy(&mut &b"x"[..], &mut a).await.expect("write");
                drop(a);
                assert_eq!(tokio::io::copy(&mut b, &mut tokio::io::sink()).await.expect("read"), 1);
            });
        });
    }

    #[test]
    fn the_runtime_works_as_before() {
        let sum = confined(|runtime| {
            runtime.block_on(async {
                let tasks = (0..100).map(|n| {
                    tokio::spawn(async move {
                        tokio::time::sleep(std::time::Duration::from_millis(n % 7)).await;
                        tokio::task::spawn_blocking(move || n).await.expect("blocking")
                    })
                });
                let mut sum = 0;
                for task in tasks.collect::<Vec<_>>() {
                    sum += task.await.expect("task");
                }
                sum
            })
        });
        assert_eq!(sum, 4950);
    }
}
