//! The units have not weakened the sandbox, and the sandbox not the units.

use super::machine::{Machine, call};
use gloveport_tests::processes::wait_until;
use gloveport_tests::programs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(15);
/// Actions of the host: the probe in the base sandbox, a file in a home that is closed to others, and a file in the
/// temporary directory of the run.
const PROBE: &str = "
name: probe
description: Runs the probe.
risk: read
params: {words: {type: list, items: {type: string, allow_dash: true}}}
exec: [/usr/local/bin/gloveport-probe, \"{words}\"]
timeout: 2s
limits: {processes: 60}
---
name: home
description: Reads a file in a home that only its owner may enter.
risk: read
exec: [/usr/bin/cat, /home/ana/notes]
run_as: ana
sandbox: {read: [/home/ana/notes]}
---
name: temporary
description: Makes a temporary file.
risk: read
exec: [/usr/bin/mktemp]
sandbox: {private_tmp: 1MiB}
";

fn with_probe() -> (Machine, String) {
    let (machine, token) = Machine::in_service();
    machine.put(&programs::built("gloveport-probe"), "/usr/local/bin/gloveport-probe");
    machine.sh("useradd --create-home ana && chmod 0700 /home/ana && echo her own >/home/ana/notes");
    machine.sh("chmod 0600 /home/ana/notes && chown ana:ana /home/ana/notes");
    machine.write("/etc/gloveport/catalog.d/probe.yaml", PROBE);
    machine.sh("gloveport init --yes && systemctl reload gloveport-helper");
    machine.wait_until_called(&token);
    (machine, token)
}

fn probe(machine: &Machine, token: &str, words: &[&str]) -> Value {
    machine.call(token, "probe", &json!({"params": {"words": words}}).to_string()).1
}

fn stdout(result: &Value) -> &str {
    result["steps"][0]["stdout"].as_str().unwrap_or_default()
}

/// The fields of `/proc/PID/status`.
fn status(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim())).collect()
}

#[test]
fn a_run_of_the_installed_service_is_confined_as_promised() {
    let (machine, token) = with_probe();
    let (_, result) = machine.call(&token, "uptime", "{}");
    let enforcement = &result["enforcement"];
    assert_eq!(enforcement["run_as"], "gloveport-run", "{result:#}");
    assert_eq!(enforcement["no_new_privs"], true, "{enforcement:#}");
    assert!(enforcement["landlock_abi"].as_u64() > Some(0), "{enforcement:#}");
    assert_eq!(enforcement["one_shot_exec"], true, "{enforcement:#}");
    assert_eq!(enforcement["cgroup"], true, "the unit delegates a group: {enforcement:#}");
    assert_eq!(enforcement["network"], "none", "{enforcement:#}");

    let read = |file: &str| {
        let (_, result) =
            machine.call(&token, "execute_command", &json!({"command": format!("cat {file}")}).to_string());
        result["stdout"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
    };
    let own = read("/proc/self/status");
    let own = status(&own);
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(own[set], "0000000000000000", "{set}");
    }
    assert_eq!((own["NoNewPrivs"], own["Seccomp"]), ("1", "2"));
    let group = read("/proc/self/cgroup");
    assert!(group.contains("/gloveport-helper.service/runs/"), "{group}");

    // Landlock: a file that the account itself may read, and the sandbox does not name.
    assert_eq!(stdout(&probe(&machine, &token, &["open", "/usr/bin/env"])).trim(), "errno EACCES");
    assert_eq!(stdout(&probe(&machine, &token, &["exec2", "/usr/bin/true"])).trim(), "errno EPERM");
}

/// The helper's own root has no CAP_DAC_OVERRIDE there: what it opens for a run in another user's closed home
/// is a place, not a file.
#[test]
fn a_declared_file_in_a_closed_home_is_read_as_its_owner() {
    let (machine, token) = with_probe();
    let (code, result) = machine.call(&token, "home", "{}");
    assert_eq!((code, stdout(&result)), (0, "her own\n"), "{result:#}");
}

