//! What ordinary programs need of a sandbox: each with the least that it works with, and without.

use gloveport_contract::packet::{Outcome, Scalar, Value};
use gloveport_tests::{Finished, Helper, Scene};
use serde_json::{Value as Json, json};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

/// Programs that the default sandbox is made for, with what their output holds.
const IN_BASE: &[(&[&str], &str)] = &[
    (&["/usr/bin/cat", "/etc/hostname"], ""),
    (&["/usr/bin/date", "--utc", "+%Z"], "UTC"),
    (&["/usr/bin/df", "-P", "/"], "Filesystem"),
    (&["/usr/bin/du", "-s", "/etc/default"], "/etc/default"),
    (&["/usr/bin/file", "/etc/passwd"], "ASCII text"),
    (&["/usr/bin/find", "/etc", "-maxdepth", "1", "-name", "passwd"], "/etc/passwd"),
    (&["/usr/bin/findmnt", "/proc"], "proc"),
    (&["/usr/bin/free"], "Mem:"),
    (&["/usr/bin/getent", "passwd", "root"], "root:"),
    (&["/usr/bin/grep", "^root:", "/etc/passwd"], "root:"),
    (&["/usr/bin/head", "-n", "1", "/etc/passwd"], "root:"),
    (&["/usr/bin/hostname"], ""),
    (&["/usr/bin/id"], "uid="),
    (&["/usr/bin/journalctl", "--version"], "systemd"),
    (&["/usr/bin/ls", "-l", "/"], "etc"),
    (&["/usr/bin/lsblk", "--version"], "lsblk"),
    (&["/usr/bin/lscpu"], "Architecture"),
    (&["/usr/bin/mount"], "proc on /proc"),
    (&["/usr/bin/nproc"], ""),
    (&["/usr/bin/ps", "-e"], "PID"),
    (&["/usr/bin/sort", "/etc/passwd"], "root:"),
    (&["/usr/bin/ss", "-tln"], "State"),
    (&["/usr/bin/stat", "/etc/passwd"], "Access:"),
    (&["/usr/bin/tail", "-n", "1", "/etc/passwd"], ":"),
    (&["/usr/bin/tar", "-cf", "-", "--directory=/etc", "hostname"], ""),
    (&["/usr/bin/top", "-b", "-n", "1"], "PID"),
    (&["/usr/bin/uname", "-s"], "Linux"),
    (&["/usr/bin/uniq", "/etc/passwd"], "root:"),
    (&["/usr/bin/uptime"], "load average"),
    (&["/usr/bin/vmstat"], "procs"),
    (&["/usr/bin/w"], "USER"),
    (&["/usr/bin/wc", "-l", "/etc/passwd"], "/etc/passwd"),
    (&["/usr/bin/who"], ""),
];

fn succeeded(finished: &Finished) -> bool {
    finished.outcome() == Some(&Outcome::Exited(0))
}

fn run(helper: &Helper, action: &str) -> Finished {
    helper.run(helper.call(action, &[]))
}

#[test]
fn ordinary_programs_work_in_the_default_sandbox() {
    let scene = Scene::new();
    let present: Vec<_> = IN_BASE.iter().filter(|(argv, _)| Path::new(argv[0]).exists()).collect();
    assert!(present.len() > 25, "{} of {} are here", present.len(), IN_BASE.len());
    let name = |argv: &[&str]| argv[0].rsplit('/').next().unwrap_or_default().to_owned();
    let actions: Vec<_> = present.iter().map(|(argv, _)| scene.exec(&name(argv), argv)).collect();
    let helper = scene.helper(&actions);
    for (argv, holds) in present {
        let finished = run(&helper, &name(argv));
        assert!(succeeded(&finished), "{argv:?}: {finished:?}");
        assert!(finished.stdout.contains(holds), "{argv:?}: {finished:?}");
    }
}

#[test]
fn what_lies_outside_the_default_sandbox_is_not_read() {
    let scene = Scene::new();
    let file = scene.file("note", "text of a note\n");
    let cat = |name: &str, path: &str| scene.exec(name, &["/usr/bin/cat", path]);
    let actions = [
        cat("undeclared", &file),
        cat("log", "/var/log/dpkg.log"),
        cat("program", "/usr/bin/ls"),
        cat("declared", &file).with(json!({"sandbox": {"read": [file]}})),
        cat("minimal", "/etc/passwd").with(json!({"sandbox": {"base": "minimal"}})),
    ];
    let helper = scene.helper(&actions);
    for action in ["undeclared", "log", "program", "minimal"] {
        let finished = run(&helper, action);
        assert_eq!(
            (finished.outcome(), finished.stdout.as_str()),
            (Some(&Outcome::Exited(1)), ""),
            "{action}"
        );
    }
    assert_eq!(run(&helper, "declared").stdout, "text of a note\n");
}

