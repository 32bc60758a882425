#![forbid(unsafe_code)]
//! The child of one step: from a fork of the supervisor to the program, in the order that AUDIT.md explains.
//!
//! Every step has a name; the first that fails is reported with its errno, and nothing is executed.

mod identity;
mod paths;
mod stage;

pub use stage::{Failure, Stage};

use crate::in_force::Identity;
use crate::rlimit::{self, Rlimits};
use crate::sandbox::seccomp;
use crate::sys::execute::{GuardPage, execute};
use crate::sys::{descriptors, kernel, process};
use gloveport_contract::plan::{PlannedDirectory, PlannedPath};
use identity::at;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::resource::Resource;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::{Pid, getppid, setsid};
use seccompiler::BpfProgram;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// The first of the declared descriptors.
pub const GIVEN: RawFd = 3;
/// How likely the kernel is to end a run, rather than the helper, when memory runs out (proc(5)).
const OOM_SCORE: &str = "500";
/// Nothing of a program's memory goes into a core dump, also where a pipe ignores RLIMIT_CORE (core(5)).
const DUMP_NOTHING: &str = "0";

/// Everything that a step's child needs, made before the fork.
pub struct Child<'a> {
    /// Opens when it is this step's turn.
    pub gate: OwnedFd,
    /// Where a failure is reported; closed by a successful exec.
    pub report: OwnedFd,
    /// stdin, stdout, stderr.
    pub stdio: [OwnedFd; 3],
    /// Declared descriptors: at 3, 4 and so on.
    pub given: Vec<OwnedFd>,
    /// The executable.
    pub program: OwnedFd,
    /// The Landlock ruleset; none where the action may lack it.
    pub ruleset: Option<OwnedFd>,
    /// The system call filter.
    pub filter: &'a BpfProgram,
    /// The page that makes the exec the only one.
    pub page: GuardPage,
    /// Who it becomes; nobody else under `--same-user`.
    pub identity: Option<&'a Identity>,
    /// Capabilities left in the bounding set.
    pub bounding: Vec<u8>,
    /// Whether it gets an empty network namespace.
    pub network_namespace: bool,
    /// Whether the filter keeps its signals in, because Landlock does not.
    pub own_signals_only: bool,
    /// Resource limits, without RLIMIT_NOFILE.
    pub rlimits: Rlimits,
    /// RLIMIT_NOFILE, and the descriptor of the executable.
    pub open_files: u32,
    /// Where it starts.
    pub cwd: &'a PlannedDirectory<'a>,
    /// Paths that the caller gave.
    pub paths: &'a [PlannedPath<'a>],
    /// Its argv.
    pub argv: Vec<CString>,
    /// Its environment.
    pub environment: Vec<CString>,
    /// Who forked it, as the child sees it.
    pub supervisor: Pid,
}

