//! `make bench`: how fast gloveport is, beside its alternatives, as one table.
//!
//! Each line is a ratio of two sides measured in one run, in turn; the absolute figures are this machine's. Words
//! name the parts to run (`make bench ARGS=call`); without any all run, and docs/benchmarks.md is written.

#![forbid(unsafe_code)]

mod calls;
mod fleet;
mod machine;
mod measure;
mod output;
mod rivals;
mod scale;
mod standing;
mod subject;
mod table;
mod ways;

use gloveport_tests::programs;
use std::process::ExitCode;
use table::Table;

/// Measures something, and adds its lines.
type Part = fn(&mut Table);

/// The parts, by name.
const PARTS: &[(&str, Part)] = &[
    ("call", calls::one),
    ("load", calls::many),
    ("rivals", rivals::ways_to_another_user),
    ("ufo", rivals::ufo),
    ("output", output::through_redaction),
    ("search", output::log_search),
    ("memory", standing::memory_when_idle),
    ("start", standing::cold_start),
    ("catalog", scale::catalog),
    ("clients", scale::clients),
    ("protocol", ways::protocol),
    ("ways", ways::ways),
    ("fleet", fleet::fifty_pairs),
];

fn main() -> ExitCode {
    // cargo adds a word of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let unknown = wanted.iter().find(|word| !PARTS.iter().any(|(name, _)| name == word));
    if let Some(unknown) = unknown {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        eprintln!("gloveport-bench: there is no part `{unknown}`; there are: {}", names.join(" "));
        return ExitCode::from(64);
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("gloveport-bench: the real helper is measured, as root; run it as root: sudo make bench");
        return ExitCode::FAILURE;
    }
    println!("{}", table::HEAD);
    let mut table = Table::default();
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(&mut table);
        }
    }
    if wanted.is_empty() {
        let place = programs::repository().join("docs/benchmarks.md");
        let page = format!("{}\n{}", machine::preface(), table.markdown());
        if let Err(error) = std::fs::write(&place, page) {
            eprintln!("gloveport-bench: {}: {error}", place.display());
            return ExitCode::FAILURE;
        }
        println!("\nwritten to {}", place.display());
    }
    ExitCode::SUCCESS
}
