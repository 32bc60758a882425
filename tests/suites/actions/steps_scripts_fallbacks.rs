#![forbid(unsafe_code)]
//! Several programs under one deadline and one budget, other paths of a program, and signed scripts.

use super::{gloveport, printed, source};
use gloveport_tests::{Scene, processes};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// The status and the exit code of each step.
fn statuses(result: &Value) -> Vec<(String, Value)> {
    let steps = result["structuredContent"]["steps"].as_array().cloned().unwrap_or_default();
    let status =
        |step: &Value| (step["status"].as_str().unwrap_or_default().to_owned(), step["exit_code"].clone());
    steps.iter().map(status).collect()
}

#[test]
fn steps_run_in_order_and_a_failed_one_decides_the_rest() {
    let scene = Scene::new();
    let probe = scene.probe();
    let marks = scene.own_file("marks", "");
    let step = |name: &str, words: &[&str]| {
        let argv: Vec<&str> = [probe.as_str()].into_iter().chain(words.iter().copied()).collect();
        json!({"name": name, "exec": argv})
    };
    let append = |word: &str| json!({"name": word, "exec": ["/usr/bin/dd", format!("if={}/{word}", scene.root.display()), format!("of={marks}"), "oflag=append", "conv=notrunc", "status=none"]});
    for word in ["one", "two", "three"] {
        scene.file(word, format!("{word}\n"));
    }
    let failing = json!([
        step("good", &["print", "a"]),
        step("bad", &["exit", "3"]),
        step("worse", &["exit", "4"]),
        step("last", &["print", "b"])
    ]);
    let absent = json!([
        json!({"name": "absent", "exec": ["/usr/bin/dd", "if=/nonexistent"]}),
        step("last", &["print", "b"])
    ]);
    let actions = [
        scene.action(
            "ordered",
            json!({
                "steps": [append("three"), append("one"), append("two")],
                "sandbox": {"read": [scene.root], "write": [marks]},
            }),
        ),
        scene.action("stop", json!({"steps": failing})),
        scene.action("continue", json!({"steps": failing, "on_error": "continue"})),
        scene.action("complaint", json!({"steps": absent, "on_error": "continue"})),
    ];
    let pair = scene.pair(&actions);
    assert_eq!(pair.call("ordered", json!({})).structured()["success"], true);
    assert_eq!(fs::read_to_string(&marks).expect("the marks"), "three\none\ntwo\n");

    let stopped = pair.call("stop", json!({}));
    assert_eq!(stopped.structured()["exit_code"], 3, "{:#}", stopped.0);
    let expected =
        [("success", json!(0)), ("failed", json!(3)), ("skipped", Value::Null), ("skipped", Value::Null)];
    assert_eq!(statuses(&stopped.0), expected.map(|(status, code)| (status.to_owned(), code)));
    assert!(stopped.text().contains("skipped") || stopped.text().contains("last"), "{}", stopped.text());
    assert!(!stopped.is_error(), "a non-zero exit is a normal result");

    let went_on = pair.call("continue", json!({}));
    assert_eq!(went_on.structured()["exit_code"], 3, "the first failed step decides: {:#}", went_on.0);
    assert_eq!(went_on.structured()["success"], false);
    let expected = [("success", json!(0)), ("failed", json!(3)), ("failed", json!(4)), ("success", json!(0))];
    assert_eq!(statuses(&went_on.0), expected.map(|(status, code)| (status.to_owned(), code)));

    let complaint = pair.call("complaint", json!({}));
    assert!(complaint.step(0)["stderr"].as_str().is_some_and(|text| text.contains("nonexistent")));
    assert_eq!(complaint.step(1)["stdout"], "b\n");
    // The record has every step, the skipped ones too.
    let record = super::audit(&pair.state)
        .lines()
        .rfind(|line| line.contains("\"stop\"") && line.contains("\"ended\""))
        .map(str::to_owned);
    assert!(record.is_some_and(|record| record.contains("worse") && record.contains("last")));
}

#[test]
fn one_deadline_holds_for_all_steps_together() {
    let scene = Scene::new();
    let probe = scene.probe();
    let sleep = |name: &str| json!({"name": name, "exec": [probe, "print-sleep", "400", name]});
    let actions = [scene.action(
        "slow",
        json!({
            "steps": [sleep("one"), sleep("two"), sleep("three")], "timeout": "600ms", "on_error": "continue",
        }),
    )];
    let pair = scene.pair(&actions);
    let begun = Instant::now();
    let result = pair.call("slow", json!({}));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let status: Vec<String> = statuses(&result.0).into_iter().map(|(status, _)| status).collect();
    assert_eq!(status, ["success", "timeout", "skipped"], "{:#}", result.0);
    assert!(result.is_error() && result.structured()["timed_out"] == true, "{:#}", result.0);
    // What came before counts.
    assert_eq!((&result.step(0)["stdout"], &result.step(1)["stdout"]), (&json!("one\n"), &json!("two\n")));
    processes::wait_until_gone(pair.scene.run.number, Duration::from_secs(1));
}

