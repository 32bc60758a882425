//! Tests of the whole: from files to a catalogue, and back.

mod generated;
mod mistakes;
mod placing;
mod reviewing;
mod round_trip;

use super::{SourceError, Sources};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own that goes with the test.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("gloveport-source-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn with(self, file: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.0.join(file), text).unwrap();
        self
    }

    pub(super) fn read(&self) -> Result<Sources, Vec<SourceError>> {
        Sources::read(std::slice::from_ref(&self.0))
    }

    /// Each mistake as `FILE:LINE:COLUMN: message`, the file without its directory.
    pub(super) fn mistakes(&self) -> Vec<String> {
        let prefix = format!("{}/", self.0.display());
        let errors = self.read().map(|_| Vec::new()).unwrap_or_else(|errors| errors);
        errors.iter().map(|error| error.to_string().lines().next().unwrap().replace(&prefix, "")).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The catalogue of one source text.
pub(super) fn catalog(text: &str) -> gloveport_contract::catalog::Catalog {
    match Scratch::new().with("a.yaml", text).read() {
        Ok(sources) => sources.catalog,
        Err(errors) => panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}
