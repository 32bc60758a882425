//! From sources to a signed catalogue in force, with the real ssh-keygen.

use super::{CatalogCommand, run, signing};
use crate::host_key;
use gloveportd::catalog_source::install;
use gloveportd::paths::Paths;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A state directory with a key and one source, gone with the test.
struct State(Paths);

impl State {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("gloveport-catalog-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let paths = Paths::for_state(&std::env::temp_dir().join(name));
        fs::create_dir_all(&paths.catalog_sources).unwrap();
        host_key::ensure(&paths).unwrap();
        let state = Self(paths);
        state.source("one");
        state
    }

    fn source(&self, name: &str) {
        let text = format!("name: {name}\ndescription: d\nrisk: read\nexec: [/bin/true]\n");
        fs::write(self.0.catalog_sources.join("a.yaml"), text).unwrap();
    }

    fn build(&self, output: Option<PathBuf>) -> u8 {
        run(&CatalogCommand::Build { sources: Vec::new(), output, json: false }, &self.0).unwrap()
    }

    fn sign(&self, file: Option<&Path>) -> Result<u8, String> {
        let file = file.map(Path::to_path_buf);
        run(&CatalogCommand::Sign { file, key: None }, &self.0).map_err(|failure| failure.to_string())
    }

    fn in_force(&self) -> String {
        fs::read_to_string(&self.0.catalog).unwrap_or_default()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.config_dir);
    }
}

/// Whether ssh-keygen finds the signature good for these signers.
fn is_good(catalog: &Path, signers: &Path) -> bool {
    Command::new("ssh-keygen")
        .args(["-Y", "verify", "-I", "host", "-n", signing::NAMESPACE, "-f"])
        .arg(signers)
        .arg("-s")
        .arg(signing::signature_of(catalog))
        .stdin(fs::File::open(catalog).unwrap())
        .output()
        .unwrap()
        .status
        .success()
}

#[test]
fn a_build_comes_into_force_when_it_is_signed() {
    let state = State::new();
    assert_eq!(state.build(None), 0);
    assert_eq!(state.in_force(), "", "not before it is signed");
    assert_eq!(state.sign(None), Ok(0));
    assert!(state.in_force().contains("\"one\""));
    assert!(is_good(&state.0.catalog, &state.0.trusted_signers));

    state.source("two");
    assert_eq!(state.build(None), 0);
    assert!(state.in_force().contains("\"one\""));
    assert_eq!(
        state.sign(Some(&state.0.catalog)),
        Ok(0),
        "the name of what is in force means the newest build"
    );
    assert!(state.in_force().contains("\"two\""));
    assert!(is_good(&state.0.catalog, &state.0.trusted_signers));
    assert!(!state.0.catalogs.join(".trial").exists());
}

#[test]
fn a_build_for_elsewhere_is_signed_beside_itself() {
    let state = State::new();
    let output = state.0.config_dir.join("out");
    assert_eq!(state.build(Some(output.clone())), 0);
    let file = output.join(install::CATALOG);
    assert_eq!(state.sign(Some(&file)), Ok(0));
    assert!(is_good(&file, &state.0.trusted_signers));
    assert_eq!(state.in_force(), "");
    assert_eq!(state.build(Some(output)), 0);
    assert!(!signing::signature_of(&file).exists(), "the signature of what lay there is gone");
}

#[test]
fn what_was_changed_or_is_no_catalogue_is_not_signed() {
    let state = State::new();
    state.build(None);
    let file =
        fs::read_dir(&state.0.catalogs).unwrap().map(|entry| entry.unwrap().path().join(install::CATALOG));
    let file = file.into_iter().find(|file| file.exists()).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"one\"", "\"six\"")).unwrap();
    assert!(state.sign(None).unwrap_err().contains("was changed after it was built"));
    fs::write(&file, "{}").unwrap();
    assert!(state.sign(None).unwrap_err().contains("missing field"));
    assert!(state.sign(Some(Path::new("/no/such/file"))).unwrap_err().contains("cannot be read"));
}

#[test]
fn a_missing_key_is_named_with_the_way_out() {
    let state = State::new();
    state.build(None);
    fs::remove_file(&state.0.host_key).unwrap();
    let problem = state.sign(None).unwrap_err();
    assert!(problem.contains("there is no signing key") && problem.contains("catalog keygen"), "{problem}");
}

#[test]
fn mistakes_are_exit_code_one_and_change_nothing() {
    let state = State::new();
    state.build(None);
    state.sign(None).unwrap();
    let before = state.in_force();
    fs::write(state.0.catalog_sources.join("b.yaml"), "nonsense: 1\n").unwrap();
    assert_eq!(state.build(None), 1);
    assert_eq!(state.in_force(), before);
}
