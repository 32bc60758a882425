//! The place of a test: a directory, two users, and the programs where those users can execute them.

use crate::uid::Uid;
use crate::{processes, programs};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The place of a test. Removed at its end, unless the test failed.
#[derive(Debug)]
pub struct Scene {
    /// Its directory, owned by root, open to read for all.
    pub root: PathBuf,
    /// The user that programs run as.
    pub run: Uid,
    /// The daemon's user.
    pub daemon: Uid,
    /// What is added to the environment of what runs here.
    pub environment: Vec<(String, String)>,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// Makes one.
    ///
    /// # Panics
    /// Without root, or where the programs are not built.
    pub fn new() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "the suites run the real helper, as root; run them as root: make test"
        );
        let root = fresh_directory();
        let scene = Self { root, run: Uid::take(), daemon: Uid::take(), environment: Vec::new() };
        make_directory(&scene.state());
        make_directory(&scene.root.join("bin"));
        scene.install("gloveport-probe");
        scene
    }

    /// With one more variable in the environment of what runs here.
    pub fn with_environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The state directory of what runs here.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// The probe, where every user can execute it.
    pub fn probe(&self) -> String {
        self.root.join("bin/gloveport-probe").display().to_string()
    }

    /// Copies a program to where every user can execute it; its path.
    pub fn install(&self, program: &str) -> PathBuf {
        let place = self.root.join("bin").join(program);
        // Once only: a copy that is being written cannot be executed, and another test's child may hold it open.
        if place.exists() {
            return place;
        }
        fs::copy(programs::built(program), &place).expect("copying a program");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("chmod");
        place
    }

    /// A file of root's that everybody may read; its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let place = self.root.join(name);
        fs::write(&place, content).expect("writing a file");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o644)).expect("chmod");
        place.display().to_string()
    }

    /// A program of root's that everybody may execute; its path.
    pub fn program(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let place = self.file(name, content);
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("chmod");
        place
    }

    /// A directory that belongs to the user that programs run as; its path.
    pub fn own_directory(&self, name: &str) -> String {
        let place = self.root.join(name);
        make_directory(&place);
        chown(&place, Some(self.run.number), Some(self.run.number)).expect("chown");
        place.display().to_string()
    }

    /// A file that belongs to the user that programs run as; its path.
    pub fn own_file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let place = self.file(name, content);
        chown(&place, Some(self.run.number), Some(self.run.number)).expect("chown");
        place
    }

    /// Nothing of the two users may be running any more.
    ///
    /// # Panics
    /// With what does.
    pub fn assert_nothing_left(&self) {
        for uid in [&self.run, &self.daemon] {
            processes::wait_until_gone(uid.number, Duration::from_secs(5));
        }
    }
}

/// A directory of root's that everybody may enter.
pub fn make_directory(path: &Path) {
    fs::create_dir_all(path).expect("making a directory");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
}

/// A directory that nobody had before: one that a failed test kept may bear the number of this process.
fn fresh_directory() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/tmp/gloveport-test-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => {
                make_directory(&path);
                return path;
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.root.display());
            return;
        }
        self.assert_nothing_left();
        let _ = fs::remove_dir_all(&self.root);
    }
}
