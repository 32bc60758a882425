//! Where the programs under test are.

use std::path::{Path, PathBuf};

/// The four programs and the probe.
pub const NAMES: [&str; 5] =
    ["gloveport", "gloveportd", "gloveport-helper", "gloveport-handler", "gloveport-probe"];

/// The directory they were built into: the one above that of the running test.
pub fn directory() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test.parent().and_then(Path::parent).expect("a test lies in target/release/deps");
    built.to_owned()
}

/// A program as it was built.
///
/// # Panics
/// Where it was not.
pub fn built(name: &str) -> PathBuf {
    let path = directory().join(name);
    assert!(path.exists(), "{} is not built; `make test` builds it", path.display());
    path
}

/// The target directory: where prepared clients lie.
pub fn target() -> PathBuf {
    directory().parent().expect("release lies in the target directory").to_owned()
}

/// The repository.
pub fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("tests lies in the repository").to_owned()
}
