#![forbid(unsafe_code)]
//! `gloveport catalog …`: write, review and sign catalogues.

mod build;
mod keygen;
mod review;
mod show;
pub mod signing;
#[cfg(test)]
mod tests;
pub mod verify;

use crate::failure::{Failure, Outcome};
use crate::out;
use clap::Subcommand;
use gloveport_contract::catalog::Catalog;
use gloveportd::catalog_source::language;
use gloveportd::paths::Paths;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Write, review and sign catalogues.
#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Check the YAML sources and write catalog.json
    ///
    /// Every mistake of every file is shown with its line and column. The result goes to
    /// catalogs/DIGEST/catalog.json of the host (or of the state directory) and is not in force before it
    /// is signed. With -o it is written to another directory, and a signature that lies there is removed.
    Build {
        /// Directories with *.yaml and *.yml, or files [default: catalog.d of the host]
        #[arg(value_name = "DIR")]
        sources: Vec<PathBuf>,
        /// Write catalog.json to this directory instead
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// Print the result or the mistakes as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Sign a catalogue with ssh-keygen
    ///
    /// Shows first what it permits that the one in force does not. The signature is written beside the file;
    /// a catalogue of the host (or of the state directory) comes into force, catalogue and signature by one
    /// rename.
    Sign {
        /// The catalogue [default: the newest build of the host]
        file: Option<PathBuf>,
        /// The signing key; a public key signs through ssh-agent [default: host_key]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
    /// Verify a catalogue's signature and contents, as the helper does
    Verify {
        /// The catalogue [default: the one in force]
        file: Option<PathBuf>,
        /// Keys that may sign [default: trusted_signers of the host]
        #[arg(long, value_name = "FILE")]
        signers: Option<PathBuf>,
    },
    /// Show a catalogue, or one action of the one in force, for a reader
    Show {
        /// A catalog.json, or the name of an action
        #[arg(value_name = "FILE|ACTION")]
        what: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what is risky in the YAML sources
    ///
    /// Warnings are what somebody should decide about, notes what is worth knowing; what this host has of
    /// the programs is looked at too. Mistakes are shown as `build` shows them.
    Lint {
        /// Directories with *.yaml and *.yml, or files [default: catalog.d of the host]
        #[arg(value_name = "DIR")]
        sources: Vec<PathBuf>,
        /// Fail on warnings, not only on mistakes
        #[arg(long)]
        strict: bool,
        /// Print the findings as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Say in words what a change permits that was not permitted before
    ///
    /// `+` permits more, `!` something else, `-` less.
    Diff {
        /// A catalog.json, or a directory of YAML sources
        old: PathBuf,
        /// A catalog.json, or a directory of YAML sources
        new: PathBuf,
        /// Print the changes as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the sources, for editors
    Schema {
        /// Print the reference page instead, as Markdown
        #[arg(long)]
        reference: bool,
    },
    /// Make a signing key, and print the line that trusts it
    ///
    /// Without FILE it is the host's own key, without a passphrase, and trusted at once. With FILE
    /// ssh-keygen asks for a passphrase.
    Keygen {
        /// Where to write the private key
        file: Option<PathBuf>,
        /// A key in a hardware token (ed25519-sk)
        #[arg(long, requires = "file")]
        sk: bool,
    },
}

/// Runs a subcommand.
///
/// # Errors
/// What went wrong and the way out; exit code 1, or 64 for a wrong call.
pub fn run(command: &CatalogCommand, paths: &Paths) -> Outcome {
    match command {
        CatalogCommand::Build { sources, output, json } => {
            build::run(sources, output.as_deref(), *json, paths)
        }
        CatalogCommand::Sign { file, key } => signing::run(file.as_deref(), key.as_deref(), paths),
        CatalogCommand::Verify { file, signers } => verify::run(file.as_deref(), signers.as_deref(), paths),
        CatalogCommand::Show { what, json } => show::run(what, *json, paths),
        CatalogCommand::Lint { sources, strict, json } => review::lint(sources, *strict, *json, paths),
        CatalogCommand::Diff { old, new, json } => review::diff(old, new, *json),
        CatalogCommand::Schema { reference } => {
            out::text(&if *reference { language::reference_page() } else { language::json_schema() });
            Ok(0)
        }
        CatalogCommand::Keygen { file, sk } => keygen::run(file.as_deref(), *sk, paths),
    }
}

/// The bytes of a `catalog.json`, within the limit.
fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(format!("{} cannot be read: {error}", file.display()))
            .remedy("`gloveport catalog build DIR` makes one")
    };
    let most = gloveport_contract::limits::CATALOG;
    let mut bytes = Vec::new();
    fs::File::open(file)
        .map_err(unreadable)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > most {
        return Err(Failure::new(format!("{} is larger than {most} bytes", file.display())));
    }
    Ok(bytes)
}

/// Reads a `catalog.json` as the helper would, except for its signature.
fn parse(file: &Path, bytes: &[u8]) -> Result<Catalog, Failure> {
    let wrong = |problem: String| {
        Failure::new(format!("{}: {problem}", file.display()))
            .remedy("correct the YAML sources and build again; catalog.json is not edited by hand")
    };
    let catalog: Catalog = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    catalog.check().map_err(|error| wrong(error.to_string()))?;
    Ok(catalog)
}

/// The catalogue of a file.
///
/// # Errors
/// It cannot be read, or is none.
pub fn load(file: &Path) -> Result<Catalog, Failure> {
    parse(file, &bytes(file)?)
}
