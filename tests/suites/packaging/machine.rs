//! A machine that boots: systemd in a container, on a layer of its own above the prepared root.

use super::output_of;
use gloveport_tests::{processes, programs};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a boot may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the shell of the machine's first process does: the layer is mounted where only it can see it, so that
/// nothing stays mounted, however the test ends.
const BOOT: &str = r#"
set -eu
root=$1 place=$2
mount -t overlay overlay -o "lowerdir=$root,upperdir=$place/upper,workdir=$place/work" "$place/root"
# A control group of its own: two systemds in one would stop each other's services.
group=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)/${place##*/}
mkdir -p "$group"
echo $$ >"$group/cgroup.procs"
# Landlock's calls, and those that make a file system by descriptor, are new to the container's own filter. No network but a loopback of its own.
exec systemd-nspawn --quiet --boot --directory="$place/root" --machine="${place##*/}" --register=no --keep-unit \
    --private-network --kill-signal=SIGRTMIN+3 \
    --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self fsopen fsconfig fsmount"
"#;

/// Control groups are removed from the leaves on.
const REMOVE_GROUP: &str = r#"
group=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)/$1
find "$group" -depth -type d -exec rmdir {} +
"#;

/// A running machine. Switched off and removed when it is dropped.
pub struct Machine {
    nspawn: Child,
    place: PathBuf,
}

