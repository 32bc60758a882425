#![forbid(unsafe_code)]
//! The command line, read by hand: ten options need no library.

use crate::check;
use crate::paths::Paths;
use crate::users::{self, Users};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs at once where `--max-runs` is not given.
const RUNS: u32 = 32;
/// Most runs at once: the helper and the audit writer hold a few descriptors for each, and 1024 is a common
/// limit.
const RUNS_MAX: u32 = 256;
/// The daemon's account where `--daemon-user` is not given.
const DAEMON: &str = "gloveport";
/// Size of a full file of the audit chain where `--audit-rotate` is not given, MiB: some 50,000 runs.
const ROTATE: u32 = 64;
/// Largest such size, MiB.
const ROTATE_MAX: u32 = 65_536;
/// The environment variable that stands for `--state`.
const STATE: &str = "GLOVEPORT_STATE";

const HELP: &str = "\
gloveport-helper: the privileged half of gloveport. Verifies, confines, executes, records.

Usage: gloveport-helper [OPTIONS]
       gloveport-helper --check [CATALOG [TRUSTED_SIGNERS]]

  --state DIR            everything lies in DIR (also GLOVEPORT_STATE), instead of
                         /etc/gloveport, /run/gloveport and /var/log/gloveport
  --daemon-user USER     name, uid or uid:gid of the daemon [gloveport]
  --max-runs N           runs at once, 1 to 256 [32]
  --audit-sync MODE      when a record must be on disk before its program starts:
                         risk (for write and dangerous) or always [risk]
  --audit-full MODE      when the audit log cannot be written: refuse runs, or
                         continue and record the gap afterwards [refuse]
  --audit-rotate MIB     at which size audit.jsonl is renamed and a new one begun,
                         1 to 65536 [64]; the old ones stay
  --same-user            run programs as the helper's own user: no trust boundary
  --check                verify the signature, check the catalogue, and end
  --help, --version      print this, or the version
";

/// What to do when the audit log cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditFull {
    /// Refuse the run.
    #[default]
    Refuse,
    /// Let it go on, and record the gap when it can be recorded.
    Continue,
}

/// Which records are on disk before anything follows from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditSync {
    /// Those of actions that are more than `risk: read`; the others within 50 ms.
    #[default]
    ByRisk,
    /// All.
    Always,
}

/// The command line, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where everything lies.
    pub paths: Paths,
    /// The uid that may ask for runs.
    pub daemon_uid: u32,
    /// The group of the socket.
    pub daemon_gid: u32,
    /// Runs at once.
    pub max_runs: u32,
    /// What to do when the audit log cannot be written.
    pub audit_full: AuditFull,
    /// Which records are on disk before anything follows from them.
    pub audit_sync: AuditSync,
    /// Bytes of a file of the chain that is full.
    pub audit_rotate: u64,
    /// Run programs as our own user: no trust boundary.
    pub same_user: bool,
    /// Check these files and end.
    pub check: Option<check::Files>,
    /// Print this and end.
    pub print: Option<String>,
}

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// What is wrong with them, in a sentence.
    pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        Words::read(arguments)?.resolve(std::env::var_os(STATE).map(PathBuf::from), Users::read)
    }
}

/// The command line as written.
#[derive(Debug, Default)]
struct Words {
    state: Option<PathBuf>,
    daemon_user: Option<String>,
    max_runs: Option<u32>,
    audit_full: AuditFull,
    audit_sync: AuditSync,
    audit_rotate: Option<u32>,
    same_user: bool,
    check: bool,
    files: Vec<PathBuf>,
    print: Option<String>,
}

