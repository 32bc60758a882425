//! Real sshd instances, each with keys and a configuration of its own in the scene's directory.

use crate::{Scene, processes, programs, scene, stdio};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The keys and the client's configuration that the servers of a test share.
#[derive(Debug)]
pub struct Keys {
    directory: PathBuf,
    /// Addresses of this one's own, beginning with 127.
    network: [u8; 3],
}

/// Where a server listens, and how it is run.
#[derive(Debug)]
pub struct Place<'a> {
    /// Its address.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// The network namespace that it runs in.
    pub namespace: Option<&'a str>,
}

/// A running sshd.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Keys {
    /// Makes a key for the hosts and one for the client.
    pub fn new(scene: &Scene) -> Self {
        let directory = scene.root.join("ssh");
        scene::make_directory(&directory);
        // sshd's separation of privilege wants it, and the service manager that makes it is not here.
        scene::make_directory(Path::new("/run/sshd"));
        for name in ["host", "client", "stranger"] {
            let status = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
                .arg(directory.join(name))
                .status();
            assert!(status.expect("ssh-keygen").success());
        }
        static COUNT: AtomicU8 = AtomicU8::new(0);
        let [.., high, low] = std::process::id().to_be_bytes();
        let network = [COUNT.fetch_add(1, Ordering::Relaxed) | 64, high, low];
        let keys = Self { directory, network };
        fs::write(keys.config(), "").expect("writing a configuration");
        fs::write(keys.directory.join("known_hosts"), "").expect("writing known_hosts");
        keys
    }

    /// A place on loopback that no other test uses: its address is made of the number of this process.
    pub fn loopback(&self, port: u16) -> Place<'static> {
        let [a, b, c] = self.network;
        Place { address: format!("127.{a}.{b}.{c}"), port, namespace: None }
    }

    /// The client's configuration: `ssh -F`.
    pub fn config(&self) -> PathBuf {
        self.directory.join("config")
    }

    fn public(&self, name: &str) -> String {
        let key = fs::read_to_string(self.directory.join(name).with_extension("pub")).expect("a public key");
        key.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// Makes a host known to the client by a name, without any server.
    pub fn know(&self, name: &str, place: &Place<'_>) {
        self.introduce(name, place, "host");
    }

    /// The same with another key than the host has.
    pub fn mistake(&self, name: &str, place: &Place<'_>) {
        self.introduce(name, place, "stranger");
    }

    fn introduce(&self, name: &str, place: &Place<'_>, key: &str) {
        let Place { address, port, .. } = place;
        let mut config = fs::read_to_string(self.config()).expect("the configuration");
        let (known, identity) = (self.directory.join("known_hosts"), self.directory.join("client"));
        write!(
            config,
            "Host {name}\n  HostName {address}\n  Port {port}\n  User root\n  IdentityFile {}\n  \
             IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  \
             HostKeyAlias {name}\n",
            identity.display(),
            known.display()
        )
        .expect("writing to a text");
        fs::write(self.config(), config).expect("writing the configuration");
        let mut list = fs::read_to_string(&known).expect("known_hosts");
        writeln!(list, "{name} {}", self.public(key)).expect("writing to a text");
        fs::write(known, list).expect("writing known_hosts");
    }

    /// Adds lines to what the configuration says of a host.
    pub fn configure(&self, name: &str, lines: &str) {
        let text = fs::read_to_string(self.config()).expect("the configuration");
        fs::write(self.config(), format!("{text}Host {name}\n{lines}")).expect("writing the configuration");
    }

    /// Starts a server that lets the client's key do nothing but `gloveport stdio`, with that state directory.
    pub fn serve(&self, state: &Path, place: &Place<'_>) -> Server {
        let forced = format!("{} --state {} stdio", programs::built("gloveport").display(), state.display());
        self.start(&format!("command=\"{forced}\",restrict"), place)
    }

    /// Starts a server that the client's key may pass through, and do nothing else.
    pub fn serve_jump(&self, place: &Place<'_>) -> Server {
        self.start("command=\"/bin/false\",restrict,port-forwarding", place)
    }

    /// Starts a server; `options` are those of the client's key.
    fn start(&self, options: &str, place: &Place<'_>) -> Server {
        let name = format!("{}_{}", place.address, place.port);
        let file = |end: &str| self.directory.join(format!("{name}.{end}"));
        let (authorized, config, log) = (file("authorized_keys"), file("sshd_config"), file("log"));
        fs::write(&authorized, format!("{options} {}\n", self.public("client")))
            .expect("writing authorized_keys");
        fs::set_permissions(&authorized, fs::Permissions::from_mode(0o600)).expect("chmod");
        let settings = format!(
            "Port {}\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin forced-commands-only\n\
             LogLevel VERBOSE\nPrintMotd no\nUseDNS no\n",
            place.port,
            place.address,
            self.directory.join("host").display(),
            authorized.display()
        );
        fs::write(&config, settings).expect("writing sshd_config");
        let sshd = "/usr/sbin/sshd";
        let mut command = match place.namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, sshd]);
                command
            }
            None => Command::new(sshd),
        };
        let child = command
            .arg("-D")
            .arg("-f")
            .arg(config)
            .arg("-E")
            .arg(&log)
            .stdin(Stdio::null())
            .stderr(File::create(self.directory.join("sshd.err")).expect("a log"))
            .spawn()
            .expect("sshd; packaging/prerequisites.sh test installs it");
        Server { child, log }
    }
}

impl Place<'_> {
    /// Waits until something listens here.
    pub fn await_listener(&self) {
        processes::wait_until("sshd listens", Duration::from_secs(20), || {
            TcpStream::connect((self.address.as_str(), self.port)).is_ok()
        });
    }
}

impl Server {
    /// Waits until it listens, in whichever namespace.
    pub fn await_listening(&self) {
        processes::wait_until("sshd listens", Duration::from_secs(60), || {
            self.said().contains("Server listening on")
        });
    }

    /// How many connections have logged in.
    pub fn logins(&self) -> usize {
        self.said().matches("Accepted publickey").count()
    }

    /// What it has logged.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The processes of its sessions.
    pub fn sessions(&self) -> Vec<processes::Process> {
        processes::descendants(self.child.id())
    }

    /// Ends it and its sessions, as a host does that is switched off.
    pub fn stop(&mut self) {
        let sessions = self.sessions();
        let _ = self.child.kill();
        let _ = self.child.wait();
        processes::kill_left(&sessions);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.said());
        }
    }
}

/// `gloveport`, with the configuration of ssh that these hosts are known by.
pub fn router(keys: &Keys, hosts: &[&str], more: &[&str]) -> Vec<String> {
    let mut words = vec!["--ssh-config".to_owned(), keys.config().display().to_string()];
    words.extend(hosts.iter().flat_map(|host| ["--host".to_owned(), (*host).to_owned()]));
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words
}

/// A client of the router to these hosts.
pub fn client(scene: &Scene, keys: &Keys, hosts: &[&str], more: &[&str]) -> stdio::Bridge {
    stdio::Bridge::start(stdio::gloveport(scene), &router(keys, hosts, more))
}
