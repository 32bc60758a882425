//! The corpus of the fuzz targets (`helper/fuzz/corpus`) is made here, of what the programs really exchange: the
//! examples as they are built, packets as both halves encode them, calls that were reviewed, signatures of
//! OpenSSH. The helper's own tests replay it. `GLOVEPORT_GOLDEN=write` writes it anew.

use gloveport_contract::packet::{
    Argument, Caller, Content, Enforcement, Event, Layer, Note, Outcome, Receipt, RefusalCode, Request, Run,
    Scalar, Unsupported, Usage, VERSION, Value,
};
use gloveport_tests::golden::assert_bytes;
use gloveport_tests::{Scene, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compares one input; `name` begins with the word that the subject answers it with.
fn input(subject: &str, name: &str, bytes: &[u8]) {
    assert_bytes(&Path::new("helper/fuzz/corpus").join(subject).join(name), bytes);
}

/// The catalogue that these files make, as the helper reads it.
fn built(scene: &Scene, sources: &[PathBuf]) -> String {
    let output = scene.root.join("built");
    let mut command = Command::new(programs::built("gloveport"));
    let done =
        command.args(["catalog", "build", "-o"]).arg(&output).args(sources).output().expect("gloveport");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::read_to_string(output.join("catalog.json")).expect("a catalogue")
}

fn examples() -> Vec<PathBuf> {
    let directory = programs::repository().join("docs/examples");
    let files = fs::read_dir(directory).expect("the examples").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files
}

#[test]
fn catalogues_are_the_examples_and_what_a_slip_makes_of_them() {
    let scene = Scene::new();
    let mut whole = examples();
    let catalogs = programs::repository().join("packaging/catalogs");
    whole.push(catalogs.join("linux-agent/get-system-info.yaml"));
    whole.push(catalogs.join("ssh-ops/write-file.yaml"));
    for file in &whole {
        let name = file.file_stem().expect("a name").to_string_lossy();
        input("catalogs", &format!("accepted.{name}"), built(&scene, std::slice::from_ref(file)).as_bytes());
    }
    let first = built(&scene, &whole[1..2]);
    let slips = [
        ("malformed.cut", first[..first.len() / 2].to_owned()),
        ("malformed.two", first.repeat(2)),
        ("malformed.unknown-key", first.replace("\"risk\"", "\"risks\"")),
        ("malformed.another-type", first.replace("\"integer\"", "\"number\"")),
        ("meaningless.another-format", first.replace("\"format\": 1", "\"format\": 2")),
        ("meaningless.relative-root", first.replace("\"/var/log\"", "\"var/log\"")),
        ("meaningless.placeholder", first.replace("{depth}", "{depths}")),
        ("meaningless.relative-program", first.replace("/usr/bin/du", "du")),
    ];
    for (name, text) in slips {
        assert_ne!(text, first, "{name} changes nothing");
        input("catalogs", name, text.as_bytes());
    }

    // The one that arguments are checked by.
    let mut called = examples();
    called.push(catalogs.join("linux-agent/execute-command.yaml"));
    assert_bytes(Path::new("helper/fuzz/catalog.json"), built(&scene, &called).as_bytes());
}

#[test]
fn packets_are_those_of_both_halves() {
    let caller = || Caller {
        via: "http".into(),
        peer: "127.0.0.1:40000".into(),
        uid: Some(1000),
        client: "a client 1.0".into(),
        request: "1".into(),
    };
    let run = Request::Run(Box::new(Run {
        version: VERSION,
        digest: [7; 32],
        token: Some("gp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into()),
        caller: caller(),
        action: "service_log".into(),
        args: vec![
            Argument { name: "unit".into(), value: "nginx.service".into() },
            Argument { name: "lines".into(), value: Value::Integer(200) },
            Argument { name: "all".into(), value: Value::Boolean(true) },
            Argument { name: "since".into(), value: Value::Null },
            Argument { name: "words".into(), value: Value::List(vec![Scalar::Text(b"a".to_vec())]) },
        ],
        argv: vec![vec![b"/usr/bin/journalctl".to_vec(), b"--unit".to_vec(), b"nginx.service".to_vec()]],
        content: Some(Content { length: 5, sha256: [9; 32] }),
    }));
    let note = Note { caller: caller(), action: "x".into(), rule: "token".into(), detail: "unknown".into() };
    let requests = [("status", Request::Status { page: 0 }), ("run", run), ("note", Request::Note(note))];
    let encoded = requests.map(|(name, request)| (name, request.encode().expect("a packet")));
    for (name, bytes) in &encoded {
        input("packets", &format!("request.{name}"), bytes);
    }
    let run = &encoded[1].1;
    input("packets", "malformed.cut", &run[..run.len() / 2]);
    input("packets", "malformed.nothing", b"");
    input("packets", "malformed.unknown-kind", &[&[200], &run[1..]].concat());
    input("packets", "trailing.run", &[run.as_slice(), b"\0"].concat());
    // The page, written in three bytes where one would do.
    input("packets", "not-canonical.status", &[0, 251, 0, 0]);

    let receipt = Receipt { seq: 9, hash: [1; 32] };
    let enforcement = Enforcement {
        run_as: "gloveport-run".into(),
        no_new_privs: true,
        landlock_abi: 7,
        seccomp: "default".into(),
        one_shot_exec: true,
        network: "none".into(),
        absent: vec!["/srv".into()],
        ..Enforcement::default()
    };
    let events = [
        (
            "status-reply",
            Event::StatusReply {
                version: VERSION,
                digest: Some([7; 32]),
                reason: Some("the newest one is not signed".into()),
                layers: vec![Layer { name: "landlock".into(), present: true, detail: "ABI 7".into() }],
                unsupported: vec![Unsupported { action: "packages".into(), reason: "no dnf".into() }],
                more: false,
                runs: 2,
            },
        ),
        ("accepted", Event::Accepted { run: "1-1".into(), deadline_ms: 30_000, enforcement }),
        ("awaiting-approval", Event::AwaitingApproval { id: "abcd1234".into(), timeout_ms: 300_000 }),
        ("step-started", Event::StepStarted { index: 300 }),
        (
            "step-ended",
            Event::StepEnded {
                index: 300,
                outcome: Outcome::NotStarted { stage: "landlock".into(), errno: 13 },
                killed_by: Some("timeout".into()),
                usage: Usage { wall_us: 70_000, user_us: 1, system_us: 2, max_rss_kib: 3 },
            },
        ),
        ("ended", Event::Ended { receipt }),
        (
            "refused",
            Event::Refused {
                code: RefusalCode::Scope,
                detail: "the token does not allow it".into(),
                receipt: Some(receipt),
            },
        ),
    ];
    for (name, event) in events {
        input("packets", &format!("event.{name}"), &event.encode().expect("a packet"));
    }
}

#[test]
fn calls_are_those_of_the_examples_and_what_an_attacker_makes_of_them() {
    let calls = [
        ("planned.without", "example_uptime"),
        ("planned.path", "example_directory_size\npath=/var/log/apt\ndepth:2"),
        ("planned.null", "example_directory_size\npath=/var/log\ndepth:null"),
        ("planned.switch", "example_disks\ninodes:true\nkind=ext4"),
        ("planned.list", "example_checksums\nfiles[]=/etc/hosts\nfiles[]=/etc/fstab"),
        ("planned.time", "example_find_large\nsize=+10M\nseconds:60\ndirectory=/srv"),
        ("planned.script", "example_json_keys\nfile=/etc/a.json"),
        ("planned.command", "execute_command\ncommand=df -h '/a b'"),
        ("planned.command-in-a-directory", "execute_command\ncommand=ls -la\ncwd=/tmp\ntimeout:5"),
        ("no-action.unknown", "example_uptimes"),
        ("no-action.nothing", ""),
        ("argument.unknown", "example_uptime\nx:1"),
        ("argument.missing", "example_checksums"),
        ("argument.no-element", "example_checksums\nfiles[]:null"),
        ("argument.another-type", "example_directory_size\npath:7"),
        ("argument.text-for-a-number", "example_directory_size\npath=/var/log\ndepth=2"),
        ("argument.out-of-range", "example_directory_size\npath=/var/log\ndepth:4"),
        ("argument.smallest-number", "example_directory_size\npath=/var/log\ndepth:-9223372036854775808"),
        ("argument.outside", "example_directory_size\npath=/etc"),
        ("argument.beside", "example_directory_size\npath=/var/logs"),
        ("argument.up", "example_directory_size\npath=/var/log/../../etc"),
        ("argument.nul", "example_directory_size\npath=/var/log/a\\0b"),
        ("argument.no-choice", "example_disks\nkind=ext4,xfs"),
        ("argument.scalar-for-a-list", "example_checksums\nfiles=/etc/hosts"),
        ("argument.twice", "example_disks\nkind=ext4\nkind=xfs"),
        ("command.two", "execute_command\ncommand=ls; rm -rf /"),
        ("command.line-break", "execute_command\ncommand=ls\\nrm -rf /"),
        ("command.substitution", "execute_command\ncommand=ls $(id)"),
        ("command.open-quote", "execute_command\ncommand=ls 'a"),
        ("command.unlisted", "execute_command\ncommand=bash -c id"),
        ("command.unlisted-option", "execute_command\ncommand=find / -delete"),
    ];
    for (name, call) in calls {
        input("arguments", name, call.as_bytes());
    }
}

#[test]
fn signatures_are_those_of_openssh_with_and_without_their_armour() {
    let data = programs::repository().join("helper/testdata/sshsig");
    let read = |name: &str| fs::read_to_string(data.join(name)).expect("a signature");
    for (word, name) in [
        ("counts", "sha512"),
        ("counts", "sha256"),
        ("counts", "sk"),
        ("not-present", "sk_untouched"),
        ("namespace", "other_namespace"),
        ("unknown", "stranger"),
        ("algorithm", "rsa"),
        ("mismatch", "small_order_r"),
    ] {
        let armoured = read(&format!("{name}.sig"));
        input("signatures", &format!("{word}.{name}"), armoured.as_bytes());
        input("signatures", &format!("{word}.{name}-blob"), &unarmoured(&armoured));
    }
    let good = unarmoured(&read("sha512.sig"));
    let changed = |at: usize, bit: u8| {
        let mut blob = good.clone();
        blob[at] ^= bit;
        blob
    };
    input("signatures", "mismatch.changed", &changed(good.len() - 1, 1));
    input("signatures", "form.another-version", &changed(9, 2));
    input("signatures", "form.a-length-beyond-the-end", &changed(10, 0x80));
    input("signatures", "form.cut", &good[..good.len() - 1]);
    input("signatures", "form.longer", &[good.as_slice(), b"\0"].concat());
    input("signatures", "armour.cut", &read("sha512.sig").as_bytes()[..60]);
    let signers = read("trusted_signers");
    input("signatures", "signers.trusted", signers.as_bytes());
    input(
        "signatures",
        "no-signers.option",
        signers.replace("ssh-ed25519 ", "cert-authority ssh-ed25519 ").as_bytes(),
    );
}

/// The bytes within an armour (RFC 4648).
fn unarmoured(text: &str) -> Vec<u8> {
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let mut bytes = Vec::new();
    for group in body.as_bytes().chunks(4) {
        let value = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => 0,
        };
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 6 | u32::from(value(*byte)));
        let padding = group.iter().filter(|byte| **byte == b'=').count();
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    bytes
}
