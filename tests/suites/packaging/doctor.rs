//! `gloveport doctor` on an installed host: what is well, and each thing that is broken, with its way out.

use super::machine::Machine;
use serde_json::Value;

/// The findings, and the exit code.
fn examine(machine: &Machine) -> (Option<i32>, Vec<Value>) {
    let output = machine.run(&["gloveport", "doctor", "--json"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{}", machine.journal()));
    (output.status.code(), report["checks"].as_array().expect("checks").clone())
}

/// The remedy of the finding of that name and state; a word tells it from others.
fn remedy(machine: &Machine, name: &str, status: &str, word: &str) -> String {
    let (code, checks) = examine(machine);
    let expected = if status == "fail" { 2 } else { 1 };
    assert!(code >= Some(expected), "{name} {word}: exit code {code:?}");
    let found = checks.iter().find(|check| {
        check["name"] == name
            && check["status"] == status
            && check["detail"].as_str().is_some_and(|detail| detail.contains(word))
    });
    let found = found.unwrap_or_else(|| panic!("not found: {status} {name} {word} in {checks:#?}"));
    let remedy = found["remedy"].as_str().unwrap_or_default().to_owned();
    assert!(!remedy.is_empty(), "no way out: {found:#}");
    remedy
}

/// Nothing of that name is wrong.
fn assert_well(machine: &Machine, names: &[&str]) {
    let (_, checks) = examine(machine);
    for name in names {
        let found: Vec<_> = checks.iter().filter(|check| check["name"] == *name).collect();
        assert!(found.iter().all(|check| check["status"] == "ok"), "{name}: {found:#?}");
    }
}

/// A thing that is done to a host, what is found then, and what puts it right. Without a cure of its own, the
/// remedy is a line of shell, and is taken by its word.
struct Trouble {
    done: &'static str,
    name: &'static str,
    status: &'static str,
    word: &'static str,
    cure: Option<&'static str>,
}

const fn trouble(
    done: &'static str,
    finding: (&'static str, &'static str, &'static str),
    cure: Option<&'static str>,
) -> Trouble {
    let (name, status, word) = finding;
    Trouble { done, name, status, word, cure }
}

const TROUBLES: [Trouble; 21] = [
    trouble("systemctl disable gloveport.service", ("units", "warn", "gloveport.service"), None),
    trouble("systemctl stop gloveport.service", ("units", "fail", "gloveport.service does not run"), None),
    trouble(
        "systemctl stop gloveport-helper.socket gloveport-helper.service",
        ("units", "fail", "gloveport-helper.socket does not run"),
        Some("systemctl start gloveport-helper.socket && systemctl restart gloveport"),
    ),
    trouble(
        "systemctl mask --runtime gloveport-helper.service && systemctl daemon-reload",
        ("units", "fail", "masked"),
        Some("systemctl unmask --runtime gloveport-helper.service"),
    ),
    trouble(
        "cp /lib/systemd/system/gloveport.service /etc/systemd/system/ && systemctl daemon-reload",
        ("units", "warn", "in place of the package's"),
        Some("rm /etc/systemd/system/gloveport.service && systemctl daemon-reload"),
    ),
    trouble(
        "sleep 0.1; touch /lib/systemd/system/gloveport.service",
        ("units", "warn", "has changed on the disk"),
        Some("systemctl daemon-reload"),
    ),
    trouble(
        "mkdir -p /etc/systemd/system/gloveport-helper.service.d && cd /etc/systemd/system/gloveport-helper.service.d &&
         printf '[Service]\\nRestrictNamespaces=no\\nMemoryMax=4G\\n' >open.conf && systemctl daemon-reload",
        ("drop_ins", "warn", "open.conf sets RestrictNamespaces:"),
        Some("systemctl revert gloveport-helper.service && systemctl daemon-reload"),
    ),
    trouble("chmod 0644 /etc/gloveport/tokens.json", ("modes", "fail", "tokens.json is open"), None),
    trouble("chmod 0600 /etc/gloveport/daemon.toml", ("modes", "warn", "daemon.toml is closed"), None),
    trouble("chown gloveport /etc/gloveport/catalog.d", ("modes", "fail", "catalog.d belongs to gloveport"), None),
    trouble("chmod 0666 /run/gloveport/helper.sock", ("modes", "fail", "helper.sock is open"), None),
    trouble("chmod 0644 /etc/gloveport/host_key", ("secrets", "fail", "host_key"), None),
    trouble(
        "gpasswd --add nobody gloveport",
        ("groups", "warn", "nobody is in the daemon's group"),
        Some("gpasswd --delete nobody gloveport"),
    ),
    trouble(
        "mv /etc/gloveport/trusted_signers /root && echo '# nobody' >/etc/gloveport/trusted_signers",
        ("keys", "fail", "holds no key"),
        Some("mv /root/trusted_signers /etc/gloveport/trusted_signers"),
    ),
    trouble(
        "cp -a /etc/gloveport/host_key /root && ssh-keygen -q -t ed25519 -N '' -f /root/new &&
         cat /root/new >/etc/gloveport/host_key",
        ("keys", "warn", "none of them"),
        Some("cat /root/host_key >/etc/gloveport/host_key"),
    ),
    trouble(
        "cp -a /etc/gloveport/catalogs/current/catalog.json /root && echo >>/etc/gloveport/catalogs/current/catalog.json",
        ("catalogue", "fail", "does not count"),
        Some("cat /root/catalog.json >/etc/gloveport/catalogs/current/catalog.json"),
    ),
    trouble(
        "echo 'nmae: x' >/etc/gloveport/catalog.d/mine.yaml",
        ("sources", "warn", "mine.yaml:1:1"),
        Some("rm /etc/gloveport/catalog.d/mine.yaml"),
    ),
    trouble(
        "touch --date='next year' /etc/gloveport/tokens.json",
        ("clock", "fail", "tokens.json was written at"),
        Some("touch /etc/gloveport/tokens.json"),
    ),
    trouble(
        "mount -t tmpfs -o size=64k,mode=755 none /var/log/gloveport",
        ("audit_room", "fail", "0 MiB are free"),
        Some("umount --lazy /var/log/gloveport && systemctl restart gloveport-helper.service"),
    ),
    trouble(
        "mount -t tmpfs -o ro,mode=755 none /var/log/gloveport",
        ("audit_room", "fail", "read-only"),
        Some("umount --lazy /var/log/gloveport && systemctl restart gloveport-helper.service"),
    ),
    trouble(
        "mv /usr/libexec/gloveport/gloveport-handler /root",
        ("programs", "fail", "gloveport-handler is missing"),
        Some("mv /root/gloveport-handler /usr/libexec/gloveport/"),
    ),
];

#[test]
fn each_thing_that_is_broken_is_found_and_its_remedy_helps() {
    let (machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    let of_the_host = [
        "root",
        "programs",
        "users",
        "groups",
        "units",
        "drop_ins",
        "modes",
        "keys",
        "catalogue",
        "owners",
        "secrets",
        "tokens",
        "settings",
        "audit_room",
        "audit_chain",
        "helper",
        "daemon",
        "listen",
        "mmap_min_addr",
    ];
    assert_well(&machine, &of_the_host);
    for Trouble { done, name, status, word, cure } in &TROUBLES {
        machine.sh(done);
        let remedy = remedy(&machine, name, status, word);
        machine.sh(cure.unwrap_or(&remedy));
        assert_well(&machine, &[name]);
    }
    machine.wait_until_called(&token);
}

#[test]
fn another_program_at_the_port_and_a_host_without_token_or_daemon_are_found() {
    let machine = Machine::with_package();
    remedy(&machine, "units", "fail", "gloveport.service does not run");
    remedy(&machine, "helper", "fail", "cannot be reached");
    remedy(&machine, "tokens", "fail", "no token");
    remedy(&machine, "listen", "warn", "nothing listens");
    machine.sh("systemctl enable --now gloveport");
    machine.sh(
        "systemd-run --quiet --unit other --socket-property=ListenStream=127.0.0.1:8010 /bin/sleep infinity",
    );
    remedy(&machine, "listen", "fail", "another program listens");
    // It cannot listen there and says so; systemd goes on trying.
    machine.sh("gloveport token add --name tests");
    gloveport_tests::processes::wait_until("it is found", std::time::Duration::from_secs(15), || {
        let (_, checks) = examine(&machine);
        checks.iter().any(|check| check["name"] == "units" && check["status"] == "fail")
    });
    remedy(&machine, "units", "fail", "gloveport.service has failed");
}