impl Words {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut words = Self::default();
        while let Some(argument) = arguments.next() {
            let text = argument.to_str().filter(|text| text.starts_with('-'));
            let Some(text) = text else {
                words.files.push(PathBuf::from(argument));
                continue;
            };
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (text, None),
            };
            let mut value = || {
                attached.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"))
            };
            match name {
                "--state" => words.state = Some(PathBuf::from(value()?)),
                "--daemon-user" => words.daemon_user = Some(in_utf8(name, value()?)?),
                "--max-runs" => words.max_runs = Some(number(name, &in_utf8(name, value()?)?, RUNS_MAX)?),
                "--audit-full" => words.audit_full = audit_full(&in_utf8(name, value()?)?)?,
                "--audit-sync" => words.audit_sync = audit_sync(&in_utf8(name, value()?)?)?,
                "--audit-rotate" => {
                    words.audit_rotate = Some(number(name, &in_utf8(name, value()?)?, ROTATE_MAX)?);
                }
                _ if attached.is_some() => return Err(unknown(name)),
                "--same-user" => words.same_user = true,
                "--check" => words.check = true,
                "--help" | "-h" => words.print = Some(HELP.to_owned()),
                "--version" | "-V" => {
                    words.print = Some(format!("gloveport-helper {}\n", env!("CARGO_PKG_VERSION")));
                }
                _ => return Err(unknown(name)),
            }
        }
        Ok(words)
    }

    /// Turns names into paths and numbers.
    fn resolve<E: std::fmt::Display>(
        self,
        state: Option<PathBuf>,
        users: impl FnOnce() -> Result<Users, E>,
    ) -> Result<Options, String> {
        let paths = match self.state.or(state) {
            None => Paths::installed(),
            Some(directory) => Paths::in_state(&absolute(&directory)?),
        };
        let check = check_files(self.check, self.files, &paths)?;
        let (daemon_uid, daemon_gid) = if self.print.is_some() || check.is_some() {
            // Neither has to do with a daemon, and a machine that builds catalogues may have none.
            (0, 0)
        } else if self.same_user && self.daemon_user.is_none() {
            (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
        } else {
            let users = users().map_err(|error| error.to_string())?;
            daemon(self.daemon_user.as_deref().unwrap_or(DAEMON), &users, self.same_user)?
        };
        Ok(Options {
            paths,
            daemon_uid,
            daemon_gid,
            max_runs: self.max_runs.unwrap_or(RUNS),
            audit_full: self.audit_full,
            audit_sync: self.audit_sync,
            audit_rotate: u64::from(self.audit_rotate.unwrap_or(ROTATE)) << 20,
            same_user: self.same_user,
            check,
            print: self.print,
        })
    }
}

fn unknown(name: &str) -> String {
    format!("unknown option {name}; see gloveport-helper --help")
}

fn in_utf8(name: &str, value: OsString) -> Result<String, String> {
    value.into_string().map_err(|value| format!("{name} {}: not UTF-8", value.display()))
}

fn number(name: &str, text: &str, most: u32) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("{name} {text}: a number from 1 to {most}"))
}

fn audit_full(text: &str) -> Result<AuditFull, String> {
    match text {
        "refuse" => Ok(AuditFull::Refuse),
        "continue" => Ok(AuditFull::Continue),
        _ => Err(format!("--audit-full {text}: refuse or continue")),
    }
}

fn audit_sync(text: &str) -> Result<AuditSync, String> {
    match text {
        "risk" => Ok(AuditSync::ByRisk),
        "always" => Ok(AuditSync::Always),
        _ => Err(format!("--audit-sync {text}: risk or always")),
    }
}

fn absolute(directory: &Path) -> Result<PathBuf, String> {
    std::path::absolute(directory).map_err(|error| format!("--state {}: {error}", directory.display()))
}

fn check_files(check: bool, files: Vec<PathBuf>, paths: &Paths) -> Result<Option<check::Files>, String> {
    let mut files = files.into_iter();
    let (catalog, signers, surplus) = (files.next(), files.next(), files.next());
    match (check, catalog, surplus) {
        (false, Some(argument), _) | (true, _, Some(argument)) => {
            Err(format!("unexpected argument {}; see gloveport-helper --help", argument.display()))
        }
        (false, None, _) => Ok(None),
        (true, None, None) => Ok(Some(check::Files::InForce)),
        (true, Some(catalog), None) => {
            let signers = signers.unwrap_or_else(|| paths.trusted_signers.clone());
            Ok(Some(check::Files::Named { catalog, signers }))
        }
    }
}