#[test]
fn one_budget_holds_for_all_steps_and_stderr_keeps_its_part() {
    let scene = Scene::new();
    let probe = scene.probe();
    let flood = |name: &str| json!({"name": name, "exec": [probe, "flood", "100000"]});
    let complain = json!({"name": "why", "exec": [probe, "complain", "y".repeat(3000)]});
    let actions =
        [scene.action("budget", json!({"steps": [flood("a"), flood("b"), complain], "max_output": "4KiB"}))];
    let pair = scene.pair(&actions);
    let result = pair.call("budget", json!({}));
    let lengths: Vec<usize> = (0..3)
        .flat_map(|step| {
            ["stdout", "stderr"].map(|stream| result.step(step)[stream].as_str().map_or(0, str::len))
        })
        .collect();
    assert_eq!(lengths, [3072, 0, 0, 0, 0, 1024], "{:#}", result.0);
    assert!([0, 1].into_iter().all(|step| result.step(step)["stdout_truncated"] == true));
    assert_eq!(result.step(2)["stderr_truncated"], true);
}

#[test]
fn another_path_is_taken_only_where_the_main_one_does_not_exist() {
    let scene = Scene::new();
    let probe = scene.probe();
    let fails = scene.install("gloveport-probe").display().to_string();
    let not_executable = scene.file("not-executable", "x");
    let fallback = |name: &str, main: &str, words: &[&str], fallbacks: Value| {
        let argv: Vec<&str> = [main].into_iter().chain(words.iter().copied()).collect();
        scene.exec(name, &argv).with(json!({"exec_fallbacks": fallbacks}))
    };
    let actions = [
        fallback("absent", "/nonexistent/probe", &["print", "x"], json!(["/nonexistent/too", probe])),
        fallback("fails", &fails, &["exit", "127"], json!([probe])),
        fallback("signal", &fails, &["signal", "9"], json!([probe])),
        fallback("unfit", &not_executable, &["print", "x"], json!([probe])),
        fallback("none", "/nonexistent/probe", &["print", "x"], json!(["/nonexistent/too"])),
        scene.action(
            "step",
            json!({"steps": [
                {"name": "s", "exec": ["/nonexistent/probe", "print", "x"], "exec_fallbacks": [probe]},
            ]}),
        ),
    ];
    let pair = scene.pair(&actions);
    assert_eq!(pair.call("absent", json!({})).stdout(), "x");
    assert_eq!(pair.call("step", json!({})).stdout(), "x");
    // Once it exists it is never passed over: not for its exit code, its end or its mode.
    assert_eq!(pair.call("fails", json!({})).structured()["exit_code"], 127);
    assert_eq!(pair.call("signal", json!({})).structured()["exit_code"], 137);
    let unfit = pair.call("unfit", json!({}));
    assert!(unfit.is_error() && unfit.text().contains("cannot be executed"), "{:#}", unfit.0);
    let none = pair.call("none", json!({}));
    assert!(none.is_error() && none.text().contains("/nonexistent/probe does not exist"), "{:#}", none.0);
}

/// A script that tells how it was started.
const SCRIPT: &str = "import os, sys, json\n\
    place = sys.argv[0]\n\
    def attempt(what):\n    \
        try:\n        what()\n        return 'ok'\n    \
        except OSError as error:\n        return error.strerror\n\
    print(json.dumps({\n    \
        'argv': sys.argv[1:], 'isolated': sys.flags.isolated, 'path': sys.path,\n    \
        'uid': os.getuid(), 'name': os.readlink(place), 'bytes': open(place).read()[-7:],\n    \
        'write': attempt(lambda: os.write(os.open(place, os.O_WRONLY), b'x')),\n    \
        'truncate': attempt(lambda: os.truncate(place, 0)),\n    \
        'append': attempt(lambda: os.write(3, b'x')),\n\
    }))\n# end é";

