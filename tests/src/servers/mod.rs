#![forbid(unsafe_code)]
//! Real servers, each with data and ports of its own, that end with the test.

mod certificates;
mod mariadb;
mod redis;

pub use certificates::certificates;
pub use mariadb::MariaDb;
pub use redis::Redis;

use crate::scratch::Scratch;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to come up on a machine that has much else to do.
const STARTING: Duration = Duration::from_secs(60);

/// A server that ends when this process does, however it ends: a shell waits for its stdin to close.
#[derive(Debug)]
pub struct Server {
    shell: Child,
    /// Its directory.
    pub scratch: Scratch,
}

impl Server {
    /// Starts a program in that directory.
    ///
    /// # Panics
    /// Where a shell cannot be started.
    pub fn start(scratch: Scratch, program: &[&str]) -> Self {
        let log = fs::File::create(scratch.path("server.log")).expect("creating a log");
        let shell = Command::new("/bin/sh")
            .args(["-c", r#""$@" </dev/null & cat >/dev/null; kill $!; wait $!"#, "sh"])
            .args(program)
            .current_dir(scratch.root())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a second descriptor"))
            .stderr(log)
            .spawn()
            .expect("starting a shell");
        Self { shell, scratch }
    }

    /// Waits until something answers.
    ///
    /// # Panics
    /// With its log, where nothing does.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, ready: impl Fn() -> bool) {
        let begun = Instant::now();
        while !ready() {
            let log = || fs::read_to_string(self.scratch.path("server.log")).unwrap_or_default();
            assert!(begun.elapsed() < STARTING, "{what} does not answer (is it installed?): {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// A port of loopback that nobody listens at now.
///
/// # Panics
/// Where there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// Whether something listens at a port of loopback.
pub fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Runs a program that must succeed; what it printed.
///
/// # Panics
/// With what it complained.
#[track_caller]
pub fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; packaging/prerequisites.sh installs it"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
