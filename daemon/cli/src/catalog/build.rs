#![forbid(unsafe_code)]
//! `gloveport catalog build`.

use crate::failure::{Failure, Outcome};
use crate::out;
use gloveport_contract::catalog::Catalog;
use gloveportd::catalog_source::{self, SourceError, install};
use gloveportd::paths::Paths;
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Builds, and writes the result to the host or to a directory.
pub(super) fn run(sources: &[PathBuf], output: Option<&Path>, json: bool, paths: &Paths) -> Outcome {
    let own = [paths.catalog_sources.clone()];
    let sources = if sources.is_empty() { &own } else { sources };
    let catalog = match catalog_source::build(sources) {
        Ok(catalog) => catalog,
        Err(errors) => return Ok(report(&errors, json)),
    };
    let text = catalog_source::to_json(&catalog)?;
    let file = write(&text, output, paths)?;
    done(&catalog, &file, &install::digest(text.as_bytes()), json);
    Ok(0)
}

/// Tells all mistakes; yields the exit code.
pub(super) fn report(errors: &[SourceError], json: bool) -> u8 {
    if json {
        let errors: Vec<_> = errors
            .iter()
            .map(|error| {
                json!({"file": error.file, "line": error.place.map(|place| place.line),
                       "column": error.place.map(|place| place.column), "message": error.message})
            })
            .collect();
        out::json(&json!({ "errors": errors }));
    } else {
        errors.iter().for_each(out::note);
        out::note(out::count(errors.len(), "mistake"));
    }
    1
}

fn write(text: &str, output: Option<&Path>, paths: &Paths) -> Result<PathBuf, Failure> {
    let failed = |directory: &Path, error: io::Error| {
        Failure::new(format!("the catalogue cannot be written to {}: {error}", directory.display()))
            .remedy("run it as root, name a state directory (--state DIR), or another place (-o DIR)")
    };
    let Some(directory) = output else {
        return install::place(&paths.config_dir, text).map_err(|error| failed(&paths.config_dir, error));
    };
    let put = || {
        fs::create_dir_all(directory)?;
        // The signature of what lay here before would only mislead.
        match fs::remove_file(directory.join(install::SIGNATURE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = directory.join(install::CATALOG);
        install::write(&file, text.as_bytes()).map(|()| file)
    };
    put().map_err(|error| failed(directory, error))
}

fn done(catalog: &Catalog, file: &Path, digest: &str, json: bool) {
    if json {
        return out::json(&json!({"catalog": file, "digest": digest, "actions": catalog.actions.len()}));
    }
    out::line(file.display());
    out::note(format_args!("{}, SHA-256 {digest}", out::count(catalog.actions.len(), "action")));
    out::note(format_args!("not signed yet: gloveport catalog sign {}", file.display()));
}
