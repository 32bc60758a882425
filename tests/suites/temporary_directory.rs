//! The temporary directory of a run, `sandbox.private_tmp`.

use gloveport_contract::packet::{Outcome, RefusalCode, Request};
use gloveport_tests::action::Action;
use gloveport_tests::strace::{Call, Strace};
use gloveport_tests::{Finished, Helper, Scene, processes};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// An action that runs a line of shell; of other programs only those of `exec`.
fn shell(scene: &Scene, name: &str, line: &str, sandbox: Value) -> Action {
    let exec = json!(["/bin/sh", "-c", line]);
    scene.action(name, json!({"exec": exec, "allow_interpreter": true, "sandbox": sandbox}))
}

fn run(helper: &Helper, action: &str) -> Finished {
    helper.run(helper.call(action, &[]))
}

fn succeeded(finished: &Finished) -> bool {
    finished.outcome() == Some(&Outcome::Exited(0))
}

#[test]
fn all_steps_of_a_run_share_one_and_the_next_run_finds_it_empty() {
    let scene = Scene::new();
    let step = |name: &str, line: &str| json!({"name": name, "exec": ["/bin/sh", "-c", line]});
    let steps = json!([
        step("write", r#"set -- "$TMPDIR"/*; echo "found $*"; echo kept >"$TMPDIR/note""#),
        step("read", r#"read -r line <"$TMPDIR/note"; echo "$line""#),
    ]);
    let keys = json!({"steps": steps, "allow_interpreter": true, "sandbox": {"private_tmp": "1MiB"}});
    let actions = [scene.action("steps", keys)];
    let helper = scene.helper(&actions);
    for _ in 0..2 {
        let finished = run(&helper, "steps");
        // The star stands for itself where there is nothing.
        assert_eq!(finished.stdout, "found /proc/self/fd/3/*\nkept\n", "{finished:?}");
    }
}

#[test]
fn programs_find_it_by_tmpdir_and_without_the_key_tmp_is_closed() {
    let scene = Scene::new();
    let sandboxes = [("with", json!({"private_tmp": "1MiB"})), ("without", json!({}))];
    let actions: Vec<Action> = sandboxes
        .iter()
        .flat_map(|(twin, sandbox)| {
            let exec = |name: &str, argv: &[&str]| {
                scene.exec(&format!("{name}_{twin}"), argv).with(json!({"sandbox": sandbox}))
            };
            [
                exec("file", &["/usr/bin/mktemp"]),
                exec("directory", &["/usr/bin/mktemp", "-d"]),
                shell(&scene, &format!("variable_{twin}"), "echo ${TMPDIR-none}", sandbox.clone()),
                shell(&scene, &format!("tmp_{twin}"), "echo x >/tmp/gloveport-must-not-be", sandbox.clone()),
            ]
        })
        .collect();
    let helper = scene.helper(&actions);
    for action in ["file", "directory"] {
        let finished = run(&helper, &format!("{action}_with"));
        assert!(succeeded(&finished) && finished.stdout.starts_with("/proc/self/fd/3/tmp."), "{finished:?}");
        let finished = run(&helper, &format!("{action}_without"));
        assert!(!succeeded(&finished) && finished.stderr.contains("Permission denied"), "{finished:?}");
    }
    assert_eq!(run(&helper, "variable_with").stdout, "/proc/self/fd/3\n");
    assert_eq!(run(&helper, "variable_without").stdout, "none\n");
    for twin in ["with", "without"] {
        assert!(!succeeded(&run(&helper, &format!("tmp_{twin}"))));
    }
    assert!(!Path::new("/tmp/gloveport-must-not-be").exists());
}

#[test]
fn a_script_has_it_beside_its_own_text() {
    let scene = Scene::new();
    let body = "import os, tempfile\n\
                with tempfile.TemporaryDirectory() as place:\n    \
                    open(os.path.join(place, 'a'), 'w').write('text')\n    \
                    os.symlink('a', os.path.join(place, 'b'))\n    \
                    os.rename(os.path.join(place, 'b'), os.path.join(tempfile.gettempdir(), 'c'))\n    \
                    print(place, os.listdir(tempfile.gettempdir()))\n";
    let script = json!({
        "file": "temporary.py", "interpreter": "/usr/bin/python3", "body": body,
        "sha256": gloveport_contract::catalog::hex(&hmac_sha256::Hash::hash(body.as_bytes())),
    });
    let read =
        json!(["/usr/lib/python3", "?/usr/lib/python3.11", "?/usr/lib/python3.12", "?/usr/lib/python3.13"]);
    let action =
        scene.action("script", json!({"script": script, "sandbox": {"private_tmp": "1MiB", "read": read}}));
    let actions = [action];
    let helper = scene.helper(&actions);
    let finished = run(&helper, "script");
    assert!(finished.stdout.starts_with("/proc/self/fd/4/tmp"), "{finished:?}");
    assert!(finished.stdout.contains("'c'"), "{finished:?}");
}

#[test]
fn its_size_and_its_number_of_files_hold() {
    let scene = Scene::new();
    let fill = |name: &str, size: &str| {
        let argv =
            ["/usr/bin/dd", "if=/dev/zero", "of=/proc/self/fd/3/file", "bs=64K", "count=32", "status=none"];
        scene.exec(name, &argv).with(json!({"sandbox": {"private_tmp": size}}))
    };
    let many = r#"i=0; while [ $i -lt 2000 ]; do true >"$TMPDIR/$i" || break; i=$((i+1)); done; echo $i"#;
    let actions = [
        fill("full", "1MiB"),
        fill("fits", "4MiB"),
        shell(&scene, "many", many, json!({"private_tmp": "1MiB"})),
        shell(&scene, "more", many, json!({"private_tmp": "16MiB"})),
    ];
    let helper = scene.helper(&actions);
    let full = run(&helper, "full");
    assert!(!succeeded(&full) && full.stderr.contains("No space left"), "{full:?}");
    assert!(succeeded(&run(&helper, "fits")));
    let made = |action: &str| run(&helper, action).stdout.trim().parse::<u32>().expect("a number");
    assert!((200..256).contains(&made("many")), "a file for each page at most");
    assert_eq!(made("more"), 2000);
}

#[test]
fn nothing_in_it_is_executed() {
    let scene = Scene::new();
    let line = r#"cp /usr/bin/true "$TMPDIR/program" && ls -l "$TMPDIR/" && exec "$TMPDIR/program""#;
    let sandbox = json!({
        "private_tmp": "4MiB", "read": ["/usr/bin/true"], "exec": ["/usr/bin/cp", "/usr/bin/ls", "/usr/bin/true"],
    });
    let direct = shell(&scene, "direct", "exec /usr/bin/true", sandbox.clone());
    let actions = [shell(&scene, "copied", line, sandbox), direct];
    let helper = scene.helper(&actions);
    let copied = run(&helper, "copied");
    assert!(copied.stdout.contains("rwx"), "{copied:?}");
    assert_eq!(copied.outcome(), Some(&Outcome::Exited(126)), "{copied:?}");
    assert!(succeeded(&run(&helper, "direct")));
}

#[test]
fn no_other_run_of_the_same_user_reaches_it() {
    let scene = Scene::new();
    let hold = r#"echo secret >"$TMPDIR/note"; sleep 60"#;
    let sandbox = json!({"private_tmp": "1MiB", "exec": ["/usr/bin/sleep"]});
    let look = json!({
        "params": {"path": {"type": "string", "max_length": 200}}, "exec": ["/usr/bin/cat", "{path}"],
        "sandbox": {"private_tmp": "1MiB"},
    });
    let actions = [shell(&scene, "hold", hold, sandbox), scene.action("look", look)];
    let helper = scene.helper(&actions);
    let mut held = helper.connect();
    held.send(&Request::Run(Box::new(helper.call("hold", &[]))));
    let mut holder = 0;
    let note = |pid: u32| format!("/proc/{pid}/fd/3/note");
    processes::wait_until("the file is there", SOON, || {
        let own = processes::of(helper.scene.run.number).into_iter();
        holder =
            own.map(|process| process.pid).find(|pid| fs::exists(note(*pid)).unwrap_or(false)).unwrap_or(0);
        holder != 0
    });
    // It is really there, for root.
    assert_eq!(fs::read_to_string(note(holder)).expect("the file"), "secret\n");
    let inside =
        ["/proc/self/fd/3/note".to_owned(), note(holder), format!("/proc/{holder}/cwd/proc/self/fd/3/note")];
    for path in inside {
        let finished = helper.run(helper.call("look", &[("path", path.as_str().into())]));
        assert!(!succeeded(&finished) && !finished.stdout.contains("secret"), "{path}: {finished:?}");
    }
    // Nobody finds it by looking at what is mounted.
    let mounted = |pid: &str| fs::read_to_string(format!("/proc/{pid}/mountinfo")).expect("the mounts");
    assert_eq!(mounted(&holder.to_string()), mounted("self"));
}

#[test]
fn no_run_is_in_a_namespace_that_it_was_made_in() {
    let scene = Scene::new();
    let links = ["/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/pid"];
    let argv = [&["/usr/bin/readlink"], links.as_slice()].concat();
    let action = scene.exec("namespaces", &argv).with(json!({"sandbox": {"private_tmp": "1MiB"}}));
    let actions = [action];
    let helper = scene.helper(&actions);
    let own: Vec<String> =
        links.iter().map(|link| fs::read_link(link).expect("a namespace").display().to_string()).collect();
    assert_eq!(run(&helper, "namespaces").stdout.lines().collect::<Vec<_>>(), own);
}

#[test]
fn root_has_none_and_is_told_why() {
    let scene = Scene::new();
    let mktemp =
        |name: &str| scene.exec(name, &["/usr/bin/mktemp"]).with(json!({"sandbox": {"private_tmp": "1MiB"}}));
    let actions = [mktemp("as_root").with(json!({"run_as": "root"})), mktemp("as_run")];
    let helper = scene.helper(&actions);
    let finished = run(&helper, "as_root");
    let Some((RefusalCode::Unsupported, detail)) = finished.refused() else { panic!("{finished:?}") };
    assert!(detail.contains("uid 0"), "{detail}");
    assert!(succeeded(&run(&helper, "as_run")));
}

#[test]
fn on_a_host_that_forbids_it_such_an_action_is_unsupported_from_the_start() {
    let scene = Scene::new();
    let mktemp = scene.exec("temporary", &["/usr/bin/mktemp"]);
    let actions =
        [mktemp.with(json!({"sandbox": {"private_tmp": "1MiB"}})), scene.exec("plain", &["/usr/bin/true"])];
    let mut preparation = scene.prepare(&actions);
    // As a kernel or a container without user namespaces answers.
    let starter = "strace -D -f -qq -o /dev/null -e inject=fsopen:error=EPERM";
    preparation.starter = starter.split(' ').map(str::to_owned).collect();
    let helper = preparation.start();
    let finished = run(&helper, "temporary");
    let Some((RefusalCode::Unsupported, detail)) = finished.refused() else { panic!("{finished:?}") };
    assert!(detail.contains("user namespaces") && detail.contains("fsopen"), "{detail}");
    assert!(succeeded(&run(&helper, "plain")));
}

/// The calls of making one, in their order: of the process that is forked for it, and of its supervisor, which gives it its
/// account and takes the directory.
const MAKER: [(&str, &str); 9] = [
    ("recvfrom", ""),
    ("fsopen", "\"tmpfs\""),
    ("fsconfig", "\"size\", \"1048576\""),
    ("fsconfig", "\"nr_inodes\", \"256\""),
    ("fsconfig", "\"mode\", \"0700\""),
    ("fsconfig", "\"uid\""),
    ("fsconfig", "\"gid\""),
    ("fsconfig", "FSCONFIG_CMD_CREATE"),
    ("fsmount", "MOUNT_ATTR_NOSUID|MOUNT_ATTR_NODEV|MOUNT_ATTR_NOEXEC"),
];

fn traced(words: &[&str]) -> (Finished, Vec<Vec<Call>>) {
    let scene = Scene::new();
    let action =
        scene.exec("temporary", &["/usr/bin/mktemp"]).with(json!({"sandbox": {"private_tmp": "1MiB"}}));
    let actions = [action];
    let helper = scene.helper(&actions);
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let strace = Strace::attach(&|| helper.deciding(), &helper.scene.root.join("record"), &words);
    let finished = run(&helper, "temporary");
    (finished, strace.finish())
}

#[test]
fn its_maker_has_an_account_before_it_makes_anything_and_ends_before_a_program_starts() {
    let (finished, processes) = traced(&[]);
    assert!(succeeded(&finished), "{finished:?}");
    let made = |calls: &&Vec<Call>| calls.iter().any(|call| call.name == "fsopen");
    let maker = processes.iter().find(made).expect("a maker");
    let mut calls = maker.iter();
    for (name, arguments) in MAKER {
        assert!(
            calls.any(|call| call.name == name && call.arguments.contains(arguments)),
            "{name} {arguments} at its place in {maker:#?}"
        );
    }
    let forked = |call: &&Call| call.name == "clone" && call.arguments.contains("CLONE_NEWUSER");
    let supervisor =
        processes.iter().find(|calls| calls.iter().any(|call| forked(&call))).expect("a supervisor");
    let at =
        |what: &dyn Fn(&Call) -> bool| supervisor.iter().position(what).expect("a call of the supervisor");
    let order = [
        at(&|call| forked(&call)),
        at(&|call| call.name == "openat" && call.arguments.contains("/uid_map")),
        at(&|call| call.name == "openat" && call.arguments.contains("/gid_map")),
        at(&|call| call.name == "recvmsg" && call.arguments.contains("\"made\"")),
        at(&|call| call.name == "wait4"),
        at(&|call| call.name == "landlock_create_ruleset"),
        supervisor.iter().rposition(|call| call.name == "clone").expect("the fork of the step"),
    ];
    assert!(order.is_sorted(), "{order:?} in {supervisor:#?}");
}

#[test]
fn each_call_of_its_making_that_fails_is_named_and_nothing_runs() {
    for (inject, named) in [
        // The supervisor's first two writes, and the first packet after its connection and the request.
        ("write:error=EPERM:when=1", "uid_map"),
        ("write:error=EPERM:when=2", "gid_map"),
        ("recvmsg:error=ENOBUFS:when=3", "recvmsg"),
        ("fsopen:error=EPERM", "fsopen"),
        ("fsconfig:error=EINVAL:when=1", "fsconfig"),
        ("fsconfig:error=ENOMEM:when=6", "fsconfig"),
        ("fsmount:error=EPERM", "fsmount"),
        ("fsopen:signal=KILL", "its maker was ended"),
    ] {
        let word = format!("-einject={inject}");
        let (finished, _) = traced(&[&word]);
        assert!(!finished.ran() && finished.stdout.is_empty(), "{inject}: {finished:?}");
        let (_, detail) = finished.refused().unwrap_or_else(|| panic!("{inject}: {finished:?}"));
        assert!(detail.contains(named), "{inject}: {detail}");
    }
}
