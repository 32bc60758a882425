//! The packages under test, made of the programs under test.

use super::output_of;
use gloveport_tests::programs;
use std::fs;
use std::path::{Path, PathBuf};

/// Both packages.
pub struct Packages {
    /// Debian's.
    pub deb: PathBuf,
    /// Fedora's.
    pub rpm: PathBuf,
}

/// Makes them in a directory of the target directory, or finds that nothing has changed.
pub fn built() -> Packages {
    let directory = programs::target().join("packages");
    make(&directory)
}

/// Makes them in a directory.
pub fn make(directory: &Path) -> Packages {
    output_of("packaging/package.sh", &[&directory.display().to_string()]);
    Packages { deb: only(directory, "deb"), rpm: only(directory, "rpm") }
}

/// The same package with a higher version and something new in a configuration file: what an upgrade brings.
pub fn newer(deb: &Path, at: &Path) -> PathBuf {
    let (tree, newer) = (at.join("newer"), at.join("newer.deb"));
    fs::create_dir_all(at).expect("making a directory");
    let [deb, tree_name, newer_name] = [deb, &tree, &newer].map(|path| path.display().to_string());
    output_of("dpkg-deb", &["--raw-extract", &deb, &tree_name]);
    let change = |file: &str, change: &dyn Fn(String) -> String| {
        let file = tree.join(file);
        let text = fs::read_to_string(&file).expect("a file of the package");
        fs::write(file, change(text)).expect("changing a file of the package");
    };
    change("DEBIAN/control", &|text| text.replace("\nVersion: ", "\nVersion: 9:"));
    change("etc/gloveport/daemon.toml", &|text| text + NEW_SETTING);
    output_of("dpkg-deb", &["--build", "-Znone", "--root-owner-group", &tree_name, &newer_name]);
    fs::remove_dir_all(tree).expect("removing what was unpacked");
    newer
}

/// What the configuration file of the newer package has more.
pub const NEW_SETTING: &str = "# a setting of the newer version\n";

fn only(directory: &Path, end: &str) -> PathBuf {
    let entries =
        fs::read_dir(directory).expect("a directory of packages").flatten().map(|entry| entry.path());
    let mut found = entries.filter(|path| path.extension().is_some_and(|found| found == end));
    let package = found.next().unwrap_or_else(|| panic!("no .{end} in {}", directory.display()));
    assert!(found.next().is_none(), "more than one .{end} in {}", directory.display());
    package
}
