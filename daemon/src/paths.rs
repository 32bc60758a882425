#![forbid(unsafe_code)]
//! Where everything lies: on an installed host, or in one state directory.

use std::path::{Path, PathBuf};

/// The environment variable that names a state directory.
pub const STATE_VARIABLE: &str = "GLOVEPORT_STATE";

/// Every path that the programs share.
///
/// A state directory (`--state DIR`, or `GLOVEPORT_STATE`) takes the place of `/etc/gloveport`,
/// `/run/gloveport` and `/var/log/gloveport` together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The directory that holds what an operator writes: `/etc/gloveport`, or the state directory.
    pub config_dir: PathBuf,
    /// The directory of the sockets: `/run/gloveport`, or the state directory.
    pub run_dir: PathBuf,
    /// The directory of the four programs that are not on `PATH`.
    pub bin_dir: PathBuf,
    /// The state directory, where one is in use.
    pub state: Option<PathBuf>,
    /// YAML sources of the catalogue.
    pub catalog_sources: PathBuf,
    /// Earlier and present catalogues, each in a directory named by its digest.
    pub catalogs: PathBuf,
    /// The catalogue in force.
    pub catalog: PathBuf,
    /// Its signature.
    pub signature: PathBuf,
    /// The keys that may sign a catalogue.
    pub trusted_signers: PathBuf,
    /// Token names, digests and scopes.
    pub tokens: PathBuf,
    /// The daemon's settings.
    pub daemon_config: PathBuf,
    /// Database credentials, one file each.
    pub credentials: PathBuf,
    /// The host's own signing key.
    pub host_key: PathBuf,
    /// Runs that wait for approval.
    pub pending: PathBuf,
    /// The audit chain.
    pub audit: PathBuf,
    /// Its head, which shows a cut tail.
    pub audit_head: PathBuf,
    /// The helper's socket.
    pub helper_socket: PathBuf,
    /// The daemon's socket for local users.
    pub mcp_socket: PathBuf,
}

impl Paths {
    /// The paths of an installed host.
    pub fn installed() -> Self {
        Self::build(
            Path::new("/etc/gloveport"),
            Path::new("/run/gloveport"),
            Path::new("/var/log/gloveport"),
            Path::new("/usr/libexec/gloveport"),
        )
    }

    /// The paths inside one state directory.
    pub fn for_state(dir: &Path) -> Self {
        let paths = Self::build(dir, dir, dir, &dir.join("bin"));
        Self { state: Some(dir.to_path_buf()), ..paths }
    }

    /// The state directory that was named on the command line, else the one in `GLOVEPORT_STATE`,
    /// else the installed paths. A relative directory is taken from the current one.
    pub fn from_env_or(state: Option<PathBuf>) -> Self {
        let named = state.or_else(|| std::env::var_os(STATE_VARIABLE).map(PathBuf::from));
        match named.filter(|dir| !dir.as_os_str().is_empty()) {
            Some(dir) => Self::for_state(&std::path::absolute(&dir).unwrap_or(dir)),
            None => Self::installed(),
        }
    }

    fn build(config: &Path, run: &Path, log: &Path, bin: &Path) -> Self {
        Self {
            config_dir: config.to_path_buf(),
            run_dir: run.to_path_buf(),
            bin_dir: bin.to_path_buf(),
            state: None,
            catalog_sources: config.join("catalog.d"),
            catalogs: config.join("catalogs"),
            catalog: config.join("catalog.json"),
            signature: config.join("catalog.json.sig"),
            trusted_signers: config.join("trusted_signers"),
            tokens: config.join("tokens.json"),
            daemon_config: config.join("daemon.toml"),
            credentials: config.join("credentials"),
            host_key: config.join("host_key"),
            pending: run.join("pending"),
            audit: log.join("audit.jsonl"),
            audit_head: log.join("audit.head"),
            helper_socket: run.join("helper.sock"),
            mcp_socket: run.join("mcp.sock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_holds_everything() {
        let paths = Paths::for_state(Path::new("/tmp/try"));
        assert_eq!(paths.catalog, Path::new("/tmp/try/catalog.json"));
        assert_eq!(paths.signature, Path::new("/tmp/try/catalog.json.sig"));
        assert_eq!(paths.audit_head, Path::new("/tmp/try/audit.head"));
        assert_eq!(paths.helper_socket, Path::new("/tmp/try/helper.sock"));
        assert_eq!(paths.bin_dir, Path::new("/tmp/try/bin"));
        assert_eq!(paths.state.as_deref(), Some(Path::new("/tmp/try")));
    }

    #[test]
    fn an_installed_host_uses_three_directories() {
        let paths = Paths::installed();
        assert_eq!(paths.tokens, Path::new("/etc/gloveport/tokens.json"));
        assert_eq!(paths.mcp_socket, Path::new("/run/gloveport/mcp.sock"));
        assert_eq!(paths.audit, Path::new("/var/log/gloveport/audit.jsonl"));
        assert_eq!(paths.state, None);
    }

    #[test]
    fn a_named_directory_becomes_absolute() {
        let paths = Paths::from_env_or(Some(PathBuf::from("relative")));
        assert!(paths.catalog.is_absolute());
        assert!(paths.catalog.ends_with("relative/catalog.json"));
    }
}