/// It is made without CAP_SYS_ADMIN, within what the unit allows.
#[test]
fn a_run_has_its_temporary_directory_under_the_unit_too() {
    let (machine, token) = with_probe();
    let (code, result) = machine.call(&token, "temporary", "{}");
    assert_eq!(code, 0, "{result:#}\n{}", machine.journal());
    assert!(stdout(&result).starts_with("/proc/self/fd/3/tmp."), "{result:#}");
    let granted = machine.sh("systemctl show --property CapabilityBoundingSet gloveport-helper");
    assert!(!granted.contains("cap_sys_admin"), "{granted}");
    // An administrator who takes the namespaces away loses that, and nothing else.
    machine.sh("mkdir -p /etc/systemd/system/gloveport-helper.service.d");
    machine.write(
        "/etc/systemd/system/gloveport-helper.service.d/namespaces.conf",
        "[Service]\nRestrictNamespaces=yes\n",
    );
    machine.sh("systemctl daemon-reload && systemctl restart gloveport-helper");
    machine.wait_until_called(&token);
    let refused = machine.run(&call(&token, "temporary", "{}"));
    let said =
        String::from_utf8_lossy(&refused.stderr).into_owned() + &String::from_utf8_lossy(&refused.stdout);
    assert_eq!(refused.status.code(), Some(125), "{said}");
    assert!(said.contains("user namespaces"), "{said}");
}

#[test]
fn a_tree_is_ended_as_a_group_and_its_group_is_gone() {
    let (machine, token) = with_probe();
    for words in [["tree", "50"], ["daemon", "20000"], ["ignore-term", "20000"]] {
        let result = probe(&machine, &token, &words);
        assert_eq!(result["timed_out"], true, "{words:?}: {result:#}\n{}", machine.journal());
        assert!(!machine.holds("pgrep gloveport-probe"), "{words:?} left something running");
        let groups = "ls -d /sys/fs/cgroup/system.slice/gloveport-helper.service/runs/*/";
        wait_until("the group is gone", SOON, || !machine.holds(groups));
    }
}

#[test]
fn the_daemon_has_no_privilege_no_way_to_execute_and_no_sight_of_secrets() {
    let (machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    let pid = machine.main_pid("gloveport");
    let text = machine.sh(&format!("cat /proc/{pid}/status"));
    let own = status(&text);
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(own[set], "0000000000000000", "{set}");
    }
    assert_eq!((own["NoNewPrivs"], own["Seccomp"]), ("1", "2"));
    let user = machine.sh("id --user gloveport");
    assert!(own["Uid"].split_whitespace().all(|uid| uid == user.trim()), "{}", own["Uid"]);
    // Root itself, standing where the daemon stands, can execute nothing: the host's programs are not there, and
    // what else it reaches must not be executed.
    machine.sh("cp /usr/bin/true /run/gloveport/planted");
    for program in ["/usr/bin/true", "/run/gloveport/planted"] {
        machine.sh(program);
        assert!(!machine.holds(&format!("nsenter --target {pid} --mount {program}")), "{program} starts");
    }
    machine.sh("echo secret >/etc/gloveport/credentials/database");
    for secret in [
        "/etc/gloveport/credentials/database",
        "/etc/gloveport/host_key",
        "/var/log/gloveport/audit.jsonl",
        "/root/gloveport.deb",
    ] {
        machine.sh(&format!("test -s {secret}"));
        // What is hidden from it is empty there, or not there at all.
        assert!(!machine.holds(&format!("test -s /proc/{pid}/root{secret}")), "the daemon sees {secret}");
    }
}

#[test]
fn the_helper_keeps_the_capabilities_that_its_unit_names_and_no_other() {
    let (machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    let pid = machine.main_pid("gloveport-helper");
    let text = machine.sh(&format!("cat /proc/{pid}/status"));
    let own = status(&text);
    let bits = |set: &str| u64::from_str_radix(own[set], 16).expect("a set of capabilities");
    // chown 0, dac_read_search 2, kill 5, setgid 6, setuid 7, setpcap 8, and in the bounding set net_bind_service 10
    // and net_raw 13.
    let effective = [0, 2, 5, 6, 7, 8].iter().fold(0, |set, bit| set | 1 << bit);
    assert_eq!(bits("CapEff"), effective, "{:x}", bits("CapEff"));
    assert_eq!(bits("CapBnd"), effective | 1 << 10 | 1 << 13, "{:x}", bits("CapBnd"));
    assert_eq!((own["NoNewPrivs"], own["Seccomp"]), ("1", "2"));
    assert!(!machine.holds(&format!("ss -Hlptn | grep pid={pid},")), "the helper listens on TCP");
}
