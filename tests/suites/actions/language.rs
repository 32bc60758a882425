#![forbid(unsafe_code)]
//! The catalogue's language as its author meets it: mistakes with file, line and column, and warnings.

use super::{gloveport, printed, source};
use gloveport_tests::{Scene, clients, programs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A good action, to which each test adds what it is about. Its last line is the sixth.
const GOOD: &str =
    "name: a\ndescription: d\nrisk: read\nparams:\n  u: {type: string}\nexec: [/bin/true, \"{u}\"]\n";

/// Builds a source; the exit code and what was printed.
fn build(scene: &Scene, text: &str) -> (Option<i32>, String) {
    let directory = source(scene, "sources", text);
    let output = scene.root.join("built").display().to_string();
    let built = gloveport(scene, &["catalog", "build", &directory.display().to_string(), "-o", &output]);
    (built.status.code(), printed(&built))
}

/// The findings of `catalog lint`, one line each.
fn lint(scene: &Scene, text: &str, words: &[&str]) -> (Option<i32>, String) {
    let directory = source(scene, "sources", text).display().to_string();
    let mut command = vec!["catalog", "lint", directory.as_str()];
    command.extend(words);
    let output = gloveport(scene, &command);
    (output.status.code(), printed(&output))
}

#[test]
fn an_unknown_key_is_an_error_with_file_line_and_column_wherever_it_stands() {
    let scene = Scene::new();
    assert_eq!(build(&scene, GOOD).0, Some(0));
    let script = "name: a\ndescription: d\nrisk: read\nscript: {file: x, interpreter: /bin/sh, shell: y}\n";
    let builtin = "name: a\ndescription: d\nrisk: read\nbuiltin: command\nparams: {command: {type: string}}\n\
                   builtin_config:\n  commands:\n  - {name: ls, exec: /bin/ls, shrot: a}\n";
    let handler =
        "name: a\ndescription: d\nrisk: read\nbuiltin: log_search\nbuiltin_config: {root: [/var/log]}\n";
    let steps =
        "name: a\ndescription: d\nrisk: read\nsteps:\n- {name: s, exec: [/bin/true], on_eror: stop}\n";
    let added = |line: &str| format!("{GOOD}{line}\n");
    let cases: [(String, &str, &str); 16] = [
        (added("timout: 20s"), "tests.yaml:7:1:", "`timout`"),
        (added("sandbox: {raed: [/srv]}"), "tests.yaml:7:11:", "`raed`"),
        (added("limits: {proceses: 1}"), "tests.yaml:7:10:", "`proceses`"),
        (added("output: {colour: raw}"), "tests.yaml:7:10:", "`colour`"),
        (added("redact: {buildin: []}"), "tests.yaml:7:10:", "`buildin`"),
        (added("timeout: {parm: u, default: 1s, max: 2s}"), "tests.yaml:7:11:", "`parm`"),
        (added("cwd: {param: u, root: [/]}"), "tests.yaml:7:17:", "`root`"),
        (added("sandbox: {network: [{connct: [1]}]}"), "tests.yaml:7:22:", "`connct`"),
        (added("exec: [/bin/false]"), "tests.yaml:7:1:", "`exec` stands twice"),
        (GOOD.replace("{type: string}", "{type: string, patern: x}"), "tests.yaml:5:21:", "`patern`"),
        (format!("{GOOD}---\n{}", GOOD.replace("risk", "rsik")), "tests.yaml:10:1:", "`rsik`"),
        (script.into(), "tests.yaml:4:", "`shell`"),
        (builtin.into(), "tests.yaml:8:", "`shrot`"),
        (handler.into(), "tests.yaml:5:", "`root`"),
        (steps.into(), "tests.yaml:5:", "`on_eror`"),
        // No unknown key, but as wrong: who may read the process list reads an argv.
        (GOOD.replace("string}", "string, secret: true}"), "tests.yaml:6:19:", "`u` is secret"),
    ];
    for (text, place, key) in cases {
        let (code, said) = build(&scene, &text);
        assert_eq!(code, Some(1), "{text}\n{said}");
        assert!(said.contains(place) && said.contains(key), "{text}\n{place} {key}\n{said}");
    }
    assert!(!scene.root.join("state/catalog.json").exists());
}

#[test]
fn a_placeholder_is_a_whole_element_and_never_part_of_one() {
    let scene = Scene::new();
    for (element, fault) in [
        ("\"--unit={u}\"", true),
        ("\"{u}{u}\"", true),
        ("\"{u}\"", false),
        ("[--unit, \"{u}\"]", true),
        ("\"{other}\"", true),
    ] {
        let (code, said) = build(&scene, &GOOD.replace("\"{u}\"", element));
        // A required parameter in an optional group could never be absent; lint says so, and it is built.
        let expected = if fault && !element.starts_with('[') { 1 } else { 0 };
        assert_eq!(code, Some(expected), "{element}: {said}");
    }
}

#[test]
fn several_mistakes_are_told_at_once_and_as_json() {
    let scene = Scene::new();
    let text = format!("{GOOD}timout: 1s\n---\n{}", GOOD.replace("/bin/true", "bin/true"));
    let directory = source(&scene, "sources", &text).display().to_string();
    let output = gloveport(&scene, &["catalog", "lint", "--json", &directory]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let text = told.to_string();
    assert!(text.contains("timout") && text.contains("absolute path"), "{told:#}");
    assert!(text.contains("\"line\":7") && text.contains("\"column\":1"), "{told:#}");
}

#[test]
fn lint_warns_of_what_is_risky_and_strict_makes_it_fail() {
    let scene = Scene::new();
    let cases = [
        ("exec: [/usr/bin/env, id]", "start another program"),
        ("allow_interpreter: true\nexec: [/bin/sh, -c, id]", "interpreter"),
        ("run_as: root\nexec: [/bin/true]", "root"),
        ("groups: [docker]\nexec: [/bin/true]", "docker"),
        ("params: {p: {type: string, pattern: '[^x]+'}}\nexec: [/bin/echo, \"{p}\"]", "line break"),
        (
            "params: {p: {type: string, allow_dash: true, pattern: '.+'}}\nexec: [/bin/echo, \"{p}\"]",
            "option",
        ),
        ("params: {p: {type: string, secret: true}}\nexec: [/bin/echo]", "never used"),
        ("exec: [/bin/true]\nsandbox: {read: [/srv, /srv/www]}", "/srv/www"),
    ];
    for (keys, word) in cases {
        let text = format!("name: a\ndescription: d\nrisk: read\n{keys}\n");
        let (code, said) = lint(&scene, &text, &[]);
        assert_eq!(code, Some(0), "{keys}\n{said}");
        assert!(said.contains("tests.yaml:") && said.contains(word), "{keys}: {word}\n{said}");
        if said.contains("warning") && !said.contains("0 warnings") {
            assert_eq!(lint(&scene, &text, &["--strict"]).0, Some(1), "{keys}");
        }
    }
    let plain = "name: a\ndescription: d\nrisk: read\nexec: [/bin/true]\n";
    assert_eq!(lint(&scene, plain, &["--strict"]).0, Some(0));
}

#[test]
fn diff_says_in_words_what_is_permitted_that_was_not() {
    let scene = Scene::new();
    let old = source(&scene, "old", GOOD).display().to_string();
    let changed = format!(
        "{GOOD}sandbox: {{write: [/srv/x]}}\ntimeout: 10s\n---\n{}",
        GOOD.replace("name: a", "name: b")
    );
    let new = source(&scene, "new", &changed).display().to_string();
    let output = gloveport(&scene, &["catalog", "diff", &old, &new]);
    let said = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("+ a") && said.contains("/srv/x"), "{said}");
    assert!(said.contains("+ b: new action"), "{said}");
    assert!(said.contains("- a") && said.contains("10s"), "{said}");
}

/// What an editor finds wrong in each of these sources.
fn judged_by_an_editor(sources: &[PathBuf]) -> BTreeMap<PathBuf, Vec<String>> {
    let mut editor = clients::python("fastmcp", "catalog_schema.py");
    editor.arg(programs::repository().join("docs/catalog.schema.json")).args(sources);
    let output = editor.output().expect("starting Python");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)))
}

