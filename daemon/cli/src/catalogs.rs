#![forbid(unsafe_code)]
//! The ready catalogues, and putting sources into force with the host's own key.

use crate::catalog::signing;
use crate::failure::Failure;
use crate::files;
use gloveport_contract::catalog::Catalog;
use gloveportd::catalog_source::{self, install};
use gloveportd::paths::Paths;
use std::path::{Path, PathBuf};

/// The ready catalogues that are loaded when none is named: reading, and nothing else.
pub const DEFAULT: [&str; 2] = ["linux-agent", "diagnostics"];
const INSTALLED: &str = "/usr/share/gloveport/catalogs";
const CHECKOUT: &str = "packaging/catalogs";

/// Where the default catalogues lie: in the checkout that this program was built from, else where the
/// package puts them, else below the current directory.
///
/// # Errors
/// They are nowhere.
pub fn defaults() -> Result<Vec<PathBuf>, Failure> {
    let executable = std::env::current_exe().unwrap_or_default();
    // target/release/gloveport: the checkout is three names up.
    let checkout = executable.ancestors().nth(3).map(|root| root.join(CHECKOUT));
    let places: Vec<PathBuf> =
        checkout.into_iter().chain([PathBuf::from(INSTALLED), PathBuf::from(CHECKOUT)]).collect();
    let complete = |place: &PathBuf| DEFAULT.iter().all(|name| place.join(name).is_dir());
    let place = places.iter().find(|place| complete(place)).ok_or_else(|| {
        let tried: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        Failure::new(format!("the ready catalogues are in none of {}", tried.join(", ")))
            .remedy("install the package, or run it in a checkout")
    })?;
    Ok(DEFAULT.iter().map(|name| place.join(name)).collect())
}

/// Builds sources.
///
/// # Errors
/// Every mistake of every file, with its place.
pub fn build(sources: &[PathBuf]) -> Result<Catalog, Failure> {
    catalog_source::build(sources).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::new(format!("the catalogue cannot be built\n{}", errors.join("\n")))
    })
}

/// Signs a catalogue with the host's key and puts it into force. Returns its digest.
///
/// # Errors
/// It cannot be written or signed.
pub fn put_into_force(catalog: &Catalog, paths: &Paths) -> Result<String, Failure> {
    let text = catalog_source::to_json(catalog)?;
    let digest = install::digest(text.as_bytes());
    let denied = |path: &Path, error: std::io::Error| files::denied("write to", path, &error);
    let file = install::place(&paths.config_dir, &text).map_err(|error| denied(&paths.config_dir, error))?;
    signing::sign(&paths.host_key, &file)?;
    install::activate(&paths.config_dir, &digest).map_err(|error| denied(&paths.config_dir, error))?;
    Ok(digest)
}
