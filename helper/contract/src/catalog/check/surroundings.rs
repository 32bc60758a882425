#![forbid(unsafe_code)]
//! Where and as whom an action runs: times, directories, account, environment, limits, sandbox.

use super::{Problem, check_absolute, check_range, check_time, problem};
use crate::catalog::{
    Action, CommandRule, Directory, Network, NetworkClass, OnDisconnect, ParamType, Risk, Sandbox, Step,
    Timeout,
};
use crate::limits;
use crate::plan::is_absolute_path;

impl Action {
    pub(super) fn check_surroundings(&self) -> Result<(), Problem> {
        match &self.timeout {
            Some(Timeout::Fixed(time)) => check_time("timeout", *time)?,
            Some(Timeout::Param { param, default, max }) => {
                check_time("timeout.default", *default)?;
                check_time("timeout.max", *max)?;
                if default > max {
                    return problem("timeout.default", format!("{default} is above the `max` of {max}"));
                }
                match self.params.get(param) {
                    Some(p) if p.kind == ParamType::Integer => {}
                    _ => return problem("timeout.param", format!("`{param}` is no integer parameter")),
                }
            }
            None => {}
        }
        match &self.cwd {
            Some(Directory::Fixed(path)) if !is_absolute_path(path) => {
                return problem("cwd", "an absolute path without `.`, `..` and empty parts");
            }
            Some(Directory::Param { param, roots }) => {
                check_absolute("cwd.roots", roots)?;
                match self.params.get(param) {
                    Some(p) if matches!(p.kind, ParamType::String | ParamType::Path) => {}
                    _ => return problem("cwd.param", format!("`{param}` is no path parameter")),
                }
            }
            _ => {}
        }
        if let Some(time) = self.approval_timeout
            && !(1..=APPROVAL_MAX_MS).contains(&time.0)
        {
            return problem("approval_timeout", format!("{time} is not within 1ms to 24h"));
        }
        if let Some(time) = self.keep_result {
            if self.on_disconnect != OnDisconnect::Finish {
                return problem(
                    "keep_result",
                    "only beside `on_disconnect: finish`: no other result is kept",
                );
            }
            if !(1..=KEEP_MAX_MS).contains(&time.0) {
                return problem("keep_result", format!("{time} is not within 1ms to 24h"));
            }
        }
        check_account("run_as", self.run_as())?;
        for (index, group) in self.groups.iter().enumerate() {
            let (name, _) = Sandbox::optional_path(group);
            if !is_account_name(name) && name.parse::<u32>().is_err() {
                return problem(format!("groups.{index}"), "a name of /etc/group, or a number");
            }
        }
        for (name, value) in self.env.iter() {
            let at = format!("env.{name}");
            let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            if name.is_empty() || !name.bytes().all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
                return problem(at, "a variable's name is letters, digits and _");
            }
            if is_loader_variable(name) {
                return problem(at, "this variable makes programs load or run code: not in an action");
            }
            if value.contains('\0') {
                return problem(at, "a variable cannot hold NUL");
            }
        }
        let l = &self.limits;
        check_range("limits.processes", l.processes(), 1, limits::PROCESSES_MAX)?;
        check_range("limits.open_files", l.open_files(), limits::OPEN_FILES_MIN, limits::OPEN_FILES_MAX)?;
        check_range("limits.file_size", l.file_size(), 0, limits::FILE_SIZE_MAX)?;
        // The upper end is a quarter of the task size: more would let a program fill its address space
        // down to the page that one-shot exec guards.
        check_range("limits.memory", l.address_space(), 1 << 20, 32 << 40)?;
        check_range("limits.cpu_percent", l.cpu_percent(), 1, limits::CPU_PERCENT_MAX)?;
        check_range("concurrency", self.concurrency().into(), 1, 1024)?;
        check_sandbox("sandbox", &self.sandbox)
    }

    /// One temporary directory serves all steps, so they cannot differ about it.
    pub(super) fn check_temporary(&self) -> Result<(), Problem> {
        let mut size = None;
        for (at, sandbox) in self.declared_sandboxes() {
            let Some(own) = sandbox.private_tmp else { continue };
            let at = format!("{at}.private_tmp");
            check_range(&at, own.0, limits::TEMPORARY_MIN, limits::TEMPORARY_MAX)?;
            if *size.get_or_insert(own) != own {
                return problem(at, "a run has one temporary directory: give all its steps the same size");
            }
        }
        match self.env.get("TMPDIR") {
            Some(_) if size.is_some() => problem("env.TMPDIR", "`private_tmp` sets it"),
            _ => Ok(()),
        }
    }

    /// The sandboxes that are written down, each with its key: the action's, its steps' and its commands'.
    fn declared_sandboxes(&self) -> impl Iterator<Item = (String, &Sandbox)> {
        let own = std::iter::once(("sandbox".to_owned(), &self.sandbox));
        let steps = self.steps.iter().flatten().enumerate().filter_map(|(index, step): (_, &Step)| {
            Some((format!("steps.{index}.sandbox"), step.sandbox.as_ref()?))
        });
        let rules = self.builtin_config.iter().flat_map(|config| config.rules()).enumerate();
        let rules = rules.filter_map(|(index, rule): (_, &CommandRule)| {
            Some((format!("builtin_config.commands.{index}.sandbox"), rule.sandbox.as_ref()?))
        });
        own.chain(steps).chain(rules)
    }

    /// Who reaches a system socket as root, or through a group that is as good as root, can ask for a root
    /// shell outside the sandbox. An action that means it says so.
    pub(super) fn check_host_root(&self) -> Result<(), Problem> {
        if self.host_root {
            return match self.risk {
                Risk::Dangerous => Ok(()),
                _ => problem("host_root", "only beside `risk: dangerous`"),
            };
        }
        let Some(power) = self.root_power() else {
            return Ok(());
        };
        match self.declared_sandboxes().find(|(_, sandbox)| sandbox.network.has_unix()) {
            Some((at, _)) => problem(
                format!("{at}.network"),
                format!(
                    "unix sockets as {power} are as good as root on this host; take another account, or say \
                     `risk: dangerous` and `host_root: true`"
                ),
            ),
            None => Ok(()),
        }
    }

    /// What of its identity is as good as root, by name; numbers are resolved when the helper loads it.
    fn root_power(&self) -> Option<String> {
        let root = matches!(self.run_as().split(':').next(), Some("root" | "0"));
        let group = self.groups.iter().map(|group| Sandbox::optional_path(group).0);
        match root {
            true => Some("root".to_owned()),
            false => group.into_iter().find(|name| is_root_group(name)).map(|name| format!("group {name}")),
        }
    }
}

