#![forbid(unsafe_code)]
//! The directory that a try-out lives in, held by one `gloveport up` at a time.

use super::Identity;
use crate::failure::Failure;
use crate::{accounts, address, files, out};
use gloveport_contract::volume;
use gloveportd::paths::Paths;
use rustix::fs::{FlockOperation, StatVfsMountFlags, flock, statvfs};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const DEFAULT: &str = "/run/gloveport-try";
/// Where the programs of the default state go when `/run` is mounted `noexec`, as Debian does it.
const EXECUTABLE: &str = "/var/lib/gloveport-try";
const LOCK: &str = "up.lock";
/// What a state directory may hold, beside full files of the audit chain, so that one that is something else besides is not opened to others.
const CONTENTS: &[&str] = &[
    LOCK,
    "catalog.d",
    "catalogs",
    "catalog.json",
    "catalog.json.sig",
    "trusted_signers",
    "tokens.json",
    "daemon.toml",
    "credentials",
    "pending",
    "audit.jsonl",
    "audit.head",
    "helper.sock",
    "mcp.sock",
    "bin",
    "host_key",
    "host_key.pub",
    "endpoint",
    "empty",
];

/// A state directory in use. Dropping it removes the sockets, and the directory where nobody named it.
pub struct State {
    /// Everything in it.
    pub paths: Paths,
    is_temporary: bool,
    _lock: File,
}

impl State {
    /// Opens the named directory, or the default one, and holds it.
    ///
    /// # Errors
    /// It cannot be made, is not safe from other users, or another `gloveport up` holds it.
    pub fn open(named: Option<PathBuf>, identity: &Identity) -> Result<Self, Failure> {
        let is_temporary = named.is_none();
        let directory = named.unwrap_or_else(|| default_directory(identity));
        make_reachable(&directory, identity)?;
        let lock = hold(&directory)?;
        let mut paths = Paths::for_state(&directory);
        if is_noexec(&directory) {
            if !is_temporary || identity.same_user {
                return Err(Failure::new(format!(
                    "{} is mounted noexec: no program can start there",
                    directory.display()
                ))
                .remedy("name a directory elsewhere: --state /var/lib/gloveport-try"));
            }
            files::directory(Path::new(EXECUTABLE), 0o755)?;
            paths.bin_dir = Path::new(EXECUTABLE).join("bin");
        }
        Ok(Self { paths, is_temporary, _lock: lock })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.paths.run_dir
    }

    /// What to do when one half does not run.
    pub fn how_to_examine(&self) -> String {
        let directory = self.directory().display();
        if self.is_temporary {
            return "keep the state for a look: `gloveport up --state DIR`, then `gloveport doctor --state DIR`".into();
        }
        format!("`gloveport doctor --state {directory}` examines it")
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for path in [&self.paths.helper_socket, &self.paths.mcp_socket, &address::note_of(&self.paths)] {
            // It may never have been made.
            let _ = fs::remove_file(path);
        }
        if !self.is_temporary {
            return;
        }
        if self.paths.bin_dir.starts_with(EXECUTABLE) {
            let _ = fs::remove_dir_all(EXECUTABLE);
        }
        if let Err(error) = fs::remove_dir_all(self.directory()) {
            out::note(format!("gloveport: cannot remove {}: {error}", self.directory().display()));
        }
    }
}

fn default_directory(identity: &Identity) -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return DEFAULT.into();
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    match own {
        Some(own) => own.join("gloveport-try"),
        None => std::env::temp_dir().join(format!("gloveport-try-{}", identity.account.uid)),
    }
}

