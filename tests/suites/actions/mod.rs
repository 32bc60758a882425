#![forbid(unsafe_code)]
//! Signed actions (the A rows) on the real pair: the language, values, filters, redaction, steps, scripts,
//! signatures, and the catalogues that are packaged or shown in the documentation.

mod diagnostics;
mod examples;
mod filters_and_scan;
mod interpreters;
mod language;
mod parameters;
mod paths;
mod redaction_corpus;
mod reload;
mod rows;
mod signers;
mod steps_scripts_fallbacks;
mod unsupported;

use gloveport_tests::{Pair, Scene, programs, scene};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs `gloveport` with the state directory of a scene.
fn gloveport(scene: &Scene, words: &[&str]) -> Output {
    Command::new(programs::built("gloveport"))
        .arg("--state")
        .arg(scene.state())
        .args(words)
        .env_remove("GLOVEPORT_URL")
        .env_remove("GLOVEPORT_TOKEN")
        .stdin(Stdio::null())
        .output()
        .expect("starting gloveport")
}

/// What a command printed, both streams.
fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs `gloveport` as a client of the pair, with its token.
fn as_client(pair: &Pair, words: &[&str]) -> Output {
    Command::new(programs::built("gloveport"))
        .args(words)
        .env("GLOVEPORT_URL", pair.url())
        .env("GLOVEPORT_TOKEN", pair.token.as_deref().unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .expect("starting gloveport")
}

/// A directory with one source file.
fn source(scene: &Scene, name: &str, text: &str) -> PathBuf {
    let directory = scene.root.join(name);
    scene::make_directory(&directory);
    fs::write(directory.join("tests.yaml"), text).expect("writing a source");
    directory
}

/// A copy of a directory of the repository's catalogues, run as the scene's user. `change` may adapt each
/// source to the scene.
fn adapted(scene: &Scene, catalog: &str, change: impl Fn(String) -> String) -> PathBuf {
    let place = scene.root.join("adapted");
    scene::make_directory(&place);
    let run_as = format!("\nrun_as: \"{0}:{0}\"\nrisk: ", scene.run.number);
    for entry in fs::read_dir(programs::repository().join(catalog)).expect("a catalogue").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a source");
        let is_source = entry.path().extension().is_some_and(|extension| extension == "yaml");
        let text = if is_source { change(text.replace("\nrisk: ", &run_as)) } else { text };
        fs::write(place.join(entry.file_name()), text).expect("writing a source");
    }
    place
}

/// The audit chain as text.
fn audit(state: &Path) -> String {
    fs::read_to_string(state.join("audit.jsonl")).expect("the audit chain")
}
