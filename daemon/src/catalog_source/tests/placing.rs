//! Where a catalogue lies, and how it comes into force.

use super::Scratch;
use crate::catalog_source::install;
use std::fs;
use std::path::Path;

fn signed(config: &Path, text: &str) -> String {
    let file = install::place(config, text).unwrap();
    let digest = install::digest(text.as_bytes());
    fs::write(file.with_file_name(install::SIGNATURE), format!("signature of {text}")).unwrap();
    digest
}

#[test]
fn what_is_placed_is_not_in_force_before_it_is_activated() {
    let scratch = Scratch::new();
    let config = scratch.path();
    let digest = install::digest(b"one");
    let file = install::place(config, "one").unwrap();
    assert!(!config.join(install::CATALOG).exists());
    assert!(install::activate(config, &digest).is_err(), "without a signature nothing comes into force");
    assert_eq!(install::placed_path(config, &digest), file);

    let digest = signed(config, "one");
    install::activate(config, &digest).unwrap();
    assert_eq!(fs::read_to_string(config.join(install::CATALOG)).unwrap(), "one");
    assert_eq!(fs::read_to_string(config.join(install::SIGNATURE)).unwrap(), "signature of one");
}

#[test]
fn catalogue_and_signature_change_together() {
    let scratch = Scratch::new();
    let config = scratch.path();
    install::activate(config, &signed(config, "one")).unwrap();
    let links = |name: &str| fs::symlink_metadata(config.join(name)).unwrap().modified().unwrap();
    let before = (links(install::CATALOG), links(install::SIGNATURE));
    install::activate(config, &signed(config, "two")).unwrap();
    assert_eq!(fs::read_to_string(config.join(install::CATALOG)).unwrap(), "two");
    assert_eq!(fs::read_to_string(config.join(install::SIGNATURE)).unwrap(), "signature of two");
    assert_eq!(before, (links(install::CATALOG), links(install::SIGNATURE)), "only `current` was replaced");
}

#[test]
fn a_plain_pair_of_files_gives_way_to_the_links() {
    let scratch = Scratch::new().with(install::CATALOG, "old").with(install::SIGNATURE, "old");
    let config = scratch.path();
    install::activate(config, &signed(config, "new")).unwrap();
    assert_eq!(fs::read_to_string(config.join(install::CATALOG)).unwrap(), "new");
}

#[test]
fn the_name_of_what_is_in_force_stands_for_the_newest_build() {
    let scratch = Scratch::new().with("other.json", "x");
    let config = scratch.path();
    let named = config.join(install::CATALOG);
    assert_eq!(install::placed_digest(config, &named), None);
    let one = signed(config, "one");
    install::activate(config, &one).unwrap();
    assert_eq!(install::placed_digest(config, &named), Some(one.clone()));
    install::place(config, "two").unwrap();
    assert_eq!(install::placed_digest(config, &named), Some(install::digest(b"two")));
    assert_eq!(install::placed_digest(config, &install::placed_path(config, &one)), Some(one));
    assert_eq!(install::placed_digest(config, &config.join("other.json")), None);
}

#[test]
fn a_link_in_the_way_is_replaced_and_not_followed() {
    let scratch = Scratch::new().with("victim", "untouched");
    let file = scratch.path().join("target");
    for name in [".new-target", "target"] {
        std::os::unix::fs::symlink("victim", scratch.path().join(name)).unwrap();
    }
    install::write(&file, b"new").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::read_to_string(scratch.path().join("victim")).unwrap(), "untouched");
}
