//! What is installed: the packages, the units, and a host that really boots.
//!
//! The machines are containers of systemd-nspawn with a systemd of their own as process 1; cgroup controllers
//! that the host keeps to itself are not in them, everything else is real.

mod confinement;
mod diagnostics;
mod doctor;
mod files;
mod guide;
mod life_cycle;
mod machine;
mod packages;
mod rpm;
mod units;

use gloveport_tests::programs;
use std::process::Command;

/// Runs a program in the repository and gives what it printed on stdout.
///
/// # Panics
/// With everything that it printed, where it fails.
fn output_of(program: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(words).current_dir(programs::repository()).env("CARGO_TARGET_DIR", programs::target());
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {}\n{said}{errors}", output.status);
    said
}
