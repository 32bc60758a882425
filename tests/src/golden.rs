//! Results that are compared with a file of the repository.

use crate::programs;
use std::fs;
use std::path::Path;

/// Compares a text with `tests/golden/NAME`. With `GLOVEPORT_GOLDEN=write` it is written instead, to be
/// reviewed like any change.
///
/// # Panics
/// With both texts when they differ.
pub fn assert_golden(name: &str, actual: &str) {
    let file = programs::repository().join("tests/golden").join(name);
    if is_written(&file, actual.as_bytes()) {
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == actual, "not as in {}:\n{}", file.display(), difference(&expected, actual));
}

/// Compares bytes with a file of the repository, in the same way.
///
/// # Panics
/// Where they differ.
pub fn assert_bytes(name: &Path, actual: &[u8]) {
    let file = programs::repository().join(name);
    if !is_written(&file, actual) {
        let same = fs::read(&file).is_ok_and(|expected| expected == actual);
        assert!(
            same,
            "{} is not what is made today; review what GLOVEPORT_GOLDEN=write writes",
            file.display()
        );
    }
}

/// Writes the file, where that is asked for.
fn is_written(file: &Path, actual: &[u8]) -> bool {
    let asked = std::env::var_os("GLOVEPORT_GOLDEN").is_some_and(|mode| mode == "write");
    if asked {
        fs::create_dir_all(file.parent().expect("a directory")).expect("making a directory");
        fs::write(file, actual).expect("writing a golden file");
    }
    asked
}

/// The lines that only one of the two has.
fn difference(expected: &str, actual: &str) -> String {
    let only = |mark: char, of: &str, other: &str| {
        let lines: Vec<&str> = other.lines().collect();
        let missing = of.lines().filter(|line| !lines.contains(line));
        missing.map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    only('-', expected, actual) + &only('+', actual, expected)
}