impl Child<'_> {
    /// Waits for its turn and becomes the program. Never returns: nothing of the supervisor's life, such as
    /// the destructors of its descriptors, may run here.
    pub fn run(mut self) -> ! {
        let Err(failure) = self.prepare();
        // The supervisor reads it, or has gone; there is nobody else to tell.
        let _ = nix::unistd::write(&self.report, &failure.to_bytes());
        process::exit(127)
    }

    fn prepare(&mut self) -> Result<Infallible, Failure> {
        at(Stage::Inherited, self.keep_only_own())?;
        if !at(Stage::Turn, is_turn(self.gate.as_fd()))? {
            process::exit(0)
        }
        at(Stage::Signals, process::reset_signals())?;
        at(Stage::Session, setsid().map_err(Into::into))?;
        at(Stage::Stdio, self.place_stdio())?;
        if self.identity.is_some() {
            at(Stage::Proc, mark_process())?;
        }
        at(Stage::Limits, self.rlimits.apply())?;
        umask(Mode::from_bits_truncate(0o077));
        if self.network_namespace {
            at(Stage::Network, unshare(CloneFlags::CLONE_NEWNET).map_err(Into::into))?;
        }
        if let Some(identity) = self.identity {
            identity::become_identity(identity, &self.bounding)?;
        }
        at(Stage::Parent, self.die_with_supervisor())?;
        at(Stage::Keyring, leave_keyring())?;
        paths::enter(self.cwd)?;
        paths::look(self.paths)?;
        at(Stage::NoNewPrivs, prctl::set_no_new_privs().map_err(Into::into))?;
        if !prctl::get_no_new_privs().unwrap_or(false) {
            return Err(Failure { stage: Stage::NoNewPrivs, errno: 0 });
        }
        if let Some(ruleset) = &self.ruleset {
            at(Stage::Landlock, kernel::landlock_restrict(ruleset.as_fd()))?;
        }
        at(Stage::Descriptors, self.place_descriptors())?;
        at(Stage::OpenFiles, rlimit::lower(Resource::RLIMIT_NOFILE, self.open_files.into()))?;
        at(Stage::Seccomp, self.confine())?;
        let error = execute(self.executable(), self.page, &self.argv, &self.environment);
        Err(Failure { stage: Stage::Exec, errno: error.raw_os_error().unwrap_or(0) })
    }

    /// Closes what the supervisor holds for itself and for other steps, and moves the rest out of the way of
    /// the numbers that will be given out.
    fn keep_only_own(&mut self) -> io::Result<()> {
        let above = GIVEN + RawFd::try_from(self.given.len()).unwrap_or(RawFd::MAX);
        let executable = self.executable();
        let [stdin, stdout, stderr] = &mut self.stdio;
        let own = [&mut self.gate, &mut self.report, &mut self.program, stdin, stdout, stderr];
        let mut own: Vec<&mut OwnedFd> =
            own.into_iter().chain(&mut self.given).chain(&mut self.ruleset).collect();
        let mut keep = vec![0, 1, 2];
        keep.extend(own.iter().map(|fd| fd.as_raw_fd()));
        descriptors::close_all_except(&keep)?;
        for fd in &mut own {
            let mut moved = descriptors::duplicate(fd.as_fd(), above)?;
            if moved.as_raw_fd() == executable {
                moved = descriptors::duplicate(fd.as_fd(), executable + 1)?;
            }
            **fd = moved;
        }
        Ok(())
    }

    fn place_stdio(&self) -> io::Result<()> {
        for (number, fd) in (0..).zip(&self.stdio) {
            descriptors::place(fd.as_fd(), number, false)?;
        }
        Ok(())
    }

    /// The signal survives exec, and setresuid(2) clears it, so it is set after that. The supervisor may
    /// have gone just before.
    fn die_with_supervisor(&self) -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid() == self.supervisor { Ok(()) } else { Err(Errno::ESRCH.into()) }
    }

    fn place_descriptors(&self) -> io::Result<()> {
        for (number, fd) in (GIVEN..).zip(&self.given) {
            descriptors::place(fd.as_fd(), number, false)?;
        }
        descriptors::place(self.program.as_fd(), self.executable(), true)?;
        let first_undeclared = 3 + u32::try_from(self.given.len()).unwrap_or(0);
        descriptors::close_on_exec_from(first_undeclared)
    }

    /// The number that nobody can hold after the exec: RLIMIT_NOFILE itself.
    fn executable(&self) -> RawFd {
        RawFd::try_from(self.open_files).unwrap_or(RawFd::MAX)
    }

    /// Last of all: after it only exec, the report and the end are needed.
    fn confine(&self) -> io::Result<()> {
        // Not pthread_sigmask(3), whose error nix does not see.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        if self.own_signals_only {
            // Made here and not ahead: it names this process.
            let own = seccomp::own_signals(Pid::this()).map_err(io::Error::other)?;
            seccompiler::apply_filter(&own).map_err(|_| io::Error::last_os_error())?;
        }
        seccompiler::apply_filter(self.filter).map_err(|_| io::Error::last_os_error())
    }
}

/// Waits at the gate: one byte is the turn; the end of the pipe means that it never comes.
fn is_turn(gate: BorrowedFd<'_>) -> io::Result<bool> {
    loop {
        match nix::unistd::read(gate, &mut [0]) {
            Err(Errno::EINTR) => {}
            result => return Ok(result? == 1),
        }
    }
}

/// Makes the program the kernel's first choice when memory runs out, and keeps its memory out of core dumps.
fn mark_process() -> io::Result<()> {
    write_own("oom_score_adj", OOM_SCORE)?;
    write_own("coredump_filter", DUMP_NOTHING)
}

/// Writes to a file of this process in /proc, making sure that it is one: a mount over /proc could lead a
/// write by root elsewhere (CVE-2025-52881).
fn write_own(name: &str, value: &str) -> io::Result<()> {
    // Not by our own number, which in a PID namespace is somebody else's outside.
    let own = std::fs::read_link("/proc/self")?;
    let path = Path::new("/proc").join(own).join(name);
    let how = OpenHow::new()
        .flags(OFlag::O_WRONLY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let mut file = File::from(openat2(AT_FDCWD, &path, how)?);
    if fstatfs(&file)?.filesystem_type() != PROC_SUPER_MAGIC {
        return Err(Errno::EXDEV.into());
    }
    file.write_all(value.as_bytes())
}

/// Leaves the helper's session keyring for an empty one. Where keyrings are built out, or closed to us by a
/// filter that the program inherits too, there is nothing to leave.
fn leave_keyring() -> io::Result<()> {
    match kernel::join_new_keyring() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_cannot_be_read_is_neither_a_turn_nor_the_end() {
        let (gate, opener) = nix::unistd::pipe().unwrap();
        assert_eq!(is_turn(opener.as_fd()).unwrap_err().raw_os_error(), Some(libc::EBADF));
        nix::unistd::write(&opener, b"!").unwrap();
        assert!(is_turn(gate.as_fd()).unwrap());
        drop(opener);
        assert!(!is_turn(gate.as_fd()).unwrap());
    }
}