/// Makes the directory, or checks one that is there: nobody else may write to it or to a directory above,
/// and the daemon's user must get to what lies in it.
fn make_reachable(directory: &Path, identity: &Identity) -> Result<(), Failure> {
    let own = rustix::process::geteuid().as_raw();
    let shown = directory.display();
    match fs::symlink_metadata(directory) {
        Err(_) => files::directory(directory, 0o755)?,
        Ok(found) if found.is_symlink() => {
            let target = fs::canonicalize(directory).map(|real| real.display().to_string());
            return Err(Failure::new(format!(
                "{shown} is a symbolic link, which could lead elsewhere tomorrow"
            ))
            .remedy(match target {
                Ok(target) => format!("name where it leads: --state {target}"),
                Err(_) => "it leads nowhere: name a directory with --state DIR".to_owned(),
            }));
        }
        Ok(found) if !found.is_dir() => {
            return Err(
                Failure::new(format!("{shown} is no directory")).remedy("name another with --state DIR")
            );
        }
        Ok(found) if found.uid() != own => {
            return Err(Failure::new(format!("{shown} belongs to {}", accounts::name_of(found.uid())))
                .remedy("name a directory of your own, or a new one, with --state DIR"));
        }
        Ok(found) if found.mode() & 0o005 != 0o005 && !identity.same_user => {
            if let Some(stranger) = stranger(directory) {
                return Err(Failure::new(format!(
                    "{shown} is closed to the user of the daemon and holds {stranger}"
                ))
                .remedy("name a directory that is used for nothing else, or a new one, with --state DIR"));
            }
            files::directory(directory, 0o755)?;
        }
        Ok(_) => {}
    }
    if let Some(reason) = files::exposed(directory, own) {
        return Err(Failure::new(format!("the state directory is not safe from other users: {reason}"))
            .remedy(
                "name a directory whose parents are root's, such as /var/lib/gloveport-try, with --state DIR",
            ));
    }
    match files::closed_parent(directory) {
        Some(parent) if !identity.same_user => Err(Failure::new(format!(
            "the daemon's user {} cannot reach {shown}: {} is closed to others",
            identity.account.name,
            parent.display()
        ))
        .remedy("name a directory elsewhere with --state DIR, for example below /tmp")),
        _ => Ok(()),
    }
}

/// Something in the directory that no state directory holds.
fn stranger(directory: &Path) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.into_iter().find(|name| !CONTENTS.contains(&name.as_str()) && volume::first(name).is_none())
}

fn hold(directory: &Path) -> Result<File, Failure> {
    let path = directory.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .open(&path)
        .map_err(|error| files::denied("write to", &path, &error))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let holder = fs::read_to_string(&path).unwrap_or_default();
        return Err(Failure::new(format!(
            "another `gloveport up` (process {}) is running on {}",
            holder.trim(),
            directory.display()
        ))
        .remedy("end it with Ctrl-C, or name another directory with --state DIR"));
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|error| files::denied("write to", &path, &error))?;
    Ok(file)
}

fn is_noexec(directory: &Path) -> bool {
    statvfs(directory).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Account;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("gloveport-up-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn somebody() -> Identity {
        let account = Account { name: "61001".into(), uid: 61001, gid: 61001 };
        Identity { account, same_user: false, is_chosen: true }
    }

    #[test]
    fn one_state_is_held_by_one_at_a_time_and_a_named_one_is_kept() {
        let directory = scratch("held");
        let first = State::open(Some(directory.clone()), &somebody()).unwrap();
        let second = State::open(Some(directory.clone()), &somebody()).err().unwrap();
        assert!(second.what().contains("another `gloveport up`"), "{second}");
        drop(first);
        State::open(Some(directory.clone()), &somebody()).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_link_is_no_state_directory_and_the_message_names_where_it_leads() {
        let directory = scratch("linked");
        files::directory(&directory, 0o755).unwrap();
        let link = scratch("link");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        let refused = make_reachable(&link, &somebody()).unwrap_err();
        assert!(refused.what().contains("is a symbolic link"), "{refused}");
        let real = fs::canonicalize(&directory).unwrap();
        assert!(refused.way_out().unwrap().ends_with(&format!("--state {}", real.display())), "{refused}");
        make_reachable(&real, &somebody()).unwrap();
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_closed_directory_is_opened_only_where_it_holds_nothing_else() {
        let directory = scratch("closed");
        files::directory(&directory, 0o700).unwrap();
        make_reachable(&directory, &somebody()).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o755);
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
        fs::write(directory.join("diary"), "dear").unwrap();
        let refused = make_reachable(&directory, &somebody()).unwrap_err();
        assert!(refused.what().contains("holds diary"), "{refused}");
        fs::remove_dir_all(directory).unwrap();
    }
}
