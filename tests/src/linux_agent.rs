//! The packaged catalogue `linux-agent`, run as a user of the test's own.

use crate::{Scene, programs, scene};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

impl Scene {
    /// A directory with the catalogue as it is packaged; `rules` come before its own commands.
    ///
    /// # Panics
    /// Where the packaged catalogue has changed its form.
    pub fn linux_agent(&self, rules: &[Value]) -> PathBuf {
        let directory = self.root.join("linux-agent");
        scene::make_directory(&directory);
        let packaged = programs::repository().join("packaging/catalogs/linux-agent");
        let user = format!("run_as: \"{0}:{0}\"", self.run.number);
        let rules: String = rules.iter().map(|rule| format!("  - {rule}\n")).collect();
        for entry in fs::read_dir(packaged).expect("the packaged catalogue").flatten() {
            let source = fs::read_to_string(entry.path()).expect("a source");
            assert!(source.contains("run_as: gloveport-run\n"), "{:?} names another user", entry.path());
            let source = source
                .replace("run_as: gloveport-run", &user)
                .replace("  commands:\n", &format!("  commands:\n{rules}"));
            fs::write(directory.join(entry.file_name()), source).expect("writing a source");
        }
        directory
    }
}
