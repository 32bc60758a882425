#![forbid(unsafe_code)]
//! What must lie in a state directory before the two halves start.

use super::Identity;
use crate::failure::Failure;
use crate::token::store;
use crate::{accounts, catalogs, files, host_key, out};
use gloveport_contract::catalog::{Action, Catalog};
use gloveport_contract::token::Via;
use gloveportd::accounts::uid_of;
use gloveportd::paths::Paths;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The programs of gloveport.
const PROGRAMS: [&str; 4] = ["gloveport", "gloveportd", "gloveport-helper", "gloveport-handler"];
/// The name of the token that each start makes anew.
const TOKEN: &str = "try";

/// Prepares a state directory: programs, key, catalogue, directories and a token, whose secret it returns.
///
/// # Errors
/// The first of these that cannot be made.
pub fn prepare(paths: &Paths, sources: &[PathBuf], identity: &Identity) -> Result<String, Failure> {
    let catalog =
        if sources.is_empty() { catalogs::build(&ready_catalogs()?)? } else { catalogs::build(sources)? };
    accounts_exist(&catalog, identity)?;
    daemon_is_apart(&catalog, identity)?;
    programs(&paths.bin_dir)?;
    files::directory(&paths.catalog_sources, 0o755)?;
    files::directory(&paths.credentials, 0o700)?;
    files::directory(&paths.pending, 0o700)?;
    host_key::ensure(paths)?;
    catalogs::put_into_force(&catalog, paths)?;
    token(paths, identity)
}

fn ready_catalogs() -> Result<Vec<PathBuf>, Failure> {
    catalogs::defaults().map_err(|failure| {
        failure.remedy("name a directory of YAML files with --catalog DIR, or install the package")
    })
}

/// A program with the daemon's account could ask the helper in its name, so the helper would run no such
/// action. Nobody means that.
fn daemon_is_apart(catalog: &Catalog, identity: &Identity) -> Result<(), Failure> {
    let daemon = &identity.account;
    let is_daemons = |action: &&Action| uid_of(action.run_as()) == Some(daemon.uid);
    let action = catalog.actions.iter().find(is_daemons);
    match action.filter(|_| !identity.same_user) {
        None => Ok(()),
        Some(action) => Err(Failure::usage(format!(
            "the daemon would run as {}, and so would programs (the action `{}`): they could ask the helper in \
             its name, which refuses such actions",
            daemon.name, action.name
        ))
        .remedy("name another user with --daemon-user; without it the daemon runs as `gloveport`")),
    }
}

/// The account of the catalogue's programs must be there, or nothing would run. Where the daemon's account
/// was chosen by hand the accounts of the programs are the chooser's business as well.
fn accounts_exist(catalog: &Catalog, identity: &Identity) -> Result<(), Failure> {
    let uses = |name: &str| catalog.actions.iter().any(|action| action.run_as() == name);
    if identity.same_user || !uses(accounts::RUN) {
        return Ok(());
    }
    match accounts::find(accounts::RUN) {
        Ok(_) => Ok(()),
        Err(failure) if identity.is_chosen => {
            out::note(format!(
                "gloveport: {failure}\n  until then the actions that run as it are unsupported"
            ));
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// Copies the programs to where another user can run them: a checkout lies in a home directory as a rule.
fn programs(target: &Path) -> Result<(), Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot tell where this program lies: {error}")))?;
    let beside = own.parent().map(Path::to_path_buf).unwrap_or_default();
    let installed = Paths::installed().bin_dir;
    files::directory(target, 0o755)?;
    for name in PROGRAMS {
        let source = match name {
            "gloveport" => own.clone(),
            _ => [&beside, &installed]
                .into_iter()
                .map(|place| place.join(name))
                .find(|path| path.is_file())
                .ok_or_else(|| {
                    Failure::new(format!(
                        "{name} is neither in {} nor in {}",
                        beside.display(),
                        installed.display()
                    ))
                    .remedy("build all four programs (`make build`), or install the package")
                })?,
        };
        let target = target.join(name);
        copy(&source, &target).map_err(|error| {
            Failure::new(format!("cannot copy {} to {}: {error}", source.display(), target.display()))
        })?;
    }
    Ok(())
}

/// Copies a program. By way of another name: one that runs cannot be written to.
fn copy(source: &Path, target: &Path) -> io::Result<()> {
    let new = target.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut from = File::open(source)?;
    let mut to = File::create_new(&new)?;
    io::copy(&mut from, &mut to)?;
    to.set_permissions(Permissions::from_mode(0o755))?;
    fs::rename(&new, target)
}

/// A fresh token in place of the last start's; others stay.
fn token(paths: &Paths, identity: &Identity) -> Result<String, Failure> {
    let (token, secret) = store::mint(TOKEN, vec![Via::Header], store::everything())?;
    store::edit(paths, |tokens| {
        tokens.tokens.retain(|other| other.name != TOKEN);
        tokens.tokens.push(token);
        Ok(())
    })?;
    chown(&paths.tokens, None, Some(identity.account.gid))
        .map_err(|error| files::denied("give to the daemon's group", &paths.tokens, &error))?;
    Ok(secret)
}
