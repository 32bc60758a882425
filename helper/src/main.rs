#![deny(unsafe_code)] // Every module forbids it but `sys`, which the root of the crate cannot leave out.
//! `gloveport-helper`: the privileged half of gloveport. It verifies the catalogue, checks every request
//! again, confines and runs programs, and has every decision recorded. `AUDIT.md` is the way in.

mod actions;
mod args;
mod audit;
mod cgroup;
mod check;
mod child;
#[cfg(test)]
#[path = "../fuzz/src/subjects.rs"]
mod fuzz_subjects;
mod host;
mod in_force;
mod load;
mod log;
mod memfd;
mod notify;
mod parent;
mod passing;
mod paths;
mod pending;
mod privilege;
mod rlimit;
mod sandbox;
mod shared;
mod signers;
mod sshsig;
mod supervisor;
#[allow(unsafe_code, reason = "the module of raw system calls")]
mod sys;
mod tokens;
mod tree;
mod trusted_file;
mod users;
mod wire;

use args::Options;
use host::Host;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{Mode, umask};
use parent::Parent;
use std::fs::{self, DirBuilder, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    log::begin();
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(reason) => return fail(&reason, 64),
    };
    if let Some(text) = &options.print {
        return print(text);
    }
    if let Some(files) = &options.check {
        return match check::run(files, &options.paths, options.same_user) {
            Ok(line) => print(&format!("{line}\n")),
            Err(reason) => fail(&reason.to_string(), 1),
        };
    }
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => fail(&reason, 1),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(reason: &str, code: u8) -> ExitCode {
    log::error(reason);
    ExitCode::from(code)
}

/// Starts, in the order that AUDIT.md explains, and serves until it is told to stop.
fn serve(options: &Options) -> Result<(), String> {
    privilege::expect(options.same_user)?;
    // Nobody traces the helper, reads its memory or gets a core dump of it.
    nix::sys::prctl::set_dumpable(false).map_err(|errno| errno.desc())?;
    nix::sys::prctl::set_child_subreaper(true).map_err(|errno| errno.desc())?;
    umask(Mode::from_bits_truncate(0o077));
    let signals = signals()?;
    rlimit::raise_own_descriptors().map_err(|error| format!("raising RLIMIT_NOFILE: {error}"))?;
    let host = Host::look(options)?;
    make_empty_home(&options.paths.empty_home)?;
    if !options.same_user {
        pending::prepare(&options.paths.pending)?;
        privilege::reduce().map_err(|error| format!("giving up capabilities: {error}"))?;
    }
    Parent::start(options, &host, signals)?.serve();
    Ok(())
}

/// Blocks the signals that are handled, and has them delivered by a descriptor: there are no handlers.
fn signals() -> Result<SignalFd, String> {
    let mut handled = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT] {
        handled.add(signal);
    }
    handled.thread_block().map_err(|errno| errno.desc())?;
    SignalFd::with_flags(&handled, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|errno| errno.desc().to_owned())
}

/// HOME of every run: a directory in which nobody but root could put a file for the next one.
fn make_empty_home(path: &Path) -> Result<(), String> {
    let problem = |error: std::io::Error| format!("{}: {error}", path.display());
    match DirBuilder::new().mode(0o555).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(problem(error)),
        _ => {}
    }
    let status = fs::symlink_metadata(path).map_err(problem)?;
    if !status.is_dir() || fs::read_dir(path).map_err(problem)?.next().is_some() {
        return Err(format!(
            "{} is not an empty directory: it is HOME of every run; empty it",
            path.display()
        ));
    }
    fs::set_permissions(path, Permissions::from_mode(0o555)).map_err(problem)
}