#[test]
fn what_needs_more_works_with_the_least_addition_and_not_without() {
    let scene = Scene::new();
    let dpkg = json!({"sandbox": {"exec": ["/usr/bin/dpkg-query"], "read": ["/var/lib/dpkg"]}});
    let apt = json!({"sandbox": {
        "read": ["/var/lib/apt", "/var/lib/dpkg", "?/var/cache/apt"], "private_tmp": "64MiB",
    }});
    let rows: [(&str, &[&str], Json, bool); 6] = [
        ("apt-cache", &["/usr/bin/apt-cache", "policy", "base-files"], apt, true),
        ("ip", &["/usr/sbin/ip", "addr"], json!({"sandbox": {"network": ["netlink"]}}), true),
        ("ip6", &["/usr/bin/ip", "route"], json!({"sandbox": {"network": ["netlink"]}}), true),
        ("dpkg", &["/usr/bin/dpkg", "-l", "base-files"], dpkg, true),
        (
            "dpkg-query",
            &["/usr/bin/dpkg-query", "-W", "base-files"],
            json!({"sandbox": {"read": ["/var/lib/dpkg"]}}),
            true,
        ),
        ("ss", &["/usr/bin/ss", "-tln"], json!({"sandbox": {"network": ["netlink"]}}), false),
    ];
    let present: Vec<_> = rows.iter().filter(|(_, argv, ..)| Path::new(argv[0]).exists()).collect();
    let actions: Vec<_> = present
        .iter()
        .flat_map(|(name, argv, addition, _)| {
            [scene.exec(name, argv), scene.exec(&format!("{name}_more"), argv).with(addition.clone())]
        })
        .collect();
    let helper = scene.helper(&actions);
    for (name, _, _, fails_without) in present {
        let with = run(&helper, &format!("{name}_more"));
        assert!(succeeded(&with) && !with.stdout.is_empty(), "{name}: {with:?}");
        let without = run(&helper, name);
        assert_eq!(!succeeded(&without), *fails_without, "{name}: {without:?}");
        if !fails_without {
            // It falls back to /proc/net, and says so on stderr.
            assert!(!without.stderr.is_empty() && with.stderr.is_empty(), "{name}: {without:?}");
        }
    }
}

#[test]
fn a_question_of_dig_leaves_the_host_with_dns_and_not_without() {
    let scene = Scene::new();
    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    server.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
    let port = server.local_addr().expect("an address").port().to_string();
    let argv = ["/usr/bin/dig", "-p", &port, "+time=1", "+tries=1", "@127.0.0.1", "name.example"];
    let actions = [
        scene.exec("without", &argv),
        scene.exec("with", &argv).with(json!({"sandbox": {"network": ["dns"]}})),
    ];
    let helper = scene.helper(&actions);
    let mut question = [0; 512];
    server.set_nonblocking(true).expect("not waiting");
    assert!(!succeeded(&run(&helper, "without")));
    assert!(server.recv(&mut question).is_err(), "a question came without the class");
    run(&helper, "with");
    let length = server.recv(&mut question).expect("the question");
    assert!(question[..length].windows(4).any(|part| part == b"name"));
}

#[test]
fn a_group_of_system_calls_is_open_where_it_is_named_and_nowhere_else() {
    let scene = Scene::new();
    let groups = ["handles", "numa", "timers"];
    let action = |name: &str, named: &[&str]| {
        scene.probing(name, &["grouped"]).with(json!({"sandbox": {"syscalls": named}}))
    };
    let mut actions = vec![action("none", &[])];
    actions.extend(groups.map(|group| action(group, &[group])));
    let helper = scene.helper(&actions);
    for action in ["none", "handles", "numa", "timers"] {
        let finished = run(&helper, action);
        let answers: Vec<[String; 3]> = serde_json::from_str(&finished.stdout).expect("answers");
        assert_eq!(answers.len(), 9);
        for [group, call, said] in answers {
            assert_eq!(said == "EPERM", group != action, "{action}: {call}: {said}");
        }
    }
}