/// A day: who has not decided by then is asked again.
const APPROVAL_MAX_MS: u64 = 24 * 3_600_000;
/// Longest that a result is kept: it stands in the daemon's memory, which is bounded.
const KEEP_MAX_MS: u64 = 24 * 3_600_000;

/// Groups whose members can become root on the host.
pub fn is_root_group(name: &str) -> bool {
    const GROUPS: [&str; 11] =
        ["0", "docker", "disk", "incus", "incus-admin", "libvirt", "lxd", "root", "shadow", "sudo", "wheel"];
    GROUPS.contains(&name)
}

/// A name, or `uid:gid`. The highest number means "no change" to setresuid(2) and is refused.
fn check_account(at: &str, account: &str) -> Result<(), Problem> {
    let number = |text: &str| text.parse::<u32>().is_ok_and(|n| n != u32::MAX);
    let ok = match account.split_once(':') {
        Some((uid, gid)) => number(uid) && number(gid),
        None => is_account_name(account),
    };
    if ok { Ok(()) } else { problem(at, "a name of /etc/passwd, or \"uid:gid\" in numbers") }
}

fn is_account_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 256
        && !name.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'$'))
}

/// Variables through which a loader, an interpreter or a pager runs foreign code.
fn is_loader_variable(name: &str) -> bool {
    const NAMES: [&str; 19] = [
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "IFS",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "LOCPATH",
        "NLSPATH",
        "RESOLV_HOST_CONF",
        "HOSTALIASES",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "RUBYOPT",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "LESSOPEN",
    ];
    const PREFIXES: [&str; 6] = ["LD_", "MALLOC_", "PYTHON", "PERL5", "GIT_", "BASH_FUNC_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

pub(super) fn check_sandbox(at: &str, sandbox: &Sandbox) -> Result<(), Problem> {
    for (key, paths) in [("read", &sandbox.read), ("write", &sandbox.write)] {
        for (index, declared) in paths.iter().enumerate() {
            let (path, _) = Sandbox::optional_path(declared);
            if !is_absolute_path(path) {
                return problem(
                    format!("{at}.{key}.{index}"),
                    format!("`{path}` is not an absolute path without `.`, `..` and empty parts"),
                );
            }
        }
    }
    check_absolute(&format!("{at}.exec"), &sandbox.exec)?;
    if let Network::Classes(classes) = &sandbox.network {
        for class in classes {
            if let NetworkClass::Connect(ports) | NetworkClass::Bind(ports) = class
                && (ports.is_empty() || ports.contains(&0))
            {
                return problem(format!("{at}.network"), "name the ports, each from 1 to 65535");
            }
        }
    }
    match sandbox.bounding.iter().find(|name| name.as_str() != "net_raw") {
        Some(name) => problem(format!("{at}.bounding"), format!("`{name}` is not known; `net_raw` is")),
        None => Ok(()),
    }
}
