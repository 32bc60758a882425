#![forbid(unsafe_code)]
//! What the host brings: privilege, programs, accounts, the kernel.

use super::Check;
use crate::{accounts, files};
use gloveportd::paths::Paths;
use std::fs;

/// Looks at the host. A helper that answers knows the kernel's layers better.
pub fn examine(paths: &Paths, helper_answers: bool) -> Vec<Check> {
    let mut checks = vec![privilege()];
    checks.extend(programs(paths));
    checks.extend(users(paths));
    checks.extend(groups(paths));
    checks.push(lowest_page());
    if !helper_answers {
        checks.extend([landlock(), children()]);
    }
    checks
}

fn privilege() -> Check {
    if rustix::process::geteuid().is_root() {
        return Check::ok("root", "this examination may look at everything");
    }
    Check::warn(
        "root",
        "this examination runs without root: the helper, the audit log and private files stay unseen",
        "sudo gloveport doctor",
    )
}

fn programs(paths: &Paths) -> Vec<Check> {
    let own = rustix::process::geteuid().as_raw();
    let check = |name: &str| {
        let path = paths.bin_dir.join(name);
        if !path.is_file() {
            return Check::fail(
                "programs",
                format!("{} is missing", path.display()),
                "install the package; from a checkout, `make run` and `gloveport up` bring their own",
            );
        }
        match files::exposed(&path, if paths.state.is_some() { own } else { 0 }) {
            None => Check::ok("programs", format!("{} is safe from other users", path.display())),
            Some(reason) => Check::fail(
                "programs",
                format!("{} is not safe from other users: {reason}", path.display()),
                "whoever can write there becomes root: install it again, owned by root, mode 0755",
            ),
        }
    };
    ["gloveportd", "gloveport-helper", "gloveport-handler"].map(check).to_vec()
}

fn users(paths: &Paths) -> Vec<Check> {
    let check = |name: &str| match accounts::find(name) {
        Ok(account) if account.uid == 0 => {
            Check::fail("users", format!("{name} is another name of root"), accounts::how_to_add(name))
        }
        Ok(account) => Check::ok("users", format!("{name} has uid {}", account.uid)),
        Err(failure) => Check::failure("users", &failure),
    };
    // A try-out may run its daemon as anybody.
    let daemon = paths.state.is_none().then_some(accounts::DAEMON);
    daemon.into_iter().chain([accounts::RUN]).map(check).collect()
}

/// Groups give what the accounts are there to be without. The helper gives a program no group but those that its
/// action names, so the run account's own are nobody's.
fn groups(paths: &Paths) -> Vec<Check> {
    if paths.state.is_some() {
        return Vec::new();
    }
    let joined = accounts::memberships(accounts::DAEMON).into_iter().map(|group| {
        Check::warn(
            "groups",
            format!("the daemon's account is also in the group {group}, and may do what that may"),
            format!("gpasswd --delete {} {group}, then systemctl restart gloveport", accounts::DAEMON),
        )
    });
    let joining = accounts::members(accounts::DAEMON).into_iter().map(|member| {
        Check::warn(
            "groups",
            format!("{member} is in the daemon's group, and may read its settings and its tokens' scopes"),
            format!("gpasswd --delete {member} {}", accounts::DAEMON),
        )
    });
    joined.chain(joining).collect()
}

/// Without the helper nobody here may ask the kernel for the version; its name in the list tells that much.
fn landlock() -> Check {
    let modules = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if modules.split(',').any(|module| module.trim() == "landlock") {
        return Check::ok("landlock", "among the kernel's security modules");
    }
    if modules.is_empty() {
        return Check::warn(
            "landlock",
            "the list of security modules cannot be read; the helper tells once it runs",
            "mount -t securityfs none /sys/kernel/security",
        );
    }
    Check::fail(
        "landlock",
        format!(
            "not among the kernel's security modules ({}): promises that need it are refused",
            modules.trim()
        ),
        "boot with `lsm=landlock,…` (Linux 5.13 or newer), or let the actions go without by `may_lack`",
    )
}

fn lowest_page() -> Check {
    let lowest = fs::read_to_string("/proc/sys/vm/mmap_min_addr").unwrap_or_default();
    match lowest.trim().parse::<u64>() {
        Ok(0) => Check::fail(
            "mmap_min_addr",
            "vm.mmap_min_addr is 0: a program could map the page that keeps it from starting a second one",
            "sysctl -w vm.mmap_min_addr=65536, and the same in /etc/sysctl.d/",
        ),
        Ok(address) => Check::ok("mmap_min_addr", format!("vm.mmap_min_addr is {address}")),
        Err(_) => Check::fail("mmap_min_addr", "vm.mmap_min_addr cannot be read", "mount /proc"),
    }
}

/// What ends a whole tree of processes where no cgroup is delegated.
fn children() -> Check {
    if fs::metadata("/proc/thread-self/children").is_ok() {
        return Check::ok("proc_children", "the descendants of a run can be listed");
    }
    Check::warn(
        "proc_children",
        "/proc/PID/task/TID/children is missing (CONFIG_PROC_CHILDREN): only a cgroup can end a whole tree",
        "delegate a cgroup to the helper (the package's unit does), or use a kernel that has it",
    )
}
