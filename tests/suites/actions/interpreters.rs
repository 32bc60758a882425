#![forbid(unsafe_code)]
//! Interpreters, `#!` files and wrappers. The reference system looks at the first four bytes of a file and at the
//! names of known wrappers, and admits three holes. Each is shown here twice: that check lets it through, and
//! the kernel does not.

use super::{gloveport, printed, source};
use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene, processes};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The check of the reference system: an ELF magic number, and a name that is no interpreter's.
fn naive_check(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    bytes.starts_with(b"\x7fELF") && !["sh", "bash", "dash", "python3", "perl"].contains(&name.as_str())
}

/// Everything readable, so that only the exec itself is in question.
fn readable(scene: &Scene) -> Value {
    json!({"read": ["/usr", "/etc", scene.root]})
}

fn assert_stopped(result: &ToolResult, trace: &str) {
    let said = result.0.to_string();
    assert!(!said.contains(trace), "{trace} got through: {:#}", result.0);
    assert_ne!(result.structured()["success"], true, "{:#}", result.0);
}

#[test]
fn first_hole_an_elf_magic_number_says_nothing_about_what_runs() {
    // A copy of the shell under another name: ELF, and not on any list.
    let scene = Scene::new();
    let shell = scene.program("viewer", fs::read("/bin/dash").expect("dash"));
    assert!(naive_check(Path::new(&shell)));
    let outside = Command::new(&shell).args(["-c", "exec /usr/bin/id -u"]).output().expect("the copy");
    assert_eq!(outside.status.code(), Some(0), "outside it runs what it is told");
    let action = scene.exec("viewer", &[&shell, "-c", "/usr/bin/id -u; echo status $?"]);
    let pair = scene.pair(&[action.with(json!({"sandbox": {"read": ["/usr"]}}))]);
    let result = pair.call("viewer", json!({}));
    // It may interpret, as its author signed; it can start nothing.
    assert_eq!(result.stdout(), "status 126", "{:#}", result.0);
}

#[test]
fn second_hole_a_shell_runs_a_marked_text_after_enoexec() {
    // A text behind an ELF magic number: the kernel says ENOEXEC, and then execvp(3), by which wrappers start
    // programs, has /bin/sh read it.
    let scene = Scene::new();
    let marks = scene.own_directory("marks");
    let text = scene.program("marked", b"\x7fELF=1\necho THROUGH\n/usr/bin/id -u\n");
    assert!(naive_check(Path::new(&text)));
    let outside = Command::new("/usr/bin/env").arg(&text).stderr(Stdio::null()).output().expect("env");
    assert!(printed(&outside).contains("THROUGH"), "outside a shell runs it: {}", printed(&outside));
    let actions = [
        scene.exec("direct", &[&text]).with(json!({"sandbox": readable(&scene)})),
        scene.exec("by-env", &["/usr/bin/env", &text]).with(json!({"sandbox": readable(&scene)})),
        scene.exec("by-xargs", &["/usr/bin/xargs", &text]).with(json!({"sandbox": readable(&scene)})),
        scene.any_probe().with(json!({"sandbox": {"read": ["/usr", scene.root], "write": [marks]}})),
    ];
    let pair = scene.pair(&actions);
    let direct = pair.call("direct", json!({}));
    assert!(direct.is_error() && direct.text().contains("no ELF program"), "{:#}", direct.0);
    for tool in ["direct", "by-env", "by-xargs"] {
        assert_stopped(&pair.call(tool, json!({})), "THROUGH");
    }
    // From inside, by a program that has the shell's habit: no second image at all, marked or not.
    for words in [["exec2", text.as_str()], ["fork-exec", text.as_str()], ["exec2", "/bin/sh"]] {
        assert_eq!(pair.probe(&words).stdout(), "errno EPERM", "{words:?}");
    }
}

#[test]
fn third_hole_nsenter_and_chroot_into_another_root_are_not_looked_into() {
    // In that root `viewer` is another file than here, and a check of this root's file judges the wrong one.
    let scene = Scene::new();
    let other = scene.root.join("other");
    gloveport_tests::scene::make_directory(&other);
    scene.program("other/viewer", fs::read(scene.probe()).expect("the probe"));
    let here = scene.program("viewer", fs::read("/bin/true").expect("true"));
    assert!(naive_check(Path::new(&here)), "the check looks at this root's file");
    let chroot = Command::new("/usr/sbin/chroot").arg(&other).args(["/viewer", "print", "THROUGH"]).output();
    let outside = chroot.expect("chroot");
    assert!(printed(&outside).contains("THROUGH"), "outside the other file runs: {}", printed(&outside));
    let other = other.display().to_string();
    let root = format!("--root={other}");
    let words = ["/viewer", "print", "THROUGH"];
    let wrapped = |name: &str, wrapper: &[&str]| {
        let argv: Vec<&str> = wrapper.iter().copied().chain(words).collect();
        scene.exec(name, &argv).with(json!({"sandbox": readable(&scene)}))
    };
    let children = |name: &str, wrapper: &[&str]| {
        let viewer = format!("{other}/viewer");
        wrapped(name, wrapper).with(json!({"sandbox": {"read": ["/usr", scene.root], "exec": [viewer]}}))
    };
    let actions = [
        wrapped("nsenter", &["/usr/bin/nsenter", &root]),
        wrapped("nsenter-target", &["/usr/bin/nsenter", "--target", "1", "--root", "--mount"]),
        wrapped("chroot", &["/usr/sbin/chroot", &other]),
        wrapped("unshare", &["/usr/bin/unshare", "--user", "--map-root-user", &root]),
        // Declared children do not help either: what would change the root is refused.
        children("chroot-declared", &["/usr/sbin/chroot", &other]),
        children("nsenter-declared", &["/usr/bin/nsenter", &root]),
    ];
    let pair = scene.pair(&actions);
    for action in &actions {
        let result = pair.call(action.name(), json!({}));
        assert_eq!(result.stdout(), "", "{}: {:#}", action.name(), result.0);
        assert_stopped(&result, "THROUGH\\n");
    }
}

