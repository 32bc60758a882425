//! The stages of a child's preparation, as `helper/AUDIT.md` lists them, and the system calls of each.

use crate::action::Action;
use crate::strace::Call;
use crate::{Scene, programs};
use gloveport_contract::packet::Value;
use serde_json::json;
use std::fs;

/// Calls that belong to no stage: memory for a list, descriptors that go out of scope.
const ANYWHERE: [&str; 7] = ["brk", "mmap", "munmap", "mremap", "madvise", "close", "restart_syscall"];

/// A call as a stage makes it: its name, and what its arguments hold.
type Pattern = (&'static str, &'static str);

/// Looking at a path: where it really is, and where its root is. The root of
/// [`Scene::every_stage`] ends in this name.
const ROOTS: &[Pattern] = &[("newfstatat", ""), ("readlink", "/proc/self/fd/"), ("openat2", "/roots\"")];
const PATH: &[Pattern] = &[("openat2", "/roots/")];

/// Each stage with its calls. A call belongs to the present stage where it is one of its calls, else to the
/// next one that has it.
const CALLS: [(&str, &[Pattern]); 29] = [
    // The first one is libc's, after its fork.
    ("inherited", &[("set_robust_list", ""), ("close_range", ", 0"), ("fcntl", "F_DUPFD_CLOEXEC")]),
    ("turn", &[("read", "")]),
    ("signals", &[("rt_sigaction", "SIG_DFL")]),
    ("session", &[("setsid", "")]),
    ("stdio", &[("dup3", ""), ("fcntl", "F_SETFD")]),
    ("proc", &[("readlink", "\"/proc/self\""), ("openat2", "/proc/"), ("fstatfs", ""), ("write", "")]),
    (
        "limits",
        &[
            ("prlimit64", "RLIMIT_CORE"),
            ("prlimit64", "RLIMIT_AS"),
            ("prlimit64", "RLIMIT_STACK"),
            ("prlimit64", "RLIMIT_NPROC"),
            ("prlimit64", "RLIMIT_FSIZE"),
            ("umask", "077"),
        ],
    ),
    ("network", &[("unshare", "CLONE_NEWNET")]),
    ("bounding", &[("prctl", "PR_CAPBSET_DROP")]),
    ("securebits", &[("prctl", "PR_SET_SECUREBITS")]),
    ("groups", &[("setgroups", "")]),
    ("gid", &[("setresgid", "")]),
    ("uid", &[("setresuid", "")]),
    ("capabilities", &[("prctl", "PR_CAP_AMBIENT"), ("capget", ""), ("capset", "")]),
    (
        "verify",
        &[
            ("getresuid", ""),
            ("getresgid", ""),
            ("getgroups", ""),
            // libc looks up how many groups there may be.
            ("openat", "/proc/sys/kernel/ngroups_max"),
            ("read", ""),
            ("setresuid", "0, 0, 0"),
            ("capget", ""),
        ],
    ),
    ("parent", &[("prctl", "PR_SET_PDEATHSIG"), ("getppid", "")]),
    ("keyring", &[("keyctl", "KEYCTL_JOIN_SESSION_KEYRING")]),
    ("cwd", &[("openat2", "O_DIRECTORY")]),
    ("cwd_roots", ROOTS),
    ("cwd", &[("fchdir", ""), ("getcwd", "")]),
    // The directory is a path of the caller's, too.
    ("path", PATH),
    ("path_roots", ROOTS),
    ("path", PATH),
    ("path_roots", ROOTS),
    ("no_new_privs", &[("prctl", "PR_SET_NO_NEW_PRIVS"), ("prctl", "PR_GET_NO_NEW_PRIVS")]),
    ("landlock", &[("landlock_restrict_self", "")]),
    ("descriptors", &[("dup3", ""), ("fcntl", "F_SETFD"), ("close_range", "CLOSE_RANGE_CLOEXEC")]),
    ("open_files", &[("prlimit64", "RLIMIT_NOFILE")]),
    ("seccomp", &[("rt_sigprocmask", ""), ("seccomp", ""), ("prctl", "PR_SET_NO_NEW_PRIVS")]),
];

impl Scene {
    /// An action whose child has something to do in every stage, with these keys; and what it is called with.
    pub fn every_stage(&self, keys: serde_json::Value) -> (Action, [(&'static str, Value); 2]) {
        let roots = self.own_directory("roots");
        let directory = self.own_directory("roots/directory");
        let file = self.own_file("roots/directory/file", "");
        let action = self.action("every_stage", keys).with(json!({
            "params": {
                "cwd": {"type": "path", "roots": [roots]},
                "file": {"type": "path", "roots": [roots], "must_exist": true},
            },
            "cwd": {"param": "cwd", "roots": [roots]},
            "groups": ["adm"],
            "sandbox": {"network": "namespace"},
        }));
        (action, [("cwd", directory.as_str().into()), ("file", file.as_str().into())])
    }
}

/// The calls of a child, each with its stage. `exec` is the last one.
///
/// # Panics
/// With a call that is not where the order has it.
pub fn assign(calls: &[Call]) -> Vec<(&'static str, Call)> {
    let mut present = 0;
    let mut assigned = Vec::new();
    for call in calls {
        if call.name == "execveat" {
            assigned.push(("exec", call.clone()));
            break;
        }
        if ANYWHERE.contains(&call.name.as_str()) {
            continue;
        }
        let fits = |(name, part): &Pattern| call.name == *name && call.arguments.contains(part);
        let Some(further) = CALLS[present..].iter().position(|(_, calls)| calls.iter().any(fits)) else {
            panic!("after `{}` comes {call:?}, which no later stage has", CALLS[present].0);
        };
        present += further;
        assigned.push((CALLS[present].0, call.clone()));
    }
    assigned
}

/// The stages in the order of the table in `helper/AUDIT.md`.
///
/// # Panics
/// Where the table is no more.
pub fn documented() -> Vec<String> {
    let text = fs::read_to_string(programs::repository().join("helper/AUDIT.md")).expect("AUDIT.md");
    let (_, table) = text.split_once("| stage | what |").expect("the table of stages");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}
