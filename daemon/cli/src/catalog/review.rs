#![forbid(unsafe_code)]
//! `gloveport catalog lint` and `gloveport catalog diff`: what a reviewer reads before signing.

use super::{build, load};
use crate::failure::{Failure, Outcome};
use crate::out;
use gloveport_contract::catalog::{Catalog, FORMAT};
use gloveportd::catalog_source::lint::{self, Level};
use gloveportd::catalog_source::{self, Change, Direction, Sources};
use gloveportd::paths::Paths;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Reads the sources and says what is risky in them.
pub(super) fn lint(sources: &[PathBuf], strict: bool, json: bool, paths: &Paths) -> Outcome {
    let own = [paths.catalog_sources.clone()];
    let sources = match Sources::read(if sources.is_empty() { &own } else { sources }) {
        Ok(sources) => sources,
        Err(errors) => return Ok(build::report(&errors, json)),
    };
    let findings: Vec<lint::Finding> = sources.catalog.actions.iter().flat_map(lint::lint).collect();
    let warnings = findings.iter().filter(|finding| finding.level == Level::Warning).count();
    if json {
        let findings: Vec<_> = findings
            .iter()
            .map(|finding| {
                let at = finding.located(&sources);
                json!({"level": finding.level.as_str(), "action": finding.action, "key": finding.path,
                       "file": at.file, "line": at.place.map(|place| place.line),
                       "column": at.place.map(|place| place.column), "message": finding.text})
            })
            .collect();
        out::json(&json!({ "findings": findings }));
    } else {
        findings.iter().for_each(|finding| out::line(finding.located(&sources)));
        let [actions, warnings, notes] = [
            out::count(sources.catalog.actions.len(), "action"),
            out::count(warnings, "warning"),
            out::count(findings.len() - warnings, "note"),
        ];
        out::note(format_args!("{actions}, {warnings}, {notes}"));
    }
    Ok(u8::from(strict && warnings > 0))
}

/// Compares two catalogues, each a `catalog.json` or sources.
pub(super) fn diff(old: &Path, new: &Path, json: bool) -> Outcome {
    let changes = catalog_source::diff(&either(old)?, &either(new)?);
    if json {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| {
                json!({"action": change.action, "direction": direction(change.direction), "text": change.text})
            })
            .collect();
        out::json(&json!({ "changes": changes }));
        return Ok(0);
    }
    changes.iter().for_each(out::line);
    out::note(summary(&changes));
    Ok(0)
}

/// Shows what signing would change of what is in force, and which actions run an interpreter.
pub(super) fn before_signing(new: &Catalog, in_force: Option<&Path>) {
    for action in new.actions.iter().filter(|action| action.allow_interpreter) {
        out::note(format_args!("warning: `{}` may run an interpreter", action.name));
    }
    let Some(file) = in_force else {
        return;
    };
    let nothing = Catalog { format: FORMAT, actions: Vec::new() };
    let old = if file.exists() { load(file) } else { Ok(nothing) };
    match old {
        Ok(old) => {
            let changes = catalog_source::diff(&old, new);
            changes.iter().for_each(out::note);
            out::note(summary(&changes));
        }
        // It must not keep its own successor out.
        Err(failure) => out::note(format_args!("not compared with what is in force: {}", failure.what())),
    }
}

fn either(path: &Path) -> Result<Catalog, Failure> {
    let is_source = path.is_dir() || path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    if !is_source {
        return load(path);
    }
    catalog_source::build(&[path.to_path_buf()]).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::new(errors.join("\n"))
    })
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::More => "more",
        Direction::Other => "other",
        Direction::Less => "less",
        Direction::Words => "words",
    }
}

fn summary(changes: &[Change]) -> String {
    let count = |wanted| changes.iter().filter(|change| change.direction == wanted).count();
    match changes.is_empty() {
        true => "no change".to_owned(),
        false => format!(
            "{} permit more, {} something else, {} less",
            count(Direction::More),
            count(Direction::Other),
            count(Direction::Less)
        ),
    }
}