#[test]
fn the_schema_for_editors_takes_what_is_built_and_marks_what_is_mistyped() {
    let yaml = |directory: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(programs::repository().join(directory)).expect("a directory").flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
            .collect()
    };
    // The reader of this editor knows YAML 1.1 only, which has no `?` within a word, as the tables of commands have it.
    let good = [yaml("docs/examples"), yaml("packaging/catalogs/diagnostics")].concat();
    assert!(good.len() > 15, "{good:?}");
    for (source, wrong) in judged_by_an_editor(&good) {
        assert!(wrong.is_empty(), "{}: {wrong:?}", source.display());
    }
    let scene = Scene::new();
    let mistakes = [
        "timout: 20s",
        "timeout: 20",
        "risk: some",
        "params: {u: {type: text}}",
        "params: {u: {type: string, pattern: 5}}",
        "sandbox: {raed: [/srv]}",
        "sandbox: {read: [srv]}",
        "sandbox: {network: [tcp]}",
        "sandbox: {network: [{connect: [70000]}]}",
        "sandbox: {private_tmp: lots}",
        "limits: {memory: much}",
        "filters: [grep]",
        "on_error: retry",
        "steps: [{exec: [/bin/true]}]",
    ];
    // Of a key that stands twice this reader takes the last one.
    let plain = "name: a\ndescription: d\nrisk: read\nexec: [/bin/true]\n";
    let file = |(number, line)| scene.file(&format!("{number}.yaml"), format!("{plain}{line}\n")).into();
    let bad: Vec<PathBuf> = mistakes.iter().enumerate().map(file).collect();
    let judged = judged_by_an_editor(&bad);
    for (path, line) in bad.iter().zip(mistakes) {
        assert!(!judged[path].is_empty(), "{line} passes");
    }
}
