#![forbid(unsafe_code)]
//! `gloveport init`: an installed host is prepared, and nobody may call yet.

use crate::failure::{Failure, Outcome};
use crate::{accounts, catalogs, files, host_key, out};
use clap::Args;
use gloveport_contract::catalog::{Catalog, FORMAT};
use gloveportd::catalog_source::{self, diff};
use gloveportd::paths::Paths;
use std::fs;
use std::io::{self, BufRead, ErrorKind, IsTerminal};
use std::path::PathBuf;

/// Prepare this host: a signing key of its own, and the ready catalogues in force, with what stands in
/// catalog.d.
///
/// Shows what will be permitted that is not permitted now, and asks where there is a terminal. Makes no
/// token: nobody may call before `gloveport token add`. Running it again changes nothing that is as it
/// should be.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Sign without asking
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command.
///
/// # Errors
/// What cannot be prepared, or a no.
pub fn run(args: &InitArgs, paths: &Paths) -> Outcome {
    if paths.state.is_none() && !rustix::process::geteuid().is_root() {
        return Err(Failure::new("only root can prepare a host").remedy("sudo gloveport init"));
    }
    directories(paths)?;
    if host_key::ensure(paths)? {
        out::note(format!("made the host's signing key {}", paths.host_key.display()));
    }
    let catalog = catalogs::build(&sources(paths)?)?;
    if is_in_force(&catalog, paths)? {
        out::note("the catalogue in force is up to date");
        return Ok(0);
    }
    let changes = diff(&in_force(paths), &catalog);
    out::note("the catalogue will permit (+), no longer permit (-), or change (!):");
    changes.iter().for_each(|change| out::note(format!("  {change}")));
    if !args.yes && io::stdin().is_terminal() && !confirmed() {
        return Err(Failure::new("nothing was signed")
            .remedy("read what an action may do with `gloveport catalog show`, then run this again"));
    }
    let digest = catalogs::put_into_force(&catalog, paths)?;
    out::note(format!("in force: {} actions, SHA-256 {digest}", catalog.actions.len()));
    out::note("nobody may call yet: gloveport token add --name NAME, or gloveport token allow-user USER");
    Ok(0)
}

fn directories(paths: &Paths) -> Result<(), Failure> {
    files::directory(&paths.config_dir, 0o755)?;
    files::directory(&paths.catalog_sources, 0o755)?;
    files::directory(&paths.credentials, 0o700)?;
    if paths.state.is_none() {
        for name in [accounts::DAEMON, accounts::RUN] {
            accounts::find(name)?;
        }
        if let Some(log) = paths.audit.parent() {
            files::directory(log, 0o755)?;
        }
    }
    Ok(())
}

/// The ready catalogues, and the operator's own where there are any.
fn sources(paths: &Paths) -> Result<Vec<PathBuf>, Failure> {
    let mut sources = catalogs::defaults()?;
    let own = fs::read_dir(&paths.catalog_sources).into_iter().flatten().flatten();
    let is_yaml = |path: PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    if own.map(|entry| entry.path()).any(is_yaml) {
        sources.push(paths.catalog_sources.clone());
    }
    Ok(sources)
}

fn is_in_force(catalog: &Catalog, paths: &Paths) -> Result<bool, Failure> {
    let present = match fs::read(&paths.catalog) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(files::denied("read", &paths.catalog, &error)),
    };
    Ok(present == catalog_source::to_json(catalog)?.as_bytes() && paths.signature.exists())
}

/// What is permitted now; nothing, where there is no catalogue or none that this version reads.
fn in_force(paths: &Paths) -> Catalog {
    let text = fs::read(&paths.catalog).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or(Catalog { format: FORMAT, actions: Vec::new() })
}

fn confirmed() -> bool {
    out::note("sign it with the host's key? [y/N]");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
