#![forbid(unsafe_code)]
//! Where everything lies: on an installed host, or all in one state directory.

use std::path::{Path, PathBuf};

/// The files and directories of one helper. All are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The catalogue in force; may be a symbolic link made by root.
    pub catalog: PathBuf,
    /// Its signature; may be a symbolic link made by root.
    pub signature: PathBuf,
    /// Whose signatures count, as OpenSSH `allowed_signers` lines.
    pub trusted_signers: PathBuf,
    /// The tokens and their scopes.
    pub tokens: PathBuf,
    /// The directory of the database credentials.
    pub credentials: PathBuf,
    /// The socket for the daemon.
    pub socket: PathBuf,
    /// The directory of runs that wait for a person.
    pub pending: PathBuf,
    /// The audit chain.
    pub audit: PathBuf,
    /// Its head: the number and the hash of the last record.
    pub audit_head: PathBuf,
    /// HOME of every run: an empty directory that only root could fill.
    pub empty_home: PathBuf,
}

impl Paths {
    /// The paths of an installed host.
    pub fn installed() -> Self {
        Self::of(Path::new("/etc/gloveport"), Path::new("/run/gloveport"), Path::new("/var/log/gloveport"))
    }

    /// The paths within one state directory.
    pub fn in_state(directory: &Path) -> Self {
        Self::of(directory, directory, directory)
    }

    fn of(settings: &Path, runtime: &Path, logs: &Path) -> Self {
        Self {
            catalog: settings.join("catalog.json"),
            signature: settings.join("catalog.json.sig"),
            trusted_signers: settings.join("trusted_signers"),
            tokens: settings.join("tokens.json"),
            credentials: settings.join("credentials"),
            socket: runtime.join("helper.sock"),
            pending: runtime.join("pending"),
            audit: logs.join("audit.jsonl"),
            audit_head: logs.join("audit.head"),
            empty_home: runtime.join("empty"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_host_has_its_files_in_three_directories() {
        let paths = Paths::installed();
        assert_eq!(paths.catalog, Path::new("/etc/gloveport/catalog.json"));
        assert_eq!(paths.socket, Path::new("/run/gloveport/helper.sock"));
        assert_eq!(paths.audit, Path::new("/var/log/gloveport/audit.jsonl"));
    }

    #[test]
    fn a_state_directory_holds_everything() {
        let paths = Paths::in_state(Path::new("/tmp/s"));
        for path in [&paths.catalog, &paths.signature, &paths.socket, &paths.audit_head, &paths.empty_home] {
            assert_eq!(path.parent(), Some(Path::new("/tmp/s")));
        }
    }
}