/// The numbers of the daemon's account: a name, a uid or `uid:gid`.
fn daemon(user: &str, users: &Users, same_user: bool) -> Result<(u32, u32), String> {
    let found = match users::number(user) {
        // The group of a uid without an entry has the same number, as useradd makes them.
        Some(uid) => Some((uid, users.by_uid(uid).map_or(uid, |account| account.gid))),
        None => users.account(user).map(|account| (account.uid, account.gid)),
    };
    match found {
        None => Err(format!(
            "--daemon-user {user}: no such account in /etc/passwd; make it (gloveport init does) or name another"
        )),
        Some((0, _)) if !same_user => {
            Err(format!("--daemon-user {user}: the daemon must not be root, it speaks to the network"))
        }
        Some(account) => Ok(account),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        let words = Words::read(arguments.iter().map(OsString::from))?;
        words.resolve(None, || Ok::<_, String>(Users::default()))
    }

    #[test]
    fn the_defaults_are_those_of_an_installed_host() {
        let options = parse(&["--daemon-user", "30001"]).unwrap();
        assert_eq!(options.paths, Paths::installed());
        assert_eq!((options.daemon_uid, options.daemon_gid, options.max_runs), (30001, 30001, 32));
        assert_eq!((options.audit_full, options.audit_sync), (AuditFull::Refuse, AuditSync::ByRisk));
        assert!(!options.same_user && options.check.is_none() && options.print.is_none());
    }

    #[test]
    fn a_value_may_follow_or_be_attached() {
        let options = parse(&[
            "--state=/s",
            "--max-runs",
            "7",
            "--audit-sync=always",
            "--audit-full",
            "continue",
            "--audit-rotate=2",
            "--daemon-user=5:6",
        ]);
        let options = options.unwrap();
        assert_eq!(options.paths, Paths::in_state(Path::new("/s")));
        assert_eq!((options.daemon_uid, options.daemon_gid, options.max_runs), (5, 6, 7));
        assert_eq!((options.audit_full, options.audit_sync), (AuditFull::Continue, AuditSync::Always));
        assert_eq!(options.audit_rotate, 2 << 20);
    }

    #[test]
    fn the_environment_stands_for_the_state_that_is_not_named() {
        let resolve = |arguments: &[&str]| {
            let words = Words::read(arguments.iter().map(OsString::from)).unwrap();
            words.resolve(Some(PathBuf::from("/e")), || Ok::<_, String>(Users::default())).unwrap().paths
        };
        assert_eq!(resolve(&["--check"]), Paths::in_state(Path::new("/e")));
        assert_eq!(resolve(&["--check", "--state", "/s"]), Paths::in_state(Path::new("/s")));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (arguments, named) in [
            (&["--frob"][..], "--frob"),
            (&["--same-user=yes"], "--same-user"),
            (&["--max-runs", "0"], "--max-runs 0"),
            (&["--max-runs", "257"], "1 to 256"),
            (&["--max-runs"], "needs a value"),
            (&["--audit-full", "stop"], "refuse or continue"),
            (&["--daemon-user", "absent"], "absent"),
            (&["--daemon-user", "0"], "must not be root"),
            (&["surplus"], "surplus"),
            (&["--check", "a", "b", "c"], "unexpected argument c"),
        ] {
            let message = parse(arguments).unwrap_err();
            assert!(message.contains(named), "{arguments:?}: {message}");
        }
    }

    #[test]
    fn check_takes_the_files_in_force_or_named_ones_and_needs_no_daemon() {
        assert_eq!(parse(&["--check"]).unwrap().check, Some(check::Files::InForce));
        let named = |arguments: &[&str]| match parse(arguments).unwrap().check {
            Some(check::Files::Named { catalog, signers }) => (catalog, signers),
            other => panic!("{other:?}"),
        };
        assert_eq!(named(&["--check", "c.json"]).1, Path::new("/etc/gloveport/trusted_signers"));
        assert_eq!(named(&["--check", "c.json", "s"]), (PathBuf::from("c.json"), PathBuf::from("s")));
    }

    #[test]
    fn help_and_version_need_nothing_else() {
        assert!(parse(&["--help"]).unwrap().print.unwrap().contains("--audit-full"));
        assert!(parse(&["--version"]).unwrap().print.unwrap().starts_with("gloveport-helper "));
    }
}
