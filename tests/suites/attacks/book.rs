//! docs/attack-book.md has every row, and names tests that exist.

use gloveport_tests::programs;
use std::fs;
use std::path::Path;

fn book() -> String {
    fs::read_to_string(programs::repository().join("docs/attack-book.md")).expect("the attack book")
}

/// The text of all sources below a directory.
fn sources(directory: &Path) -> String {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let texts = entries.map(|entry| match entry.path() {
        path if path.is_dir() => sources(&path),
        path if path.extension().is_some_and(|ending| ending == "rs") => {
            fs::read_to_string(path).unwrap_or_default()
        }
        _ => String::new(),
    });
    texts.collect()
}

#[test]
fn every_attack_has_its_row() {
    let mut seen = Vec::new();
    for line in book().lines().filter(|line| line.starts_with("| ")) {
        let cell = line.split('|').nth(1).unwrap_or_default().trim();
        for part in cell.split(", ") {
            let (from, to) = part.split_once('–').unwrap_or((part, part));
            if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
                seen.extend(from..=to);
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=100).collect::<Vec<u32>>());
}

#[test]
fn every_test_that_the_book_names_exists() {
    let repository = programs::repository();
    let all =
        ["tests/suites", "helper/src", "helper/contract/src"].map(|place| sources(&repository.join(place)));
    let all = all.concat();
    let book = book();
    let quoted = book.split('`').skip(1).step_by(2);
    // A test's name is a sentence: that tells it from a module, a call or a file.
    let names = quoted.filter_map(|text| text.rsplit("::").next()).filter(|name| {
        name.split('_').count() > 3 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    let exists = |name: &&str| all.contains(&format!("fn {name}(")) || all.contains(&format!("mod {name};"));
    let missing: Vec<&str> = names.filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
