#![forbid(unsafe_code)]
//! Owners and modes of an installed host, as docs/install.md lists them: what others must not reach, and what
//! the daemon must.

use super::Check;
use crate::accounts;
use crate::out::count;
use gloveportd::paths::Paths;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A path and what it should be. Everything belongs to root.
struct Place {
    path: PathBuf,
    mode: u32,
    group: &'static str,
}

/// Compares. A state directory has other owners, and `gloveport up` sees to them.
pub fn examine(paths: &Paths) -> Vec<Check> {
    if paths.state.is_some() {
        return Vec::new();
    }
    let places: Vec<Place> = places(paths).into_iter().filter(|place| place.path.exists()).collect();
    let wrong: Vec<Check> = places.iter().filter_map(compare).collect();
    if wrong.is_empty() {
        return vec![Check::ok(
            "modes",
            format!("as they should be: {}", count(places.len(), "owner and mode")),
        )];
    }
    wrong
}

fn places(paths: &Paths) -> Vec<Place> {
    let place = |path: &Path, mode, group| Place { path: path.to_path_buf(), mode, group };
    let log = paths.audit.parent().unwrap_or(Path::new("/"));
    vec![
        place(&paths.config_dir, 0o755, "root"),
        place(&paths.catalog_sources, 0o755, "root"),
        place(&paths.catalog, 0o644, "root"),
        place(&paths.signature, 0o644, "root"),
        place(&paths.trusted_signers, 0o644, "root"),
        place(&paths.daemon_config, 0o640, accounts::DAEMON),
        place(&paths.tokens, 0o640, accounts::DAEMON),
        place(&paths.credentials, 0o700, "root"),
        place(log, 0o755, "root"),
        place(&paths.run_dir, 0o755, "root"),
        place(&paths.pending, 0o700, "root"),
        place(&paths.run_dir.join("empty"), 0o555, "root"),
        place(&paths.helper_socket, 0o660, accounts::DAEMON),
        place(&paths.mcp_socket, 0o666, "root"),
    ]
}

fn compare(place: &Place) -> Option<Check> {
    let shown = place.path.display();
    let found = match fs::metadata(&place.path) {
        Ok(found) => found,
        Err(error) => return Some(Check::fail("modes", format!("{shown}: {error}"), "run it as root")),
    };
    let mode = found.mode() & 0o7777;
    let remedy = format!("chown root:{} {shown} && chmod {:04o} {shown}", place.group, place.mode);
    let should = format!("it should be root:{} {:04o}", place.group, place.mode);
    if found.uid() != 0 || accounts::group(place.group).is_some_and(|gid| gid != found.gid()) {
        let owner = accounts::name_of(found.uid());
        let detail = format!("{shown} belongs to {owner}, group {}; {should}", found.gid());
        return Some(Check::fail("modes", detail, remedy));
    }
    if mode & !place.mode != 0 {
        let detail = format!("{shown} is open to more than it should be (mode {mode:04o}); {should}");
        return Some(Check::fail("modes", detail, remedy));
    }
    (mode != place.mode).then(|| {
        let detail = format!("{shown} is closed to some who need it (mode {mode:04o}); {should}");
        Check::warn("modes", detail, remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn open_is_worse_than_closed_and_both_are_found() {
        let path = std::env::temp_dir().join(format!("gloveport-modes-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        // Whoever runs the test owns the file: only root's is as it should be.
        let is_root = rustix::process::geteuid().is_root();
        let place = Place { path: path.clone(), mode: 0o640, group: "no-such-group" };
        let status = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            compare(&place).map(|check| check.status)
        };
        let expected = |state| if is_root { state } else { Some(State::Fail) };
        assert_eq!(status(0o640), expected(None));
        assert_eq!(status(0o644), expected(Some(State::Fail)));
        assert_eq!(status(0o600), expected(Some(State::Warn)));
        fs::remove_file(path).unwrap();
    }
}
