#![forbid(unsafe_code)]
//! Sandboxes: rules that add nothing, rules that cannot hold, rules that are wider than they look.

use super::Report;
use gloveport_contract::catalog::{Action, Base, Builtin, Network, NetworkClass, Sandbox};
use gloveport_contract::plan::is_under;

/// Trees that the base `system` reads already.
const BASE: [&str; 5] = ["/etc", "/proc", "/sys", "/usr/share", "/usr/lib/locale"];

/// Who writes below one of these decides what runs on the host.
const POWERFUL: [&str; 14] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/sys",
    "/usr", "/var",
];

pub(super) fn lint(action: &Action, report: &mut Report<'_>) {
    let is_root = matches!(action.run_as().split(':').next(), Some("root" | "0"));
    if action.builtin.is_some_and(|builtin| builtin != Builtin::Command)
        && action.sandbox != Sandbox::default()
    {
        report.warn("sandbox", "has no effect: the sandbox of a built-in follows from `builtin_config`");
    }
    for (at, sandbox) in super::sandboxes(action) {
        overlaps(&at, sandbox, is_root, report);
        writes(&at, sandbox, report);
        if !sandbox.exec.is_empty() {
            report.warn(
                format!("{at}.exec"),
                "children may start: one-shot exec is off, and Landlock's execute right holds in its place",
            );
        }
        network(&at, &sandbox.network, report);
        if !sandbox.may_lack.is_empty() {
            let names: Vec<&str> = sandbox.may_lack.iter().map(|promise| promise.as_str()).collect();
            report.note(
                format!("{at}.may_lack"),
                format!("on a kernel that cannot keep it, it runs without: {}", names.join(", ")),
            );
        }
    }
}

fn overlaps(at: &str, sandbox: &Sandbox, is_root: bool, report: &mut Report<'_>) {
    let plain = |declared: &'_ String| Sandbox::optional_path(declared).0.to_owned();
    let reads: Vec<String> = sandbox.read.iter().map(plain).collect();
    let writes: Vec<String> = sandbox.write.iter().map(plain).collect();
    let base = if sandbox.base == Base::System && !is_root { BASE.as_slice() } else { &[] };
    for (index, path) in reads.iter().enumerate() {
        let at = format!("{at}.read.{index}");
        if let Some(wide) = writes.iter().find(|wide| is_under(path, wide)) {
            report.warn(
                at,
                format!("`{path}` can be written too: Landlock cannot take away below `{wide}` what it gives there"),
            );
        } else if let Some(wide) = other(&reads, index).find(|wide| is_under(path, wide)) {
            report.note(at, format!("adds nothing: `{wide}` is read already"));
        } else if let Some(wide) = base.iter().find(|wide| is_under(path, wide)) {
            report.note(at, format!("adds nothing: the base `system` reads `{wide}`"));
        }
    }
    for (index, path) in writes.iter().enumerate() {
        if let Some(wide) = other(&writes, index).find(|wide| is_under(path, wide)) {
            report.note(format!("{at}.write.{index}"), format!("adds nothing: `{wide}` is written already"));
        }
    }
    for (index, path) in sandbox.exec.iter().enumerate() {
        if let Some(wide) = writes.iter().find(|wide| is_under(path, wide)) {
            report.warn(
                format!("{at}.exec.{index}"),
                format!("`{path}` lies below `{wide}`, which may be written: nothing below is ever executed"),
            );
        }
    }
}

/// The paths of a list but one; of equal ones only the earlier.
fn other(paths: &[String], but: usize) -> impl Iterator<Item = &String> {
    let own = paths.get(but);
    paths
        .iter()
        .enumerate()
        .filter(move |(index, path)| *index < but || (*index > but && Some(*path) != own))
        .map(|(_, path)| path)
}

fn writes(at: &str, sandbox: &Sandbox, report: &mut Report<'_>) {
    for (index, declared) in sandbox.write.iter().enumerate() {
        let (path, _) = Sandbox::optional_path(declared);
        let at = format!("{at}.write.{index}");
        if POWERFUL.contains(&path) {
            report.warn(at, format!("who writes to all of `{path}` decides what runs on the host"));
        } else if ["/etc", "/usr", "/boot", "/root"].iter().any(|root| is_under(path, root)) {
            report.warn(at, format!("`{path}` belongs to the system; a place of its own is safer"));
        }
    }
}

fn network(at: &str, network: &Network, report: &mut Report<'_>) {
    let Network::Classes(classes) = network else {
        return;
    };
    let at = format!("{at}.network");
    for class in classes {
        match class {
            NetworkClass::Unix => report.note(
                &at,
                "unix: which socket of the host answers is decided by its file mode and the account, not by \
                 the sandbox",
            ),
            NetworkClass::Dns => report.note(&at, "dns: UDP goes to any host and port"),
            NetworkClass::Bind(_) => report.warn(&at, "bind: others can connect to the program"),
            NetworkClass::Netlink | NetworkClass::Icmp | NetworkClass::Connect(_) => {}
        }
    }
}
