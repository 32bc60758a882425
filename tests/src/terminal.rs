//! A program on a terminal of its own, as a person uses it.

use crate::processes;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long something is waited for on the screen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running program and what it has written.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Starts a program on a new terminal.
    ///
    /// # Panics
    /// Where there is none, or the program does not start.
    pub fn start(mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
        let name = ptsname(&ours, Vec::new()).expect("the terminal's name");
        let mut theirs = OpenOptions::new();
        theirs.read(true).write(true);
        let open = || theirs.open(name.to_str().expect("a path")).expect("the terminal");
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().expect("starting");
        drop(command);
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().expect("a descriptor");
        let screen = Arc::new(Mutex::new(String::new()));
        let written = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end is an error on Linux: nobody holds the other side any more.
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                written.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Self { child, keyboard, screen }
    }

    /// All that was written so far.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until something stands on the screen.
    ///
    /// # Panics
    /// Where it does not come.
    pub fn wait_for(&self, text: &str) {
        let shown = || self.screen().contains(text);
        processes::wait_until(&format!("the screen shows {text:?}"), PATIENCE, shown);
    }

    /// Types a line.
    ///
    /// # Panics
    /// Where nobody reads.
    pub fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("typing");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
