#![forbid(unsafe_code)]
//! `gloveport catalog verify`: the helper's own verifier, without privilege.

use crate::failure::{Failure, Outcome};
use crate::out;
use gloveportd::paths::Paths;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that verifies.
const HELPER: &str = "gloveport-helper";

/// Verifies a catalogue and says what the helper says.
pub(super) fn run(file: Option<&Path>, signers: Option<&Path>, paths: &Paths) -> Outcome {
    let file = file.unwrap_or(&paths.catalog);
    match check(file, signers.unwrap_or(&paths.trusted_signers), paths)? {
        Ok(verdict) => out::line(verdict),
        Err(reason) => return Err(Failure::new(reason)),
    }
    Ok(0)
}

/// Runs `gloveport-helper --check`: its verdict, or the reason why the catalogue does not count.
///
/// # Errors
/// The helper is not installed or does not start.
pub fn check(file: &Path, signers: &Path, paths: &Paths) -> Result<Result<String, String>, Failure> {
    let helper = helper(paths).ok_or_else(|| {
        Failure::new(format!("{HELPER} is neither beside this program nor in {}", paths.bin_dir.display()))
            .remedy("install the package, or build it: cargo build --release -p gloveport-helper")
    })?;
    let output = Command::new(&helper)
        .arg("--check")
        .args([file, signers])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::new(format!("{} cannot be started: {error}", helper.display())))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(Ok(text(&output.stdout)));
    }
    Ok(Err(text(&output.stderr)))
}

/// The helper that belongs to this program: beside it in a build, in `bin_dir` where it is installed.
fn helper(paths: &Paths) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let places = beside.into_iter().chain([paths.bin_dir.as_path()]);
    let installed = Paths::installed().bin_dir;
    places.chain([installed.as_path()]).map(|place| place.join(HELPER)).find(|program| program.is_file())
}
