//! Results that are compared with a file of the repository.

use crate::programs;
use std::fs;

/// Compares a text with `tests/golden/NAME`. With `GLOVEPORT_GOLDEN=write` it is written instead, to be
/// reviewed like any change.
///
/// # Panics
/// With both texts when they differ.
pub fn assert_golden(name: &str, actual: &str) {
    let file = programs::repository().join("tests/golden").join(name);
    if std::env::var_os("GLOVEPORT_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::create_dir_all(file.parent().expect("a directory")).expect("making tests/golden");
        fs::write(&file, actual).expect("writing a golden file");
        return;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == actual, "not as in {}:\n{}", file.display(), difference(&expected, actual));
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