#[test]
fn every_wrapper_starts_and_can_start_nothing() {
    let scene = Scene::new();
    let id = "/usr/bin/id";
    let wrappers: [&[&str]; 10] = [
        &["/usr/bin/env", id],
        &["/usr/bin/timeout", "5", id],
        &["/usr/bin/nice", id],
        &["/usr/bin/ionice", "-c", "3", id],
        &["/usr/bin/stdbuf", "-o0", id],
        &["/usr/bin/xargs", id],
        &["/usr/bin/setsid", "--wait", id],
        &["/usr/bin/nohup", id],
        &["/usr/bin/taskset", "1", id],
        &["/usr/bin/flock", "/etc/hostname", id],
    ];
    let name = |argv: &[&str]| argv[0].rsplit('/').next().unwrap_or_default().to_owned();
    let present = wrappers.iter().filter(|argv| Path::new(argv[0]).exists());
    let actions: Vec<_> = present
        .map(|argv| scene.exec(&name(argv), argv).with(json!({"sandbox": readable(&scene)})))
        .collect();
    assert!(actions.len() >= 8, "this host has hardly any wrapper");
    let pair = scene.pair(&actions);
    for action in &actions {
        let result = pair.call(action.name(), json!({}));
        assert_stopped(&result, "uid=");
        let complaint = result.step(0)["stderr"].as_str().unwrap_or_default();
        assert!(!complaint.is_empty(), "{}: {:#}", action.name(), result.0);
    }
}

#[test]
fn interpreters_and_shebang_files_are_refused_by_name_link_and_content() {
    let scene = Scene::new();
    let text = |argv: &str| format!("name: a\ndescription: d\nrisk: read\nexec: [{argv}]\n");
    let build = |argv: &str| {
        let directory = source(&scene, "sources", &text(argv)).display().to_string();
        gloveport(
            &scene,
            &["catalog", "build", &directory, "-o", &scene.root.join("built").display().to_string()],
        )
    };
    for argv in [
        "/bin/sh, -c, id",
        "/usr/bin/python3, x",
        "/usr/bin/perl5.36",
        "/usr/bin/awk, '{}'",
        "/lib64/ld-linux-x86-64.so.2, /bin/ls",
    ] {
        let output = build(argv);
        assert_eq!(output.status.code(), Some(1), "{argv}");
        assert!(printed(&output).contains("interpreter"), "{argv}: {}", printed(&output));
    }
    // By what a name leads to on the host, and by what a file holds.
    let link = scene.root.join("lister");
    std::os::unix::fs::symlink("/bin/dash", &link).expect("a link");
    let script = scene.program("tool", "#!/bin/sh\necho THROUGH\n");
    let link = link.display().to_string();
    let actions = [
        scene.exec("link", &[&link, "-c", "echo THROUGH"]),
        scene.exec("script", &[&script]),
        scene.exec("script-allowed", &[&script]).with(json!({"allow_interpreter": true})),
        scene.exec("allowed", &["/bin/sh", "-c", "echo allowed"]).with(json!({"allow_interpreter": true})),
        scene.exec("link-allowed", &[&link, "-c", "echo allowed"]).with(json!({"allow_interpreter": true})),
    ];
    let pair = scene.pair(&actions);
    for (tool, reason) in [("link", "interpreter"), ("script", "`#!` file"), ("script-allowed", "`#!` file")]
    {
        let result = pair.call(tool, json!({}));
        assert!(result.is_error() && result.text().contains(reason), "{tool}: {:#}", result.0);
        assert_stopped(&result, "THROUGH\\n");
    }
    assert_eq!(pair.call("allowed", json!({})).stdout(), "allowed");
    assert_eq!(pair.call("link-allowed", json!({})).stdout(), "allowed");
}

#[test]
fn an_allowed_interpreter_is_warned_of_at_lint_at_signing_and_at_load() {
    let scene = Scene::new();
    let text = "name: risky\ndescription: d\nrisk: read\nallow_interpreter: true\nexec: [/bin/sh, -c, id]\n";
    let directory = source(&scene, "sources", text).display().to_string();
    let linted = printed(&gloveport(&scene, &["catalog", "lint", &directory]));
    assert!(linted.contains("warning") && linted.contains("interpreter"), "{linted}");
    let built = scene.root.join("built").display().to_string();
    assert!(gloveport(&scene, &["catalog", "build", &directory, "-o", &built]).status.success());
    gloveport_tests::signing::Key::make(&scene.root, "key");
    let key = scene.root.join("key").display().to_string();
    let signed =
        printed(&gloveport(&scene, &["catalog", "sign", &format!("{built}/catalog.json"), "--key", &key]));
    assert!(signed.contains("warning: `risky` may run an interpreter"), "{signed}");
    let action = scene.exec("risky", &["/bin/sh", "-c", "id"]).with(json!({"allow_interpreter": true}));
    let helper = scene.helper(&[action]);
    processes::wait_until("the helper warns", Duration::from_secs(5), || {
        helper.log().lines().any(|line| line.contains("risky") && line.contains("interpreter"))
    });
}

#[test]
fn there_is_never_a_terminal() {
    let pair = Pair::with_probe();
    let state: Value = serde_json::from_str(&pair.probe(&["state"]).stdout()).expect("JSON");
    assert_eq!(state["session"]["terminal"], "0", "{state:#}");
}
