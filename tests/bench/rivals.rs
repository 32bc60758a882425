//! Other ways to have a program run as somebody else: a call must be quicker than each.

use crate::measure::{at_once, in_turn, ratio};
use crate::subject::{Client, PROGRAM, pair, run, works};
use crate::table::{Line, Table, time, times};
use gloveport_tests::mcp::Endpoint;
use gloveport_tests::{Pair, Scene, processes, programs};
use serde_json::json;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 60;
/// UFO's server takes about a hundredth of a second for each.
const UFO_ROUNDS: usize = 100;
const LOAD: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(60);

/// sudo, runuser, bwrap, and ssh over a connection that is open.
pub fn ways_to_another_user(table: &mut Table) {
    let pair = pair();
    let sandbox = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all"];
    beside(table, &pair, "sudo -n", "sudo", &["-n", "-u", "nobody", PROGRAM]);
    beside(table, &pair, "runuser", "runuser", &["-u", "nobody", "--", PROGRAM]);
    beside(table, &pair, "bwrap", "bwrap", &[&sandbox[..], &[PROGRAM]].concat());
    let ssh = Ssh::start(&pair.scene.root.join("ssh"));
    let words: Vec<&str> = ssh.words.iter().map(String::as_str).chain([PROGRAM]).collect();
    beside(table, &pair, "ssh with ControlMaster", "ssh", &words);
    beside(table, &pair, "systemd-run", "systemd-run", &["--quiet", "--wait", "--uid=nobody", PROGRAM]);
}

fn beside(table: &mut Table, pair: &Pair, name: &str, program: &str, words: &[&str]) {
    let what = "warm call";
    if !works(program, words) {
        return table.skip(what, name, "it does not work here");
    }
    let mut client = Client::new(pair, "true", json!({}));
    let [own, other] = in_turn(ROUNDS, [&mut || drop(client.call()), &mut || run(program, words)]);
    let ratio = ratio(own.median(), other.median());
    table.add(Line {
        what: what.to_owned(),
        own: time(own.median()),
        against: name.to_owned(),
        other: time(other.median()),
        ratio: times(ratio),
        aim: "< 1×",
        reached: Some(ratio < 1.0),
    });
}

/// An sshd, and a client's connection to it that others share.
struct Ssh {
    server: Child,
    /// What a client is given before the command.
    words: Vec<String>,
}

impl Ssh {
    fn start(place: &Path) -> Self {
        for directory in [place, Path::new("/run/sshd")] {
            fs::create_dir_all(directory).expect("making a directory");
        }
        let file = |name: &str| place.join(name).display().to_string();
        for name in ["host", "client"] {
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file(name)]);
        }
        fs::copy(file("client.pub"), file("authorized")).expect("authorized_keys");
        fs::set_permissions(file("authorized"), fs::Permissions::from_mode(0o600)).expect("chmod");
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPermitRootLogin yes\nUseDNS no\n",
            file("host"),
            file("authorized")
        );
        fs::write(file("config"), config).expect("writing sshd_config");
        let server = Command::new("/usr/sbin/sshd")
            .args(["-D", "-f", &file("config")])
            .stderr(Stdio::null())
            .spawn()
            .expect("sshd");
        processes::wait_until("sshd listens", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let mut words: Vec<String> = ["-F", "none", "-i"].map(str::to_owned).to_vec();
        words.push(file("client"));
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ControlMaster=auto",
        ] {
            words.extend(["-o".to_owned(), option.to_owned()]);
        }
        words.extend(["-o".to_owned(), format!("ControlPath={}", file("control"))]);
        words.extend(["-o".to_owned(), "ControlPersist=600".to_owned()]);
        words.extend(["-p".to_owned(), port.to_string(), "root@127.0.0.1".to_owned()]);
        Self { server, words }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let mut stop = Command::new("ssh");
        stop.args(["-O", "exit"]).args(&self.words).stderr(Stdio::null());
        let _ = stop.status();
        let _ = processes::stop(&mut self.server);
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// A server of the shape of UFO's `linux_mcp_server`: FastMCP, and a subprocess for each call.
struct Ufo(Child);

impl Ufo {
    fn start(port: u16) -> Option<Self> {
        let python = programs::target().join("clients/fastmcp-ufo/bin/python");
        if !python.exists() {
            return None;
        }
        let script = programs::repository().join("tests/bench/ufo_server.py");
        let server = Command::new(&python)
            .arg(script)
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        processes::wait_until("UFO's server listens", PATIENCE, || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(Self(server))
    }
}

impl Drop for Ufo {
    fn drop(&mut self) {
        let _ = processes::stop(&mut self.0);
    }
}

/// `execute_command` on both.
pub fn ufo(table: &mut Table) {
    let against = "a FastMCP server of UFO's shape";
    let port = free_port();
    let Some(_server) = Ufo::start(port) else {
        return table.skip("`execute_command`", against, "its Python environment is missing");
    };
    let scene = Scene::new();
    let catalog = scene.linux_agent(&[json!({"name": "true", "exec": PROGRAM, "any": true})]);
    let pair = scene.pair_of(&[&catalog]);
    let other = Endpoint::of(&format!("http://127.0.0.1:{port}/mcp"), None);
    let command = json!({"command": "true"});
    let mut own = Client::new(&pair, "execute_command", command.clone());
    let mut theirs = Client::in_session(&other, "execute_command", command.clone());
    let [own_times, their_times] =
        in_turn(UFO_ROUNDS, [&mut || drop(own.call()), &mut || drop(theirs.call())]);
    let faster = ratio(their_times.median(), own_times.median());
    table.add(Line {
        what: "`execute_command`, one call".to_owned(),
        own: time(own_times.median()),
        against: against.to_owned(),
        other: time(their_times.median()),
        ratio: format!("{faster:.1}× faster"),
        aim: "≥ 10×",
        reached: Some(faster >= 10.0),
    });
    let own = at_once(
        8,
        LOAD,
        || Client::new(&pair, "execute_command", command.clone()),
        |client| drop(client.call()),
    );
    let theirs = at_once(
        8,
        LOAD,
        || Client::in_session(&other, "execute_command", command.clone()),
        |client| drop(client.call()),
    );
    let (own, theirs) = (own.rate, theirs.rate);
    table.add(Line {
        what: "`execute_command`, calls a second, 8 at once".to_owned(),
        own: format!("{own:.0}"),
        against: against.to_owned(),
        other: format!("{theirs:.0}"),
        ratio: format!("{:.1}× as many", own / theirs),
        aim: "≥ 10×",
        reached: Some(own >= 10.0 * theirs),
    });
}