/// A socket by its three numbers, and the classes that may have one.
const SOCKETS: &[(&str, [i32; 3], &[&str])] = &[
    ("TCP", [2, 1, 0], &["dns", "connect", "bind"]),
    ("TCP by name", [2, 1, 6], &["dns", "connect", "bind"]),
    ("TCP over IPv6", [10, 1, 0], &["dns", "connect", "bind"]),
    ("UDP", [2, 2, 0], &["dns", "icmp"]),
    ("UDP by name", [2, 2, 17], &["dns", "icmp"]),
    ("UDP over IPv6", [10, 2, 0], &["dns", "icmp"]),
    ("echo", [2, 2, 1], &["icmp"]),
    ("echo over IPv6", [10, 2, 58], &["icmp"]),
    ("Unix stream", [1, 1, 0], &["unix"]),
    ("Unix datagram", [1, 2, 0], &["unix"]),
    ("Unix packets", [1, 5, 0], &["unix"]),
    ("netlink: routes", [16, 3, 0], &["netlink"]),
    ("netlink: diagnosis", [16, 3, 4], &["netlink"]),
    ("netlink: generic", [16, 3, 16], &["netlink"]),
    ("netlink: audit", [16, 3, 9], &[]),
    ("netlink: uevent", [16, 3, 15], &[]),
    ("netlink: netfilter", [16, 3, 12], &[]),
    ("MPTCP", [2, 1, 262], &[]),
    ("SCTP", [2, 1, 132], &[]),
    ("UDP-Lite", [2, 2, 136], &[]),
    ("raw", [2, 3, 1], &[]),
    ("packets of a device", [17, 3, 0], &[]),
    ("vsock", [40, 1, 0], &[]),
    ("Bluetooth", [31, 3, 0], &[]),
    ("kernel crypto", [38, 5, 0], &[]),
    ("XDP", [44, 3, 0], &[]),
];

#[test]
fn each_class_has_its_sockets_and_no_others() {
    let scene = Scene::new();
    let classes = [
        ("none", json!("none")),
        ("netlink", json!(["netlink"])),
        ("unix", json!(["unix"])),
        ("dns", json!(["dns"])),
        ("icmp", json!(["icmp"])),
        ("connect", json!([{"connect": [443]}])),
        ("bind", json!([{"bind": [8080]}])),
    ];
    let actions: Vec<_> = classes
        .iter()
        .map(|(name, network)| scene.any_probe().with(json!({"name": name, "sandbox": {"network": network}})))
        .collect();
    let helper = scene.helper(&actions);
    let mut wrong = Vec::new();
    for (class, _) in &classes {
        for (socket, numbers, may) in SOCKETS {
            let words = std::iter::once("socket".to_owned()).chain(numbers.iter().map(i32::to_string));
            let words = words.map(|word| Scalar::Text(word.into_bytes())).collect();
            let finished = helper.run(helper.call(class, &[("words", Value::List(words))]));
            let said = finished.stdout.trim().to_owned();
            // What the filter lets through the kernel may still not have, or not for this account.
            let refused = said == "errno EPERM";
            if refused == may.contains(class) || said.is_empty() {
                wrong.push(format!("{class}, {socket}: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Changes a setting of the machine: who may make echo sockets.
mod alone {
    use super::*;

    const RANGE: &str = "/proc/sys/net/ipv4/ping_group_range";

    /// The setting, put back at the end.
    struct Range(String);

    impl Range {
        fn set(value: &str) -> Self {
            let before = fs::read_to_string(RANGE).expect("the setting");
            fs::write(RANGE, value).expect("changing the setting");
            Self(before)
        }
    }

    impl Drop for Range {
        fn drop(&mut self) {
            let _ = fs::write(RANGE, &self.0);
        }
    }

    #[test]
    fn ping_works_with_echo_sockets_for_its_group_and_gains_nothing_by_its_capability() {
        let scene = Scene::new();
        let argv = ["/usr/bin/ping", "-n", "-c", "1", "-W", "2", "127.0.0.1"];
        let icmp = json!({"sandbox": {"network": ["icmp"]}});
        let whole = json!({"sandbox": {"network": ["icmp"], "bounding": ["net_raw"]}});
        let actions = [
            scene.exec("nothing", &argv),
            scene.exec("icmp", &argv).with(icmp),
            scene.exec("icmp_and_bounding", &argv).with(whole),
        ];
        let helper = scene.helper(&actions);
        {
            let _nobody = Range::set("1 0");
            assert!(!succeeded(&run(&helper, "icmp_and_bounding")), "there is no other way to send one");
        }
        let _everybody = Range::set("0 2147483647");
        let finished = run(&helper, "icmp_and_bounding");
        assert!(succeeded(&finished) && finished.stdout.contains("1 received"), "{finished:?}");
        assert!(!succeeded(&run(&helper, "nothing")));
        // With a file capability it starts only where its bounding set may hold it (an empty one: EPERM).
        let finished = run(&helper, "icmp");
        let refused = Outcome::NotStarted { stage: "exec".into(), errno: 1 };
        assert!(succeeded(&finished) || finished.outcome() == Some(&refused), "{finished:?}");
    }
}
