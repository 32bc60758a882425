#![forbid(unsafe_code)]
//! A directory of a test that needs no users and no root.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with the test.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Makes one, with a name that nobody had before.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("handler-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("making a directory");
        Self(path)
    }

    /// The path of something in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file in it; its path.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("making a directory");
        fs::write(&path, content).expect("writing a file");
        path.display().to_string()
    }

    /// Its own path.
    pub fn root(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