impl Machine {
    /// Boots a fresh one.
    pub fn boot() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = programs::target().join(format!("machines/gloveport-{}-{number}", std::process::id()));
        for part in ["root", "upper", "work"] {
            fs::create_dir_all(place.join(part)).expect("making a place for a machine");
        }
        let mut machine = Self { nspawn: switch_on(&place), place };
        machine.wait_for_boot();
        machine
    }

    /// Boots a fresh one with the package installed.
    pub fn with_package() -> Self {
        let machine = Self::boot();
        machine.put(&super::packages::built().deb, "/root/gloveport.deb");
        machine.sh("dpkg --install /root/gloveport.deb");
        machine
    }

    /// Boots a fresh one with both services running and a token for every risk, and gives the token.
    pub fn in_service() -> (Self, String) {
        let machine = Self::with_package();
        let token = machine.sh("gloveport token add --name tests --max-risk dangerous");
        machine.sh("systemctl enable --now gloveport");
        (machine, token.trim().to_owned())
    }

    /// A command, from `PATH` and as root of the machine.
    pub fn command(&self, words: &[&str]) -> Command {
        self.command_beside(self.leader().expect("the machine runs"), words)
    }

    fn command_beside(&self, leader: u32, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &leader.to_string(), "--all", "--"])
            .args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"])
            .args(["DEBIAN_FRONTEND=noninteractive"])
            .args(words)
            .stdin(Stdio::null());
        command
    }

    /// Runs one, whatever it ends with.
    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("nsenter")
    }

    /// Runs a line of shell and gives what it printed on stdout.
    ///
    /// # Panics
    /// With all that it printed and the end of the journal, where it fails.
    pub fn sh(&self, line: &str) -> String {
        let output = self.run(&["sh", "-euc", line]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            panic!("{line}: {}\n{said}{errors}\n{}", output.status, self.journal());
        }
        said
    }

    /// Whether a line of shell succeeds.
    pub fn holds(&self, line: &str) -> bool {
        self.run(&["sh", "-euc", line]).status.success()
    }

    /// A call with `gloveport call --json` over TCP: the exit code, and the result.
    pub fn call(&self, token: &str, tool: &str, arguments: &str) -> (i32, serde_json::Value) {
        let output = self.run(&call(token, tool, arguments));
        let code = output.status.code().unwrap_or(-1);
        let result = serde_json::from_slice(&output.stdout);
        let result = result.unwrap_or_else(|_| {
            let errors = String::from_utf8_lossy(&output.stderr);
            panic!("{tool} {arguments} ended with {code}: {errors}\n{}", self.journal())
        });
        (code, result)
    }

    /// Waits until a call is answered.
    ///
    /// # Panics
    /// With what the last one said, and the journal, when none was for 15 seconds.
    pub fn wait_until_called(&self, token: &str) {
        let begun = Instant::now();
        loop {
            let output = self.run(&call(token, "uptime", "{}"));
            if output.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                begun.elapsed() < Duration::from_secs(15),
                "no call is answered: {said}\n{}",
                self.journal()
            );
        }
    }

    /// Copies a file into it.
    pub fn put(&self, from: &Path, to: &str) {
        fs::copy(from, self.path(to)).expect("copying a file into a machine");
    }

    /// Writes a file in it.
    pub fn write(&self, to: &str, text: &str) {
        fs::write(self.path(to), text).expect("writing a file in a machine");
    }

    /// Switches it off and on again. What was written stays.
    pub fn reboot(&mut self) {
        // The answer may not arrive any more.
        self.run(&["systemctl", "reboot"]);
        // The container ends with a code that asks for another start.
        processes::wait_until("the machine has gone down", PATIENCE, || {
            self.nspawn.try_wait().expect("waiting for a machine").is_some()
        });
        self.nspawn = switch_on(&self.place);
        self.wait_for_boot();
    }

    /// The process of a service, as the machine numbers it.
    pub fn main_pid(&self, unit: &str) -> u32 {
        let pid = self.sh(&format!("systemctl show --property MainPID --value {unit}"));
        pid.trim().parse().expect("a number")
    }

    /// The newest lines of its journal.
    pub fn journal(&self) -> String {
        let output = self.run(&["journalctl", "--no-pager", "--lines", "60"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn path(&self, path: &str) -> PathBuf {
        format!("/proc/{}/root{path}", self.leader().expect("the machine runs")).into()
    }

    /// Process 1 of the machine, as this host numbers it.
    fn leader(&self) -> Option<u32> {
        let own = processes::all().into_iter();
        own.filter(|process| process.parent == self.nspawn.id()).map(|process| process.pid).next()
    }

    fn wait_for_boot(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.nspawn.try_wait() {
                panic!("the machine ended with {status}: {}", self.console());
            }
            // Some unit of a minimal system may fail on some host; that is not what is tested.
            let is_up = |leader| {
                let state = self.command_beside(leader, &["systemctl", "is-system-running"]).output();
                state.is_ok_and(|state| [&b"running\n"[..], b"degraded\n"].contains(&state.stdout.as_slice()))
            };
            if self.leader().is_some_and(is_up) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the machine did not boot: {}", self.console());
    }

    fn console(&self) -> String {
        fs::read_to_string(self.place.join("console")).unwrap_or_default()
    }
}

fn switch_on(place: &Path) -> Child {
    let root = output_of("packaging/test-root.sh", &[]);
    let console = File::create(place.join("console")).expect("a console");
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", BOOT, "boot", root.trim()])
        .arg(place)
        // One hierarchy, as every system that is installed today has it.
        .env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")
        .stdin(Stdio::null())
        .stdout(console.try_clone().expect("a console"))
        .stderr(console)
        .spawn()
        .expect("unshare")
}

/// The words of a call over TCP.
pub fn call<'a>(token: &'a str, tool: &'a str, arguments: &'a str) -> Vec<&'a str> {
    let line =
        r#"GLOVEPORT_URL=http://127.0.0.1:8010/mcp GLOVEPORT_TOKEN=$0 exec gloveport call --json "$@""#;
    vec!["sh", "-c", line, token, tool, arguments]
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.leader().is_some() {
            self.run(&["systemctl", "poweroff"]);
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) && matches!(self.nspawn.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Where it did not obey; the container ends with it.
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
        let name = self.place.file_name().unwrap_or_default();
        let _ = Command::new("sh").args(["-c", REMOVE_GROUP, "remove"]).arg(name).status();
        let _ = fs::remove_dir_all(&self.place);
    }
}
