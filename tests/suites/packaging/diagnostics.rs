//! The ready catalogue `diagnostics` on the installed service: every action once, on a machine where systemd, its journal and
//! its bus are really there.

use super::machine::Machine;
use super::packages;
use gloveport_tests::programs;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// What the machine has for the actions to find: a failed unit and a line in the journal, a login, a log file, packages
/// of both kinds, and a newer version of one of them in a package list.
const PREPARE: &str = r#"
sysctl --quiet --write net.ipv4.ping_group_range="$(id -g gloveport-run) $(id -g gloveport-run)"
systemd-run --quiet --unit=broken --property=Type=oneshot false || :
logger --tag marker --priority user.err "a line of the test"
echo 'a needle in the log' >/var/log/marker.log
: >/var/log/wtmp
echo '127.0.0.1 localhost' >>/etc/hosts
mkdir -p /etc/rpm
# Where a host of RPM has it; Debian's own rpm looks below a home.
echo '%_dbpath /var/lib/rpm' >/etc/rpm/macros
rpm --install --justdb --nodeps --noscripts /root/gloveport.rpm
mkdir -p /srv/lists /srv/large /srv/repository/repodata /etc/yum.repos.d
truncate --size=20M /srv/large/file
cat >/srv/lists/Packages <<END
Package: procps
Version: 99:1
Architecture: $(dpkg --print-architecture)
Maintainer: nobody
Filename: ./procps.deb
Size: 1
SHA256: 0000000000000000000000000000000000000000000000000000000000000000
Description: newer
END
echo 'deb [trusted=yes] copy:/srv/lists ./' >/etc/apt/sources.list
rm -f /etc/apt/sources.list.d/*
apt-get --quiet=2 update
cat >/srv/repository/repodata/primary.xml <<END
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="1">
<package type="rpm"><name>gloveport</name><arch>$(rpm --query --queryformat '%{ARCH}' gloveport)</arch>
<version epoch="0" ver="99" rel="1"/>
<checksum type="sha256" pkgid="YES">0000000000000000000000000000000000000000000000000000000000000000</checksum>
<summary>newer</summary><description>newer</description><packager/><url/><time file="1" build="1"/>
<size package="1" installed="1" archive="1"/><location href="gloveport.rpm"/>
<format><rpm:license>MIT</rpm:license><rpm:header-range start="1" end="1"/></format></package>
</metadata>
END
sum=$(sha256sum </srv/repository/repodata/primary.xml)
cat >/srv/repository/repodata/repomd.xml <<END
<repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision>
<data type="primary"><checksum type="sha256">${sum%% *}</checksum><location href="repodata/primary.xml"/></data></repomd>
END
printf '[local]\nname=local\nbaseurl=file:///srv/repository\ngpgcheck=0\n' >/etc/yum.repos.d/local.repo
dnf --quiet makecache
"#;

/// What the output of an action must hold.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// All of these, wherever.
    Holds(&'static [&'static str]),
    /// JSON in each step, and in it this.
    Json(&'static str),
}

use Expected::{Holds, Json};

/// Every action with the parameters of a call.
fn table() -> Vec<(&'static str, Value, Expected)> {
    vec![
        ("audit_log", json!({"lines": 5}), Holds(&[])),
        ("block_devices", json!({}), Json("blockdevices")),
        ("boots", json!({}), Holds(&["0 "])),
        ("connections", json!({}), Holds(&["Local Address"])),
        ("cpu", json!({}), Json("Architecture")),
        ("cpu_load", json!({"samples": 1}), Holds(&["procs", "swpd"])),
        ("directory_listing", json!({"path": "/etc/gloveport"}), Holds(&["daemon.toml", "gloveport"])),
        ("directory_sizes", json!({"path": "/srv"}), Holds(&["/srv/large"])),
        ("disks", json!({}), Holds(&["1-blocks", "IUsed"])),
        ("dns_lookup", json!({"name": "localhost"}), Holds(&[])),
        ("failed_units", json!({}), Json("broken.service")),
        ("file_content", json!({"path": "/etc/passwd", "lines": 1}), Holds(&["root:"])),
        ("hardware", json!({}), Holds(&["Architecture"])),
        ("interfaces", json!({}), Json("127.0.0.1")),
        ("io_pressure", json!({}), Holds(&[])),
        ("journal", json!({"lines": 50, "priority": "err"}), Holds(&["marker", "a line of the test"])),
        ("kernel_messages", json!({"lines": 5}), Holds(&[])),
        ("kernel_parameters", json!({}), Holds(&["Linux version"])),
        (
            "largest_files",
            json!({"path": "/srv", "larger_than": "+10M"}),
            Holds(&["20971520", "/srv/large/file"]),
        ),
        ("last_logins", json!({"lines": 5}), Holds(&["wtmp begins"])),
        ("listening_ports", json!({}), Holds(&["127.0.0.1:8010", "gloveport.service"])),
        ("log_search", json!({"paths": ["*.log"], "pattern": "needle"}), Json("a needle in the log")),
        ("log_tail", json!({"path": "/var/log/marker.log", "lines": 2}), Holds(&["a needle in the log"])),
        ("memory", json!({}), Holds(&["MemTotal", "Swap"])),
        ("mounts", json!({}), Json("filesystems")),
        ("name_lookup", json!({"name": "localhost"}), Holds(&["localhost", "STREAM"])),
        ("neighbours", json!({}), Json("[]")),
        ("package_deb", json!({"name": "gloveport"}), Holds(&["Status: install ok installed"])),
        ("package_history", json!({"lines": 500}), Holds(&["gloveport"])),
        ("package_rpm", json!({"name": "gloveport"}), Holds(&["Name        : gloveport"])),
        ("packages_deb", json!({}), Holds(&["ii  gloveport", "ii  procps"])),
        ("packages_rpm", json!({}), Holds(&["gloveport"])),
        ("pci_devices", json!({}), Holds(&[])),
        ("ping", json!({"host": "127.0.0.1", "count": 1}), Holds(&["1 received"])),
        ("process", json!({"pid": 1}), Holds(&["init"])),
        ("process_tree", json!({}), Holds(&["gloveportd", "systemd-journald"])),
        ("processes", json!({}), Holds(&["gloveportd"])),
        ("routes", json!({}), Json("127.0.0.0/8")),
        ("security_modules", json!({}), Holds(&[])),
        (
            "service_log",
            json!({"unit": "gloveport.service", "lines": 20}),
            Holds(&["Started gloveport.service"]),
        ),
        (
            "service_status",
            json!({"unit": "gloveport.service"}),
            Holds(&["Active: active (running)", "Main PID"]),
        ),
        ("services", json!({"state": "running"}), Json("gloveport-helper.service")),
        ("socket_summary", json!({}), Holds(&["TCP:"])),
        ("system_information", json!({}), Holds(&["Linux", "PRETTY_NAME", "load average"])),
        ("time_synchronisation", json!({}), Holds(&["Timezone=", "NTPSynchronized="])),
        ("timers", json!({}), Json("systemd-tmpfiles-clean.timer")),
        ("updates_deb", json!({}), Holds(&["procps/", "99:1", "upgradable from"])),
        ("updates_rpm", json!({}), Json("99-1")),
        ("uptime", json!({}), Holds(&["load average"])),
        ("users_logged_in", json!({}), Holds(&["USER", "LOGIN@"])),
    ]
}

/// The names in the sources of the catalogue.
fn names() -> BTreeSet<String> {
    let directory = programs::repository().join("packaging/catalogs/diagnostics");
    let sources = fs::read_dir(directory).expect("the catalogue").flatten();
    let texts = sources.map(|source| fs::read_to_string(source.path()).expect("a source"));
    texts
        .flat_map(|text| {
            text.lines().filter_map(|line| Some(line.strip_prefix("name: ")?.to_owned())).collect::<Vec<_>>()
        })
        .collect()
}

fn check(
    machine: &Machine,
    token: &str,
    name: &str,
    params: &Value,
    expected: Expected,
) -> Result<(), String> {
    let (_, result) = machine.call(token, name, &json!({"params": params}).to_string());
    let steps = result["steps"].as_array().cloned().unwrap_or_default();
    let outputs = || steps.iter().filter_map(|step| step["stdout"].as_str());
    let output: String = outputs().collect();
    let errors: String = steps.iter().filter_map(|step| step["stderr"].as_str()).collect();
    println!("{name}: {} bytes; {}", output.len(), errors.lines().next().unwrap_or_default());
    let holds = match expected {
        Holds(texts) => texts.iter().all(|text| output.contains(text)),
        Json(text) => {
            outputs().all(|output| serde_json::from_str::<Value>(output).is_ok()) && output.contains(text)
        }
    };
    let answered = !steps.is_empty() && !format!("{output}{errors}").trim().is_empty();
    if holds && answered { Ok(()) } else { Err(format!("{name}: {expected:?}: {result:#}")) }
}

/// Asks systemd for a change.
const CHANGES: &str = "
name: stop
description: Stops a unit.
risk: dangerous
exec: [/usr/bin/systemctl, --no-ask-password, stop, cron-like.service]
sandbox: {network: [unix], may_lack: [abstract_sockets]}
---
name: zone
description: Sets the time zone.
risk: dangerous
exec: [/usr/bin/timedatectl, --no-ask-password, set-timezone, Asia/Tokyo]
sandbox: {network: [unix], may_lack: [abstract_sockets]}
---
name: closed
description: Asks without a socket.
risk: read
exec: [/usr/bin/systemctl, is-active, cron-like.service]
";

#[test]
fn systemd_answers_over_its_bus_and_changes_nothing_for_a_run() {
    let (machine, token) = Machine::in_service();
    machine.sh("systemd-run --quiet --unit=cron-like sleep 600");
    machine.write("/etc/gloveport/catalog.d/changes.yaml", CHANGES);
    machine.sh("gloveport init --yes && systemctl reload gloveport-helper");
    machine.wait_until_called(&token);
    for (command, answer) in [
        ("systemctl is-active cron-like.service", "active"),
        ("systemctl status cron-like.service", "Active: active (running)"),
        ("timedatectl status", "Time zone"),
        ("hostnamectl", "Operating System"),
        ("loginctl list-sessions", "essions"),
    ] {
        let (_, result) = machine.call(&token, "execute_command", &json!({"command": command}).to_string());
        assert!(result["stdout"].as_str().is_some_and(|said| said.contains(answer)), "{command}: {result:#}");
    }
    let zone = machine.sh("readlink -f /etc/localtime");
    for name in ["stop", "zone"] {
        let (_, result) = machine.call(&token, name, "{}");
        let said = result["steps"][0]["stderr"].as_str().unwrap_or_default().to_lowercase();
        assert!(said.contains("denied") || said.contains("authentication required"), "{name}: {result:#}");
    }
    assert_eq!(machine.sh("systemctl is-active cron-like.service").trim(), "active");
    assert_eq!(machine.sh("readlink -f /etc/localtime"), zone);
    // Without the class there is no socket to ask by.
    let (_, result) = machine.call(&token, "closed", "{}");
    assert_ne!(result["exit_code"], 0, "{result:#}");
}

#[test]
fn every_action_answers_on_a_machine_with_systemd() {
    let (machine, token) = Machine::in_service();
    machine.put(&packages::built().rpm, "/root/gloveport.rpm");
    machine.sh(PREPARE);
    machine.sh("systemctl reload gloveport-helper");
    machine.wait_until_called(&token);
    let table = table();
    assert_eq!(names(), table.iter().map(|(name, _, _)| (*name).to_owned()).collect());
    let faults: Vec<String> = table
        .iter()
        .filter_map(|(name, params, expected)| check(&machine, &token, name, params, *expected).err())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let lacking = machine.sh("gloveport status --json");
    let lacking: Value = serde_json::from_str(&lacking).expect("JSON");
    assert_eq!(lacking["helper"]["unsupported"], json!([]), "{lacking:#}");
}
