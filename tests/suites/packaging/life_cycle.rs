//! From the first installation to the last trace of it.

use super::machine::{Machine, call};
use super::packages;
use gloveport_tests::processes::wait_until;
use gloveport_tests::programs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long a service may take to do what it was told.
const SOON: Duration = Duration::from_secs(15);
const CONFIG: &str = "/etc/gloveport/daemon.toml";
/// Runs for as long as the caller says.
const WAIT: &str = "
name: wait
description: Waits.
risk: read
params: {seconds: {type: integer, min: 1, max: 30}}
exec: [/usr/bin/sleep, \"{seconds}\"]
timeout: 60s
";

/// The catalogue of the host with the action `wait` beside the ready ones.
fn with_wait(machine: &Machine) {
    machine.write("/etc/gloveport/catalog.d/wait.yaml", WAIT);
    machine.sh("gloveport init --yes && systemctl reload gloveport-helper");
}

fn is_listening(machine: &Machine) -> bool {
    machine.holds("ss -Hltn | grep -q ':8010 '")
}

#[test]
fn after_the_installation_nothing_runs_listens_or_may_be_called() {
    let machine = Machine::boot();
    machine.put(&packages::built().deb, "/root/gloveport.deb");
    let begun = Instant::now();
    let said = machine.sh("dpkg --install /root/gloveport.deb 2>&1");
    println!("installed in {:?}", begun.elapsed());
    assert!(said.contains("execute_command: new action"), "what is permitted is shown: {said}");
    assert!(said.contains("systemctl enable --now gloveport"), "the next step is named: {said}");
    for unit in
        ["gloveport.service", "gloveport.socket", "gloveport-helper.service", "gloveport-helper.socket"]
    {
        assert!(!machine.holds(&format!("systemctl is-active {unit}")), "{unit} runs");
    }
    assert!(!machine.holds("systemctl is-enabled gloveport.service"), "it is enabled");
    assert!(!is_listening(&machine));
    assert!(!machine.holds("test -e /etc/gloveport/tokens.json"), "nobody has been given a token");
    for (path, expected) in [
        ("/etc/gloveport", "755 root:root"),
        (CONFIG, "640 root:gloveport"),
        ("/etc/gloveport/host_key", "600 root:root"),
        ("/etc/gloveport/credentials", "700 root:root"),
        ("/etc/gloveport/trusted_signers", "644 root:root"),
        ("/run/gloveport/pending", "700 root:root"),
        ("/run/gloveport/empty", "555 root:root"),
        ("/usr/libexec/gloveport/gloveport-helper", "755 root:root"),
    ] {
        assert_eq!(machine.sh(&format!("stat --format='%a %U:%G' {path}")).trim(), expected, "{path}");
    }
    machine.sh("systemd-analyze verify --man=no gloveport.service gloveport-helper.service");
    machine.sh("dpkg --verify gloveport");
}

#[test]
fn a_token_opens_tcp_and_without_one_local_users_are_served() {
    let machine = Machine::with_package();
    machine.sh("systemctl enable --now gloveport");
    let status = machine.sh("systemctl show --property StatusText --value gloveport");
    assert!(status.contains("no token"), "{status}");
    assert!(!is_listening(&machine), "TCP is open and nobody has a token");
    // As local users are known: by the kernel, with no secret at all.
    machine.sh("useradd --create-home ana && gloveport token allow-user ana");
    let as_ana = "setpriv --reuid ana --regid ana --clear-groups gloveport call get_system_info";
    wait_until("ana may call", SOON, || machine.holds(as_ana));
    let as_another = "setpriv --reuid nobody --regid nogroup --clear-groups gloveport call get_system_info";
    assert!(!machine.holds(as_another), "anybody may call");

    let token = machine.sh("gloveport token add --name tests");
    wait_until("TCP is open", SOON, || is_listening(&machine));
    machine.wait_until_called(token.trim());
    // It was started again for that, and nobody who watches for failures was told of one.
    let log = machine.sh("journalctl --no-pager --unit gloveport");
    assert!(log.contains("the first token is there") && !log.contains("Failed"), "{log}");
    let bound = machine.sh("ss -Hltn | awk '{print $4}' | grep 8010 | sort");
    assert_eq!(bound.split_whitespace().collect::<Vec<_>>(), ["127.0.0.1:8010", "[::1]:8010"]);
    assert_ne!(machine.run(&call("gp_wrong", "uptime", "{}")).status.code(), Some(0));
    let doctor = machine.run(&["gloveport", "doctor"]);
    let said =
        String::from_utf8_lossy(&doctor.stdout).into_owned() + &String::from_utf8_lossy(&doctor.stderr);
    assert!(doctor.status.code() < Some(2), "something does not work on a fresh host: {said}");
    machine.sh("gloveport token revoke tests");
    wait_until("the token has ended", SOON, || {
        !machine.run(&call(token.trim(), "uptime", "{}")).status.success()
    });
}

#[test]
fn a_changed_catalogue_is_taken_over_on_reload_and_a_broken_one_is_not() {
    let (machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    let helper = machine.main_pid("gloveport-helper");
    with_wait(&machine);
    wait_until("the new action is there", SOON, || {
        machine.run(&call(&token, "wait", r#"{"params": {"seconds": 1}}"#)).status.success()
    });
    machine.sh("echo >>/etc/gloveport/catalogs/current/catalog.json; systemctl reload gloveport-helper");
    wait_until("the reason is told", SOON, || {
        machine.sh("systemctl show --property StatusText --value gloveport-helper").contains("signature")
            || machine.journal().contains("signature")
    });
    // The daemon may no longer read the catalogue; what the helper has in force is the signed one.
    assert_eq!(machine.main_pid("gloveport-helper"), helper, "a broken catalogue ended the helper");
    machine.sh("gloveport init --yes && systemctl reload gloveport-helper");
    machine.wait_until_called(&token);
}

#[test]
fn an_upgrade_keeps_what_was_changed_and_tells_every_caller_how_it_ended() {
    let (machine, token) = Machine::in_service();
    with_wait(&machine);
    machine.wait_until_called(&token);
    let place = programs::target().join(format!("newer-{}", std::process::id()));
    machine.put(&packages::newer(&packages::built().deb, &place), "/root/newer.deb");
    std::fs::remove_dir_all(&place).expect("removing a package");
    let force = machine.sh("sha256sum /etc/gloveport/catalog.json");

    // An untouched file is replaced; calls go on all the while.
    let begin = |arguments: &'static str| {
        let mut command = machine.command(&call(&token, "wait", arguments));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nsenter")
    };
    let mut calls: Vec<_> = (0..4).map(|_| begin(r#"{"params": {"seconds": 1}}"#)).collect();
    calls.push(begin(r#"{"params": {"seconds": 25}}"#));
    let before = [machine.main_pid("gloveport"), machine.main_pid("gloveport-helper")];
    machine.sh("dpkg --install /root/newer.deb");
    for _ in 0..4 {
        calls.push(begin(r#"{"params": {"seconds": 1}}"#));
    }
    for call in calls {
        let output = call.wait_with_output().expect("a call");
        let told = !output.stdout.is_empty() || !output.stderr.is_empty();
        if !output.status.success() {
            println!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        assert!(output.status.success() || told, "a caller was left without an answer: {output:?}");
    }
    let after = [machine.main_pid("gloveport"), machine.main_pid("gloveport-helper")];
    assert!(before[0] != after[0] && before[1] != after[1], "an upgrade runs the new programs");
    assert!(machine.sh(&format!("cat {CONFIG}")).contains(packages::NEW_SETTING));
    assert_eq!(machine.sh(&format!("stat --format='%a %U:%G' {CONFIG}")).trim(), "640 root:gloveport");
    assert_eq!(machine.sh("sha256sum /etc/gloveport/catalog.json"), force, "an upgrade permits nothing new");
    machine.wait_until_called(&token);
    machine.sh("gloveport audit verify");

    // One that an administrator changed stays, and the package's lies beside it.
    machine.sh("dpkg --install /root/gloveport.deb");
    machine.sh(&format!("echo 'max_sessions = 17' >>{CONFIG}"));
    machine.sh("dpkg --force-confdef --install /root/newer.deb");
    let kept = machine.sh(&format!("cat {CONFIG}"));
    assert!(kept.contains("max_sessions = 17") && !kept.contains(packages::NEW_SETTING), "{kept}");
    assert!(machine.sh(&format!("cat {CONFIG}.dpkg-dist")).contains(packages::NEW_SETTING));
    assert_eq!(machine.sh(&format!("stat --format='%a %U:%G' {CONFIG}")).trim(), "640 root:gloveport");
    machine.wait_until_called(&token);
}

#[test]
fn either_half_can_be_restarted_alone_and_both_come_back_after_a_reboot() {
    let (mut machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    let [daemon, helper] = ["gloveport", "gloveport-helper"].map(|unit| machine.main_pid(unit));

    machine.sh("systemctl restart gloveport-helper");
    machine.wait_until_called(&token);
    assert_eq!(machine.main_pid("gloveport"), daemon, "the daemon went with the helper");
    let helper_now = machine.main_pid("gloveport-helper");
    assert_ne!(helper_now, helper);

    machine.sh("systemctl restart gloveport");
    machine.wait_until_called(&token);
    assert_eq!(machine.main_pid("gloveport-helper"), helper_now, "the helper went with the daemon");

    // However either of them ends, it comes back.
    for unit in ["gloveport", "gloveport-helper"] {
        machine.sh(&format!("systemctl kill --kill-who=main --signal=KILL {unit}"));
    }
    machine.wait_until_called(&token);

    let begun = Instant::now();
    machine.reboot();
    machine.wait_until_called(&token);
    println!("from reboot to the first answer: {:?}", begun.elapsed());
    machine.sh("gloveport audit verify");
    let resident = |unit: &str| {
        let pid = machine.main_pid(unit);
        machine.sh(&format!("awk '/^VmRSS/ {{print $2}}' /proc/{pid}/status")).trim().to_owned()
    };
    println!("resident: daemon {} KiB, helper {} KiB", resident("gloveport"), resident("gloveport-helper"));
}

#[test]
fn removal_keeps_settings_keys_and_records_and_purging_does_not() {
    let (machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    machine.sh("dpkg --remove gloveport");
    for gone in ["/usr/bin/gloveport", "/usr/libexec/gloveport", "/run/gloveport"] {
        assert!(!machine.holds(&format!("test -e {gone}")), "{gone} is left");
    }
    assert!(!machine.holds("pgrep gloveport"), "something of it still runs");
    assert!(!is_listening(&machine));
    let kept = ["daemon.toml", "tokens.json", "host_key", "catalog.json", "trusted_signers"];
    for file in kept {
        machine.sh(&format!("test -e /etc/gloveport/{file}"));
    }
    machine.sh("test -s /var/log/gloveport/audit.jsonl");

    // Installed again it goes on where it was: the same token, the same chain.
    machine.sh("dpkg --install /root/gloveport.deb && systemctl enable --now gloveport");
    machine.wait_until_called(&token);
    machine.sh("gloveport audit verify");

    machine.sh("dpkg --purge gloveport");
    for gone in ["/etc/gloveport", "/var/log/gloveport", "/etc/apparmor.d/usr.libexec.gloveport.gloveportd"] {
        assert!(!machine.holds(&format!("test -e {gone}")), "{gone} is left");
    }
    let links = machine.sh("find /etc/systemd /var/lib/systemd -name '*gloveport*'");
    assert_eq!(links, "", "systemd still knows it");
    machine.sh("dpkg --install /root/gloveport.deb && systemctl enable --now gloveport");
    assert_ne!(
        machine.run(&call(&token, "uptime", "{}")).status.code(),
        Some(0),
        "an old token still counts"
    );
}
