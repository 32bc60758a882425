#![forbid(unsafe_code)]
//! What may be done here and who said so: the keys that may sign, the catalogue in force, and the sources of
//! the next one.

use super::Check;
use crate::out::count;
use crate::{catalog, files, host_key};
use gloveportd::catalog_source;
use gloveportd::helper::Status;
use gloveportd::paths::Paths;
use std::fs;

/// Looks at keys and catalogues; `helper` is what the helper says, where it answers.
pub fn examine(paths: &Paths, helper: Option<&Status>) -> Vec<Check> {
    let checks = [Some(keys(paths)), Some(in_force(paths, helper)), sources(paths)];
    checks.into_iter().flatten().collect()
}

fn keys(paths: &Paths) -> Check {
    let shown = paths.trusted_signers.display();
    let signers = match fs::read_to_string(&paths.trusted_signers) {
        Ok(signers) => signers,
        Err(error) => {
            let failure = files::denied("read", &paths.trusted_signers, &error);
            return Check::failure("keys", &failure);
        }
    };
    let lines = signers.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let number = lines.clone().count();
    if number == 0 {
        return Check::fail(
            "keys",
            format!("{shown} holds no key: nobody can sign a catalogue"),
            "put your reviewers' public keys there, or have `gloveport init` make one of this host",
        );
    }
    let trusted = format!("{} may sign", count(number, "key"));
    if !paths.host_key.exists() {
        return Check::ok("keys", format!("{trusted}; this host has none of its own"));
    }
    // It is root's alone; who is not root learns the rest.
    match host_key::public_half(&paths.host_key) {
        Ok(public) if signers.contains(&public) => {
            Check::ok("keys", format!("{trusted}, this host's own among them"))
        }
        Ok(_) => Check::warn(
            "keys",
            format!(
                "{trusted}, and {} is none of them: what it signs does not count",
                paths.host_key.display()
            ),
            "remove it, if reviewers sign elsewhere; `gloveport init` trusts it again",
        ),
        Err(failure) if rustix::process::geteuid().is_root() => Check::failure("keys", &failure),
        Err(_) => Check::ok("keys", trusted),
    }
}

fn in_force(paths: &Paths, helper: Option<&Status>) -> Check {
    if !paths.catalog.exists() {
        return Check::fail(
            "catalogue",
            format!("there is no catalogue at {}", paths.catalog.display()),
            "`gloveport init` prepares this host; your own: `gloveport catalog build DIR`, then `gloveport catalog sign`",
        );
    }
    let again = "build and sign it again, with a key that trusted_signers names";
    match catalog::verify::check(&paths.catalog, &paths.trusted_signers, paths) {
        Err(failure) => Check::failure("catalogue", &failure),
        Ok(Ok(verdict)) => Check::ok("catalogue", verdict),
        Ok(Err(reason)) if helper.is_some_and(|status| status.digest.is_some()) => Check::fail(
            "catalogue",
            reason,
            format!(
                "the one before stays in force until the helper is started again; then nothing runs: {again}"
            ),
        ),
        Ok(Err(reason)) => {
            Check::fail("catalogue", reason, format!("nothing runs until it is put right: {again}"))
        }
    }
}

/// The operator's own sources; `None` where there are none.
fn sources(paths: &Paths) -> Option<Check> {
    let place = &paths.catalog_sources;
    let is_source = |name: &str| name.ends_with(".yaml") || name.ends_with(".yml");
    let names = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = names.filter(|name| is_source(&name.to_string_lossy())).count();
    if number == 0 {
        return None;
    }
    let shown = place.display();
    Some(match catalog_source::build(std::slice::from_ref(place)) {
        Ok(_) => Check::ok("sources", format!("{} in {shown}, without a mistake", count(number, "file"))),
        Err(mistakes) => Check::warn(
            "sources",
            format!(
                "{shown} has {}, so no new catalogue can be built of it: {}",
                count(mistakes.len(), "mistake"),
                // Its place and what it is; lint shows the line too.
                mistakes
                    .first()
                    .map(ToString::to_string)
                    .unwrap_or_default()
                    .lines()
                    .next()
                    .unwrap_or_default()
            ),
            "`gloveport catalog lint` shows all of them",
        ),
    })
}
