#![forbid(unsafe_code)]
//! `docs/rows.md`: every row of the specification has its tests, and every test that is named there exists.

use gloveport_tests::programs;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The rows of each part.
const PARTS: [(char, u32); 5] = [('U', 14), ('A', 18), ('S', 11), ('B', 9), ('M', 39)];

/// Each row with the names beside it.
fn rows() -> BTreeMap<String, Vec<String>> {
    let table = fs::read_to_string(programs::repository().join("docs/rows.md")).expect("docs/rows.md");
    let cells =
        table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = cells.filter(|(row, _)| row.chars().skip(1).all(|c| c.is_ascii_digit()));
    // Names stand between backquotes: every second part.
    rows.map(|(row, names)| {
        (row.to_owned(), names.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    })
    .collect()
}

/// The source of a suite, `mcp::batch`, or of a file, `daemon/src/metrics.rs`; a module within a file, as
/// `alone` is, belongs to the file.
fn source(module: &str) -> Option<PathBuf> {
    let root = programs::repository();
    if module.ends_with(".rs") {
        return Some(root.join(module)).filter(|file| file.exists());
    }
    let suites = root.join("tests/suites");
    let path = module.trim_end_matches("::alone").replace("::", "/");
    let candidates = [suites.join(format!("{path}.rs")), suites.join(&path).join("mod.rs")];
    candidates.into_iter().find(|file| file.exists())
}

/// The tests of a source.
fn tests(text: &str) -> Vec<&str> {
    let marked = |line: &str| line.trim() == "#[test]" || line.trim().starts_with("#[tokio::test");
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if marked(line) {
            let function = lines.by_ref().find_map(|line| line.split_once("fn ").map(|(_, rest)| rest));
            found.extend(function.and_then(|rest| rest.split('(').next()));
        }
    }
    found
}

#[test]
fn every_row_of_the_specification_has_tests() {
    let rows = rows();
    let expected: Vec<String> = PARTS
        .iter()
        .flat_map(|(part, count)| (1..=*count).map(move |number| format!("{part}{number}")))
        .collect();
    for row in &expected {
        assert!(rows.get(row).is_some_and(|tests| !tests.is_empty()), "{row} has no test in docs/rows.md");
    }
    assert_eq!(rows.len(), expected.len(), "docs/rows.md has a row that the specification does not have");
}

#[test]
fn every_test_that_the_table_names_exists() {
    let registered =
        fs::read_to_string(programs::repository().join("tests/suites/main.rs")).expect("main.rs");
    let mut missing = Vec::new();
    for (row, names) in rows() {
        for name in names {
            let (module, test) = name.rsplit_once("::").unwrap_or((&name, ""));
            let text = source(module).and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
            let tests = tests(&text);
            let suite = module.split("::").next().unwrap_or_default();
            let runs = module.ends_with(".rs") || registered.contains(&format!("mod {suite};"));
            let exists = if test == "*" { !tests.is_empty() } else { tests.contains(&test) };
            if !(runs && exists) {
                missing.push(format!("{row}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/rows.md names tests that do not exist: {missing:#?}");
}
