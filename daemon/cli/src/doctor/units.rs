#![forbid(unsafe_code)]
//! What the service manager makes of an installed host's units: whether they run, come back at boot, and are
//! still those of the package.

use super::Check;
use crate::failure::Failure;
use gloveportd::paths::Paths;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The units, in the order in which they matter to a caller.
const UNITS: [&str; 5] =
    ["gloveport.service", "gloveport.socket", "gloveport-helper.socket", HELPER, "gloveport.slice"];
/// Started by its socket, so it may rest; and what is enabled is its socket.
const HELPER: &str = "gloveport-helper.service";
/// What is asked about each.
const PROPERTIES: &str = "--property=Id,LoadState,ActiveState,SubState,Result,UnitFileState,FragmentPath,\
     DropInPaths,NeedDaemonReload";
/// Where packages put units; one directory on a merged /usr.
const PACKAGED: [&str; 2] = ["/usr/lib/systemd/system/", "/lib/systemd/system/"];
/// Settings that a drop-in may change without taking away what the package's unit holds: when it starts and
/// stops, where its log goes, and how much of the host it may use.
const HARMLESS: [&str; 35] = [
    "After",
    "Before",
    "CPUQuota",
    "CPUWeight",
    "Description",
    "Documentation",
    "ExecReload",
    "IOWeight",
    "LimitNOFILE",
    "LimitNPROC",
    "LogLevelMax",
    "LogRateLimitBurst",
    "LogRateLimitIntervalSec",
    "MemoryHigh",
    "MemoryMax",
    "MemorySwapMax",
    "Nice",
    "OnFailure",
    "PartOf",
    "Requires",
    "Restart",
    "RestartMaxDelaySec",
    "RestartSec",
    "RestartSteps",
    "StandardError",
    "StandardOutput",
    "SyslogIdentifier",
    "TasksMax",
    "TimeoutAbortSec",
    "TimeoutSec",
    "TimeoutStartSec",
    "TimeoutStopFailureMode",
    "TimeoutStopSec",
    "Wants",
    "WatchdogSec",
];

/// A unit's properties by their names.
type Unit = BTreeMap<String, String>;

/// Looks at the units. A state directory has none.
pub fn examine(paths: &Paths) -> Vec<Check> {
    if paths.state.is_some() {
        return Vec::new();
    }
    // As sd_booted(3) has it.
    if !Path::new("/run/systemd/system").is_dir() {
        return vec![Check::warn(
            "units",
            "this host does not run systemd: nothing starts the two halves, and nothing but themselves confines them",
            "have them started with their sockets handed over, as gloveportd(8) and gloveport-helper(8) describe",
        )];
    }
    match show() {
        Ok(units) => units
            .iter()
            .flat_map(|unit| [state(unit), origin(unit)].into_iter().flatten().chain(drop_ins(unit)))
            .collect(),
        Err(failure) => vec![Check::failure("units", &failure)],
    }
}

fn show() -> Result<Vec<Unit>, Failure> {
    let failed = |reason: String| {
        Failure::new(format!("systemctl does not tell about the units: {}", reason.trim()))
            .remedy("`systemctl status gloveport` says what it can")
    };
    let output = Command::new("systemctl")
        .args(["show", "--no-pager", PROPERTIES])
        .args(UNITS)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// The units that `systemctl show` tells of: a block of `Name=value` for each, an empty line between them.
fn parse(text: &str) -> Vec<Unit> {
    let property = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split("\n\n")
        .map(|block| block.lines().filter_map(property).collect::<Unit>())
        .filter(|unit| !unit.is_empty())
        .collect()
}

fn get<'a>(unit: &'a Unit, name: &str) -> &'a str {
    unit.get(name).map_or("", String::as_str)
}

/// Whether it runs, and will after the next boot.
fn state(unit: &Unit) -> Option<Check> {
    let id = get(unit, "Id");
    // It only lends its networks to the service.
    if id.ends_with(".slice") {
        return None;
    }
    let start = "systemctl enable --now gloveport";
    Some(match (get(unit, "LoadState"), get(unit, "ActiveState"), get(unit, "SubState")) {
        ("masked", ..) => Check::fail(
            "units",
            format!("{id} is masked: nothing can start it"),
            format!("systemctl unmask {id}"),
        ),
        (load, ..) if load != "loaded" => Check::fail(
            "units",
            format!("{id} cannot be loaded ({load})"),
            "install the package again, then systemctl daemon-reload",
        ),
        (_, "failed", _) | (_, _, "auto-restart") => Check::fail(
            "units",
            format!("{id} has failed ({})", get(unit, "Result")),
            format!("`journalctl -u {id} -n 20` says why; then systemctl restart {id}"),
        ),
        (_, "active" | "reloading", _) => match get(unit, "UnitFileState") {
            enabled if enabled == "enabled" || id == HELPER => Check::ok("units", format!("{id} runs")),
            other => Check::warn(
                "units",
                format!("{id} runs, and will not after the next boot ({other})"),
                "systemctl enable gloveport",
            ),
        },
        (_, "inactive", _) if id == HELPER => {
            Check::ok("units", format!("{id} rests until its socket is connected to"))
        }
        (_, active, _) => Check::fail("units", format!("{id} does not run ({active})"), start),
    })
}