fn scripts(scene: &Scene) -> std::path::PathBuf {
    let text = format!(
        "name: tell\ndescription: d\nrisk: read\nrun_as: \"{0}:{0}\"\n\
         params: {{word: {{type: string}}}}\n\
         script: {{file: tell.py, interpreter: /usr/bin/python3, args: [\"{{word}}\"]}}\n\
         sandbox: {{read: [\"?/usr/lib/python3\", \"?/usr/lib/python3.11\", \"?/usr/lib/python3.12\", \"?/usr/lib/python3.13\"]}}\n\
         ---\n\
         name: shell\ndescription: d\nrisk: read\nrun_as: \"{0}:{0}\"\nscript: {{file: tell.sh, interpreter: /bin/sh}}\n",
        scene.run.number
    );
    let directory = source(scene, "catalog", &text);
    fs::write(directory.join("tell.py"), SCRIPT).expect("writing a script");
    fs::write(directory.join("tell.sh"), "echo first\n/usr/bin/id\necho $?\n").expect("writing a script");
    directory
}

/// Every file of the places where a script could have been put.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for place in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        let entries = fs::read_dir(place).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path().display().to_string()));
    }
    // Other tests have their own.
    found.retain(|path| !path.contains("gloveport-"));
    found
}

#[test]
fn a_script_runs_from_sealed_memory_isolated_and_leaves_nothing() {
    let scene = Scene::new();
    let directory = scripts(&scene);
    let pair = scene.pair_of(&[&directory]);
    // The text counts as it was signed; the source may be gone.
    fs::remove_file(directory.join("tell.py")).expect("removing");
    let before = files();
    let result = pair.call("tell", json!({"params": {"word": "a b"}}));
    let told: Value = serde_json::from_str(&result.stdout()).unwrap_or_else(|_| panic!("{:#}", result.0));
    assert_eq!(told["argv"], json!(["a b"]));
    assert_eq!(told["isolated"], 1, "{told:#}");
    assert_eq!(told["uid"], pair.scene.run.number);
    assert!(told["name"].as_str().is_some_and(|name| name.starts_with("/memfd:")), "{told:#}");
    assert_eq!(told["bytes"], "# end é");
    for attempt in ["write", "truncate", "append"] {
        assert_ne!(told[attempt], "ok", "{told:#}");
    }
    let path = told["path"].as_array().cloned().unwrap_or_default();
    assert!(
        path.iter().all(|entry| entry.as_str().is_some_and(|entry| entry.starts_with("/usr"))),
        "{told:#}"
    );
    // It may interpret; it starts nothing.
    let shell = pair.call("shell", json!({}));
    assert_eq!(shell.stdout(), "first\n126", "{:#}", shell.0);
    let left: Vec<String> = files().difference(&before).cloned().collect();
    assert!(left.iter().all(|path| !path.contains("tell")), "{left:?}");
    // Not in the daemon: it can execute nothing, and its children would be its own.
    assert!(processes::descendants(pair.process("gloveportd").pid).is_empty());
}

#[test]
fn the_scripts_bytes_are_signed_with_the_action() {
    let scene = Scene::new();
    let directory = scripts(&scene).display().to_string();
    let built = scene.root.join("built");
    let output = gloveport(&scene, &["catalog", "build", &directory, "-o", &built.display().to_string()]);
    assert!(output.status.success(), "{}", printed(&output));
    let file = built.join("catalog.json");
    let catalog: Value = serde_json::from_slice(&fs::read(&file).expect("a catalogue")).expect("JSON");
    let script = catalog["actions"]
        .as_array()
        .and_then(|all| all.iter().find(|action| action["name"] == "tell"))
        .map(|action| &action["script"]);
    let script = script.expect("the action");
    assert_eq!(script["body"], SCRIPT);
    let digest: String =
        hmac_sha256::Hash::hash(SCRIPT.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(script["sha256"], json!(digest));
}

#[test]
fn a_script_with_another_text_than_its_digest_is_no_catalogue() {
    let scene = Scene::new();
    let directory = scripts(&scene);
    let key = gloveport_tests::signing::Key::make(&scene.root, "key");
    let built = scene.root.join("built");
    let words = ["catalog", "build", &directory.display().to_string(), "-o", &built.display().to_string()];
    assert!(gloveport(&scene, &words).status.success());
    let file = built.join("catalog.json");
    let text = fs::read_to_string(&file).expect("a catalogue").replace("echo first", "echo other");
    fs::write(&file, text).expect("writing");
    // Even properly signed.
    key.sign(gloveport_tests::signing::NAMESPACE, &file);
    let signers = scene.file("signers", key.signer("operator"));
    let helper = scene.install("gloveport-helper");
    let output = std::process::Command::new(helper)
        .arg("--check")
        .arg(&file)
        .arg(signers)
        .output()
        .expect("the helper");
    assert_eq!(output.status.code(), Some(1));
    assert!(printed(&output).contains("digest"), "{}", printed(&output));
}
