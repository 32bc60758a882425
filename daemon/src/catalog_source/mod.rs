#![forbid(unsafe_code)]
//! The catalogue as an operator writes it: YAML sources become one `catalog.json` that is signed.
//!
//! Reading is strict and helpful at once. Every mistake of every file is reported in one go, as
//! `FILE:LINE:COLUMN: message` with the line and a caret, and says what would be right. What the sources
//! mean is decided by [`gloveport_contract::catalog::Catalog::check`], the same code that the helper runs
//! before it acts on a catalogue; nothing that it refuses leaves this module.

mod diff;
mod error;
pub mod install;
pub mod language;
pub mod lint;
mod message;
mod outline;
mod read;
mod script;
#[cfg(test)]
mod tests;

pub use diff::{Change, Direction, diff};
pub use error::{Place, SourceError};
pub use read::Sources;

use gloveport_contract::catalog::Catalog;
use gloveport_contract::limits;
use std::path::PathBuf;

/// Reads, checks and resolves all sources: directories with `*.yaml` and `*.yml`, or single files.
///
/// # Errors
/// Every problem of every file, in the order of the files and lines.
pub fn build(sources: &[PathBuf]) -> Result<Catalog, Vec<SourceError>> {
    Sources::read(sources).map(|sources| sources.catalog)
}

/// The text of `catalog.json`: pretty-printed, with a newline at its end. The same catalogue always yields
/// the same bytes, so that a review of the difference is a review of the change.
///
/// # Errors
/// The catalogue is larger than the helper reads.
pub fn to_json(catalog: &Catalog) -> Result<String, String> {
    let mut text = serde_json::to_string_pretty(catalog)
        .map_err(|error| format!("cannot write the catalogue: {error}"))?;
    text.push('\n');
    if text.len() > limits::CATALOG {
        return Err(format!(
            "the catalogue is {} bytes; the helper reads at most {}: split it over several hosts",
            text.len(),
            limits::CATALOG
        ));
    }
    Ok(text)
}