/// Whether it is the package's, as it lies on the disk.
fn origin(unit: &Unit) -> Option<Check> {
    let (id, file) = (get(unit, "Id"), get(unit, "FragmentPath"));
    if !file.is_empty() && !PACKAGED.iter().any(|place| file.starts_with(place)) {
        return Some(Check::warn(
            "units",
            format!("{file} stands in place of the package's {id}: what that holds may not hold"),
            format!("keep what differs in a drop-in (`systemctl edit {id}`) and remove {file}"),
        ));
    }
    (get(unit, "NeedDaemonReload") == "yes").then(|| {
        Check::warn(
            "units",
            format!("{id} has changed on the disk since systemd read it"),
            format!("systemctl daemon-reload, then systemctl restart {id}"),
        )
    })
}

/// What was added to it on this host.
fn drop_ins(unit: &Unit) -> Vec<Check> {
    let id = get(unit, "Id");
    let check = |file: &str| {
        let set = match fs::read_to_string(file) {
            Ok(text) => weakening(&text),
            Err(error) => vec![format!("what cannot be read ({error})")],
        };
        if set.is_empty() {
            return Check::ok("drop_ins", format!("{file} takes nothing away from {id}"));
        }
        Check::warn(
            "drop_ins",
            format!("{file} sets {}: what {id} of the package holds may no longer hold", set.join(", ")),
            format!("`systemctl revert {id}` removes it; hardening.md says what it opens, if it is meant"),
        )
    };
    get(unit, "DropInPaths").split_whitespace().map(check).collect()
}

/// The settings of a drop-in that are not known to be harmless, each once.
fn weakening(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let name = name.trim();
        let is_remark = name.starts_with(['#', ';']);
        if !is_remark && !is_harmless(name, value.trim()) && !found.iter().any(|other| other == name) {
            found.push(name.to_owned());
        }
    }
    found
}

fn is_harmless(name: &str, value: &str) -> bool {
    if name != "ExecStart" {
        return HARMLESS.contains(&name);
    }
    // Other words for the same program, but not those that give up the boundary.
    value.is_empty() || (value.starts_with("/usr/libexec/gloveport/") && !value.contains("--same-user"))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    const SERVICE: &str = "Id=gloveport.service\nLoadState=loaded\nActiveState=active\nSubState=running\n\
        Result=success\nUnitFileState=enabled\nFragmentPath=/lib/systemd/system/gloveport.service\n\
        DropInPaths=\nNeedDaemonReload=no\n";

    fn with(changes: &[(&str, &str)]) -> Unit {
        let mut unit = parse(SERVICE).remove(0);
        unit.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        unit
    }

    #[test]
    fn units_are_told_apart_and_an_equals_sign_may_stand_in_a_value() {
        let units = parse(&format!("{SERVICE}\n{}", SERVICE.replace("success", "a=b")));
        assert_eq!(units.len(), 2);
        assert_eq!(get(&units[1], "Result"), "a=b");
    }

    #[test]
    fn a_unit_that_runs_and_comes_back_is_well_and_any_other_is_not() {
        let state = |changes: &[(&str, &str)]| state(&with(changes)).unwrap();
        assert_eq!(state(&[]).status, State::Ok);
        for (changes, status, word) in [
            (&[("LoadState", "masked")][..], State::Fail, "unmask"),
            (&[("LoadState", "not-found")], State::Fail, "install"),
            (&[("ActiveState", "failed"), ("Result", "exit-code")], State::Fail, "journalctl"),
            (&[("ActiveState", "activating"), ("SubState", "auto-restart")], State::Fail, "journalctl"),
            (&[("ActiveState", "inactive")], State::Fail, "enable --now"),
            (&[("UnitFileState", "disabled")], State::Warn, "enable"),
        ] {
            let check = state(changes);
            assert_eq!(check.status, status, "{changes:?}: {check:?}");
            assert!(check.remedy.as_ref().unwrap().contains(word), "{changes:?}: {check:?}");
        }
        assert_eq!(state(&[("Id", HELPER), ("ActiveState", "inactive")]).status, State::Ok);
        assert_eq!(state(&[("Id", HELPER), ("UnitFileState", "indirect")]).status, State::Ok);
    }

    #[test]
    fn a_unit_of_somebody_else_or_of_yesterday_is_named() {
        assert_eq!(origin(&with(&[])), None);
        let replaced = origin(&with(&[("FragmentPath", "/etc/systemd/system/gloveport.service")])).unwrap();
        assert!(replaced.detail.starts_with("/etc/systemd/system/gloveport.service"), "{replaced:?}");
        assert!(origin(&with(&[("NeedDaemonReload", "yes")])).unwrap().remedy.unwrap().contains("reload"));
    }

    #[test]
    fn a_drop_in_is_harmless_by_its_settings_and_by_nothing_else() {
        let exec = "/usr/libexec/gloveport/gloveport-helper --audit-sync always";
        let harmless = format!("[Service]\n# ProtectHome=no\nMemoryMax=4G\nExecStart=\nExecStart={exec}\n");
        assert_eq!(weakening(&harmless), Vec::<String>::new());
        let weaker = "[Service]\nProtectHome=no\n ProtectHome = no\nCapabilityBoundingSet=CAP_SYS_ADMIN\n\
            ExecStart=/usr/libexec/gloveport/gloveportd --same-user\n";
        assert_eq!(weakening(weaker), ["ProtectHome", "CapabilityBoundingSet", "ExecStart"]);
    }
}
