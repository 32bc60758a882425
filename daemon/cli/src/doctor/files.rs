#![forbid(unsafe_code)]
//! The files that both halves trust: who can write them, who can read them, and whether they say what they
//! should.

use super::Check;
use crate::out::count;
use crate::token::store;
use crate::{audit, clock, files};
use gloveportd::config::Config;
use gloveportd::paths::Paths;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Room for records below which somebody should look, bytes.
const LITTLE: u64 = 256 * 1024 * 1024;
/// Room below which records will soon be refused, and runs with them, bytes.
const NOTHING: u64 = 1024 * 1024;

/// Looks at the files.
pub fn examine(paths: &Paths) -> Vec<Check> {
    let mut checks = owners(paths);
    checks.extend(secrets(paths));
    checks.push(tokens(paths));
    checks.push(settings(paths));
    checks.push(room(paths));
    checks.push(chain(paths));
    checks
}

/// What the helper trusts belongs to root, and nobody else can put something else in its place.
fn owners(paths: &Paths) -> Vec<Check> {
    let owner = if paths.state.is_some() { rustix::process::geteuid().as_raw() } else { 0 };
    let trusted =
        [&paths.catalog, &paths.signature, &paths.trusted_signers, &paths.tokens, &paths.daemon_config];
    let present: Vec<_> = trusted.into_iter().filter(|path| path.exists()).collect();
    let exposed: Vec<Check> = present
        .iter()
        .filter_map(|path| files::exposed(path, owner))
        .map(|reason| {
            Check::fail(
                "owners",
                reason,
                "chown root and chmod go-w what is named; the helper refuses it as it is",
            )
        })
        .collect();
    if exposed.is_empty() {
        return vec![Check::ok("owners", format!("safe from other users: {}", count(present.len(), "file")))];
    }
    exposed
}

/// What only root may read.
fn secrets(paths: &Paths) -> Vec<Check> {
    let credentials =
        fs::read_dir(&paths.credentials).into_iter().flatten().flatten().map(|entry| entry.path());
    let private = [paths.host_key.clone(), paths.audit.clone()].into_iter().chain(credentials);
    let open: Vec<Check> = private
        .filter_map(|path| {
            let mode = fs::metadata(&path).ok()?.mode() & 0o7777;
            (mode & 0o077 != 0).then(|| {
                Check::fail(
                    "secrets",
                    format!("{} can be read by others (mode {mode:04o})", path.display()),
                    format!("chmod 600 {}", path.display()),
                )
            })
        })
        .collect();
    if open.is_empty() {
        vec![Check::ok("secrets", "keys, credentials and the audit log are root's alone")]
    } else {
        open
    }
}

fn tokens(paths: &Paths) -> Check {
    let tokens = match store::read(paths) {
        Ok(tokens) => tokens,
        Err(failure) => return Check::failure("tokens", &failure),
    };
    let is_over = |end: Option<u64>| end.is_some_and(|end| end <= clock::now());
    let living = tokens.tokens.iter().filter(|token| !is_over(token.scope.expires)).count();
    let users = tokens.local_users.iter().filter(|user| !is_over(user.scope.expires)).count();
    if living + users == 0 {
        return Check::fail(
            "tokens",
            "no token and no local user is valid: nobody may call, and without a token TCP is not listened on",
            "gloveport token add --name NAME, or gloveport token allow-user USER",
        );
    }
    let over = tokens.tokens.len() - living;
    if over > 0 {
        let remedy = "gloveport token list shows them, gloveport token revoke NAME removes them";
        return Check::warn("tokens", format!("{} valid, {over} expired", count(living, "token")), remedy);
    }
    Check::ok("tokens", format!("{}, {}", count(living, "token"), count(users, "local user")))
}

fn settings(paths: &Paths) -> Check {
    let remedy = "correct the file; the daemon does not start with it";
    match Config::load(&paths.daemon_config) {
        Err(error) => Check::fail("settings", error.to_string(), remedy),
        Ok(config) => match config.check_listen() {
            Err(problem) => Check::fail("settings", problem, remedy),
            Ok(()) if config.allow_remote => Check::warn(
                "settings",
                "allow_remote is set: other hosts can reach the daemon, and tokens travel unencrypted",
                "listen on loopback and use ssh (`gloveport stdio`), or a proxy that speaks TLS",
            ),
            Ok(()) => Check::ok("settings", "the daemon listens on this host alone"),
        },
    }
}

/// Without room for a record nothing runs (`--audit-full refuse`).
fn room(paths: &Paths) -> Check {
    let directory = paths.audit.parent().unwrap_or(Path::new("/"));
    let shown = directory.display();
    let found = match statvfs(directory) {
        Ok(found) => found,
        Err(error) => {
            return Check::fail(
                "audit_room",
                format!("{shown}: {error}"),
                "`gloveport init` makes the directory",
            );
        }
    };
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Check::fail(
            "audit_room",
            format!("{shown} is mounted read-only: nothing can be recorded, and so nothing runs"),
            format!("mount -o remount,rw the file system of {shown}"),
        );
    }
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let text = format!("{} MiB are free in {shown}", free >> 20);
    let remedy = "free some: with a full disk every run is refused";
    match free {
        0..NOTHING => Check::fail("audit_room", text, remedy),
        NOTHING..LITTLE => Check::warn("audit_room", text, remedy),
        _ => Check::ok("audit_room", text),
    }
}

fn chain(paths: &Paths) -> Check {
    if !paths.audit.exists() && !paths.audit_head.exists() {
        return Check::ok("audit_chain", "nothing is recorded yet");
    }
    match audit::examine(paths, None) {
        Err(failure) if !rustix::process::geteuid().is_root() => {
            Check::warn("audit_chain", failure.what(), failure.way_out().unwrap_or("sudo gloveport doctor"))
        }
        Err(failure) => Check::failure("audit_chain", &failure),
        Ok(report) => match report.faults.first() {
            None => {
                Check::ok("audit_chain", format!("{} records in all, and the chain is whole", report.records))
            }
            Some(fault) => Check::fail(
                "audit_chain",
                format!("{fault} ({} in all)", count(report.faults.len(), "fault")),
                "somebody with root's rights changed the log: `gloveport audit verify` names every place",
            ),
        },
    }
}
