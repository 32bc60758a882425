#![forbid(unsafe_code)]
//! The clock: tokens end by it, and records bear its time.

use super::Check;
use crate::clock;
use crate::token::store;
use gloveportd::paths::Paths;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// What a clock may be behind a file without anything being wrong, seconds: file systems of other hosts.
const SLACK: u64 = 60;

/// Looks at the clock.
pub fn examine(paths: &Paths) -> Vec<Check> {
    let mut checks = vec![against_files(paths, clock::now())];
    if paths.state.is_none() {
        checks.push(synchronised(paths));
    }
    checks
}

/// A clock that is behind what was written here makes ended tokens valid again.
fn against_files(paths: &Paths, now: u64) -> Check {
    let written = [&paths.tokens, &paths.catalog, &paths.trusted_signers, &paths.audit, &paths.audit_head];
    let newest = written.into_iter().filter_map(|path| Some((modified(path)?, path))).max();
    match newest {
        Some((time, path)) if time > now.saturating_add(SLACK) => Check::fail(
            "clock",
            format!(
                "it says {}, but {} was written at {}: while it is behind, tokens that have ended count again",
                clock::rfc3339(now),
                path.display(),
                clock::rfc3339(time)
            ),
            "set the clock (`timedatectl set-ntp true`); if it was ahead before, `touch` the file once it is right",
        ),
        _ => Check::ok("clock", format!("{}, and nothing here is newer", clock::rfc3339(now))),
    }
}

fn modified(path: &Path) -> Option<u64> {
    let time = fs::metadata(path).ok()?.modified().ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

fn synchronised(paths: &Paths) -> Check {
    let output = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .output();
    let answer = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let ending = store::read(paths).map_or(0, |tokens| {
        let scopes = tokens.tokens.iter().map(|token| &token.scope);
        let scopes = scopes.chain(tokens.local_users.iter().map(|user| &user.scope));
        scopes.filter(|scope| scope.expires.is_some() || scope.hours.is_some()).count()
    });
    let remedy = "timedatectl set-ntp true, or another time service";
    match answer.as_deref() {
        Ok("yes") => Check::ok("clock_sync", "it is synchronised"),
        Ok("no") => Check::warn(
            "clock_sync",
            format!("it is not synchronised: records bear its time, and {ending} tokens and users end by it"),
            remedy,
        ),
        _ => Check::warn("clock_sync", "timedatectl does not say whether it is synchronised", remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_clock_behind_what_was_written_is_found() {
        let directory = std::env::temp_dir().join(format!("gloveport-clock-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let paths = Paths::for_state(&directory);
        assert_eq!(against_files(&paths, 0).status, State::Ok);
        fs::write(&paths.tokens, "{}").unwrap();
        assert_eq!(against_files(&paths, clock::now()).status, State::Ok);
        let behind = against_files(&paths, clock::now() - 3600);
        assert_eq!(behind.status, State::Fail);
        assert!(behind.detail.contains("tokens.json"), "{behind:?}");
        fs::remove_dir_all(directory).unwrap();
    }
}
