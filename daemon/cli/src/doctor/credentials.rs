#![forbid(unsafe_code)]
//! The credentials that signed actions name: the file, then what its account may do at the server.
//!
//! The file is opened here and never read. `gloveport-handler --check` reads it, as the account that the action
//! runs as, and answers without a word of it.

use super::{Check, State};
use crate::failure::Failure;
use crate::{accounts, catalog, files};
use gloveport_contract::catalog::{Action, Builtin, BuiltinConfig};
use gloveportd::paths::Paths;
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::Deserialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Largest credential that the helper takes, bytes.
const LARGEST: u64 = 64 * 1024;

/// Looks at each credential once for each server that it is for.
pub fn examine(paths: &Paths) -> Vec<Check> {
    // A catalogue that does not count is another check's finding, and starts nothing here.
    let counts = catalog::verify::check(&paths.catalog, &paths.trusted_signers, paths);
    let Some(catalog) = counts.ok().and_then(Result::ok).and_then(|_| catalog::load(&paths.catalog).ok())
    else {
        return Vec::new();
    };
    let mut servers: Vec<Server<'_>> = Vec::new();
    for server in catalog.actions.iter().filter_map(Server::of) {
        if !servers.iter().any(|known| known.is_same_as(&server)) {
            servers.push(server);
        }
    }
    if !servers.is_empty() && !rustix::process::geteuid().is_root() {
        return vec![Check::warn(
            "credentials",
            "only root may look at credentials",
            "sudo gloveport doctor",
        )];
    }
    servers.iter().flat_map(|server| server.examine(paths)).collect()
}

/// A server that a signed action reaches.
struct Server<'c> {
    action: &'c Action,
    builtin: Builtin,
    config: &'c BuiltinConfig,
}

impl<'c> Server<'c> {
    fn of(action: &'c Action) -> Option<Self> {
        let builtin = action.builtin.filter(|b| matches!(b, Builtin::MysqlQuery | Builtin::RedisCommand))?;
        Some(Self { action, builtin, config: action.builtin_config.as_ref()? })
    }

    /// Limits make no difference to what an account may do.
    fn is_same_as(&self, other: &Self) -> bool {
        let place = |server: &Self| {
            let BuiltinConfig { server, database, db, credential, commands, .. } = server.config.clone();
            (server, database, db, credential, commands)
        };
        self.builtin == other.builtin
            && self.action.run_as() == other.action.run_as()
            && self.action.groups == other.action.groups
            && place(self) == place(other)
    }

    fn examine(&self, paths: &Paths) -> Vec<Check> {
        let name = &self.action.name;
        let file = match &self.config.credential {
            None => None,
            Some(credential) => match open(&paths.credentials.join(credential)) {
                Ok(file) => Some(file),
                Err(check) => return vec![check.about(name)],
            },
        };
        let checks = match self.check(file, paths) {
            Ok(findings) => findings.into_iter().map(Finding::into_check).collect(),
            Err(failure) => vec![Check::failure("credentials", &failure)],
        };
        checks.into_iter().map(|check| check.about(name)).collect()
    }

    /// Starts the handler's own check.
    fn check(&self, credential: Option<File>, paths: &Paths) -> Result<Vec<Finding>, Failure> {
        let (uid, gid) = identity(self.action.run_as())?;
        let groups = self.action.groups.iter();
        let groups = groups.filter_map(|group| accounts::group(group.trim_start_matches('?')));
        let configuration =
            serde_json::to_string(self.config).map_err(|error| Failure::new(error.to_string()))?;
        let mut command = Command::new(paths.bin_dir.join("gloveport-handler"));
        command
            .args(["--check", self.builtin.as_str(), &configuration])
            .env_clear()
            .current_dir("/")
            .stdin(credential.map_or_else(Stdio::null, Stdio::from))
            .stderr(Stdio::null());
        let output = output_as(command, uid, gid, groups.collect())
            .map_err(|error| Failure::new(format!("gloveport-handler cannot be started: {error}")))?;
        let answer: Answer = serde_json::from_slice(&output.stdout).map_err(|_| {
            Failure::new(format!("gloveport-handler ended with {} and no answer", output.status))
        })?;
        match answer {
            Answer::Found { findings } => Ok(findings),
            Answer::Failed { error } => Err(Failure::new(error).remedy(format!(
                "correct the credential, the account or the server: `gloveport catalog show {}` names them",
                self.action.name
            ))),
        }
    }
}

impl Check {
    /// The same with the name of the action in front.
    fn about(mut self, action: &str) -> Self {
        self.detail = format!("{action}: {}", self.detail);
        self
    }
}

/// What the handler's check prints.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Found { findings: Vec<Finding> },
    Failed { error: String },
}

#[derive(Deserialize)]
struct Finding {
    status: State,
    detail: String,
    remedy: Option<String>,
}

impl Finding {
    fn into_check(self) -> Check {
        Check { name: "credentials", status: self.status, detail: self.detail, remedy: self.remedy }
    }
}

/// Opens a credential by the helper's rules; the first one that it breaks is the finding.
fn open(path: &Path) -> Result<File, Check> {
    let shown = path.display();
    let fail = |detail: String, remedy: String| Err(Check::fail("credentials", detail, remedy));
    // Neither a link is followed nor a FIFO waited for.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fail(
                format!("{shown} does not exist"),
                format!("write it (docs/credentials.md), owned by root: install -m 600 -o root FILE {shown}"),
            );
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return fail(format!("{shown} is a symbolic link"), "put the file itself there".to_owned());
        }
        Err(error) => return fail(format!("{shown}: {error}"), "put a regular file there".to_owned()),
    };
    let found = file.metadata().map_err(|error| {
        Check::fail("credentials", format!("{shown}: {error}"), "put a regular file there")
    })?;
    let mode = found.mode() & 0o7777;
    if !found.is_file() {
        return fail(format!("{shown} is not a regular file"), "put the file itself there".to_owned());
    }
    if found.uid() != 0 {
        let owner = accounts::name_of(found.uid());
        return fail(format!("{shown} belongs to {owner}"), format!("chown root {shown}"));
    }
    if mode != 0o600 && mode != 0o400 {
        return fail(
            format!("{shown} has mode {mode:04o}; a credential has 0600 or 0400"),
            format!("setfacl -b {shown}; chmod 600 {shown}; and change the password if others could read it"),
        );
    }
    if found.nlink() != 1 {
        return fail(format!("{shown} has other names too (hard links)"), "copy it anew".to_owned());
    }
    if found.len() > LARGEST {
        return fail(
            format!("{shown} is larger than {LARGEST} bytes"),
            "keep certificates beside it".to_owned(),
        );
    }
    match path.parent().and_then(|directory| files::exposed(directory, 0)) {
        Some(reason) => fail(reason, "chown root and chmod go-w what is named".to_owned()),
        None => Ok(file),
    }
}

/// The numbers of `run_as`: a name, or `uid:gid`.
fn identity(run_as: &str) -> Result<(u32, u32), Failure> {
    let numbers = run_as.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    match numbers {
        Some(numbers) => Ok(numbers),
        None => accounts::find(run_as).map(|account| (account.uid, account.gid)),
    }
}

/// Runs a program to its end as somebody else, and without a core file. The kernel keeps identities for each
/// thread: the one that starts the program ends with it.
fn output_as(mut command: Command, uid: u32, gid: u32, groups: Vec<u32>) -> io::Result<Output> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) })?;
    let started = thread::spawn(move || {
        let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        command.output()
    });
    started.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it has failed")))
}
