//! What is built reads back to the same, and renders the same on both sides.

use super::{Scratch, catalog};
use crate::catalog_source::lint::{self, Level};
use crate::catalog_source::to_json;
use gloveport_contract::catalog::{Action, Catalog};
use gloveport_contract::packet::{Argument, Scalar, Value};
use gloveport_contract::plan::plan;
use gloveport_contract::promises::{Ground, NEWEST_ABI, judge};
use proptest::prelude::*;

fn read_back(catalog: &Catalog) -> Catalog {
    serde_json::from_str(&to_json(catalog).unwrap()).unwrap()
}

#[test]
fn the_ready_catalogues_read_back_to_the_same() {
    let ready = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/catalogs");
    for directory in std::fs::read_dir(ready).unwrap() {
        let built = super::super::build(&[directory.unwrap().path()]).unwrap();
        let again = read_back(&built);
        assert_eq!(again, built);
        again.check().unwrap();
        assert_eq!(to_json(&again).unwrap(), to_json(&built).unwrap());
    }
}

#[test]
fn the_ready_catalogues_run_on_the_kernel_of_every_supported_distribution() {
    let ready = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/catalogs");
    for directory in ["linux-agent", "diagnostics"] {
        let built = super::super::build(&[ready.join(directory)]).unwrap();
        // Landlock ABI 2 is that of Debian 12's own kernel.
        for abi in 2..=NEWEST_ABI {
            for (action, sandbox) in
                built.actions.iter().flat_map(|a| a.sandboxes().into_iter().map(|s| (&a.name, s)))
            {
                let verdict = judge(&sandbox, Ground { abi, guard_page: true });
                assert_eq!(verdict.broken, [], "{action} under ABI {abi}");
            }
        }
    }
}

#[test]
fn the_worked_examples_build_and_need_no_warning() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
    let built = super::super::build(&[examples]).unwrap();
    assert_eq!(built.actions.len(), 10);
    for finding in built.actions.iter().flat_map(lint::lint) {
        // What a host has of the programs is the host's matter.
        assert_eq!(finding.level, Level::Note, "{finding}");
    }
}

#[test]
fn a_script_is_embedded_and_signed_with_its_digest() {
    let source = "name: a\ndescription: d\nrisk: read\nscript: {file: x.py, interpreter: /usr/bin/python3}\n";
    let scratch = Scratch::new().with("a.yaml", source).with("x.py", "print('é')\n");
    let built = scratch.read().unwrap().catalog;
    let script = built.actions[0].script.as_ref().unwrap();
    assert_eq!(script.body.as_deref(), Some("print('é')\n"));
    assert_eq!(script.sha256.as_ref().unwrap().len(), 64);
    let mut again = read_back(&built);
    again.check().unwrap();
    again.actions[0].script.as_mut().unwrap().body = Some("print(0)\n".into());
    assert!(again.check().unwrap_err().to_string().contains("digest"));
}

#[test]
fn the_order_of_files_does_not_matter() {
    let action = |name: &str| format!("name: {name}\ndescription: d\nrisk: read\nexec: [/bin/true]\n");
    let one = Scratch::new().with("1.yaml", action("b")).with("2.yaml", action("a"));
    let two = Scratch::new().with("1.yaml", format!("{}---\n{}", action("a"), action("b")));
    let text = |scratch: &Scratch| to_json(&scratch.read().unwrap().catalog).unwrap();
    assert_eq!(text(&one), text(&two));
    assert!(text(&one).ends_with("}\n"));
}

#[test]
fn redaction_stays_in_force_beside_patterns() {
    let built = catalog("name: a\ndescription: d\nrisk: read\nexec: [/bin/true]\nredact: {patterns: [x]}\n");
    assert_eq!(built.actions[0].redact.builtin, ["secrets"]);
    assert_eq!(read_back(&built), built);
}

/// Text as operators write it, and as they should not.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z0-9:#&*!|>'\"%@`{}\\[\\],?-]{1,8}",
        Just("true".to_owned()),
        Just("0x1F".to_owned()),
        Just("~".to_owned()),
        Just("é日\u{202e}\u{2028}".to_owned()),
    ]
}

/// The parameters of a generated action. Those with a default may stand alone in an argv, the others in a group.
const ALONE: [&str; 2] = ["{s}", "{e}"];
const IN_GROUPS: [&str; 6] = ["{s}", "{e}", "{n}", "{b}", "{l}", "{p}"];

/// An element of an argv over these parameters.
fn item() -> impl Strategy<Value = serde_json::Value> {
    let literal = text()
        .prop_filter("no placeholder", |text| !IN_GROUPS.iter().any(|name| text.contains(name)))
        .prop_map(serde_json::Value::from)
        .boxed();
    let group = (literal.clone(), prop::sample::select(&IN_GROUPS[..]))
        .prop_map(|(text, name)| serde_json::json!([text, name]));
    prop_oneof![literal, prop::sample::select(&ALONE[..]).prop_map(serde_json::Value::from), group]
}

/// What an action runs: a program, several, a script, or a command of a table.
fn work() -> impl Strategy<Value = serde_json::Value> {
    let items = || prop::collection::vec(item(), 0..6);
    let program = |items: Vec<serde_json::Value>| {
        let argv: Vec<_> = std::iter::once(serde_json::Value::from("/bin/true")).chain(items).collect();
        serde_json::json!(argv)
    };
    let step =
        move |(number, items)| serde_json::json!({"name": format!("step-{number}"), "exec": program(items)});
    let steps = prop::collection::vec(items(), 1..4);
    prop_oneof![
        items().prop_map(move |items| serde_json::json!({"exec": program(items)})),
        steps.prop_map(move |steps| {
            let steps: Vec<_> = steps.into_iter().enumerate().map(step).collect();
            serde_json::json!({"steps": steps, "on_error": "continue"})
        }),
        (prop::sample::select(vec!["/usr/bin/python3", "/bin/sh"]), items()).prop_map(
            |(interpreter, args)| {
                serde_json::json!({"script": {"file": "script", "interpreter": interpreter, "args": args}})
            }
        ),
        Just(serde_json::json!({"builtin": "command", "builtin_config": {"commands": [
            {"name": "ls", "exec": "/bin/ls", "short": "1al", "long": ["all", "color=?"], "operands": "0..4"},
            {"name": "find", "exec": "/usr/bin/find", "single_dash": ["-name:", "-type:"], "operands": "0..4"},
            {"name": "zcat", "exec": "/bin/gzip", "args": ["-dc"], "operands": 1},
        ]}})),
    ]
}

prop_compose! {
    fn action()(
        description in "[!-~]{1,20}",
        work in work(),
        default in text().prop_filter("a value", |text| !text.starts_with('-') && !text.contains(char::is_control)),
        max in 0..i64::MAX,
        timeout in 1..3_600_000u64,
        env in text().prop_filter("no NUL", |text| !text.contains('\0')),
    ) -> serde_json::Value {
        let action = serde_json::json!({
            "name": "generated", "description": description, "risk": "write",
            "params": {
                "s": {"type": "string", "default": default},
                "e": {"type": "enum", "values": ["one", "--two", "é"], "default": "one"},
                "n": {"type": "integer", "max": max, "optional": true},
                "b": {"type": "boolean", "optional": true},
                "l": {"type": "list", "items": {"type": "string"}, "optional": true},
                "p": {"type": "path", "roots": ["/srv", "/var/log"], "optional": true},
                "command": {"type": "string"},
            },
            "timeout": format!("{timeout}ms"), "env": {"X": env},
        });
        let keys = [action, work].into_iter().flat_map(|part| part.as_object().cloned().unwrap_or_default());
        serde_json::Value::Object(keys.collect())
    }
}

/// Lines that a caller may give to a table of commands.
fn command() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "ls",
            "find",
            "zcat",
            "-la",
            "--all",
            "--color=x",
            "-name",
            "--",
            "/etc",
            "'a b'",
            "rm",
            ";"
        ])
        .prop_map(str::to_owned),
        text(),
    ];
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

fn arguments() -> impl Strategy<Value = Vec<Argument>> {
    let argument = |name: &'static str, value: BoxedStrategy<Value>| {
        prop::option::of(value.prop_map(move |value| Argument { name: name.to_owned(), value }))
    };
    let words = prop::collection::vec(text().prop_map(|text| Scalar::Text(text.into_bytes())), 0..4);
    let path = prop_oneof!["/(srv|var/log|etc)(/[a-z.]{1,3}){0,3}", text()];
    (
        argument("s", text().prop_map(|text| Value::Text(text.into_bytes())).boxed()),
        argument("e", prop::sample::select(vec!["one", "--two", "no"]).prop_map(Value::from).boxed()),
        argument("n", any::<i64>().prop_map(Value::Integer).boxed()),
        argument("b", any::<bool>().prop_map(Value::Boolean).boxed()),
        argument("l", words.prop_map(Value::List).boxed()),
        argument("p", path.prop_map(|path| Value::Text(path.into_bytes())).boxed()),
        command()
            .prop_map(|line| Argument { name: "command".to_owned(), value: Value::Text(line.into_bytes()) }),
    )
        .prop_map(|(s, e, n, b, l, p, command)| {
            [s, e, n, b, l, p, Some(command)].into_iter().flatten().collect()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// JSON is YAML, so the same text is read by both readers.
    #[test]
    fn what_lint_accepts_both_sides_accept_and_render_identically(source in action(), args in arguments()) {
        let text = serde_json::to_string_pretty(&source).unwrap();
        let built = Scratch::new().with("a.yaml", &text).with("script", "true\n").read().unwrap().catalog;
        let again = read_back(&built);
        prop_assert_eq!(&again, &built);
        prop_assert!(again.check().is_ok());
        let direct: Action = serde_json::from_str(&text).unwrap();
        // The text of a script comes from its file.
        prop_assert!(direct.script.is_some() || built.actions[0] == direct);
        let (daemon, helper) = (plan(&built.actions[0], &args, None), plan(&again.actions[0], &args, None));
        for step in daemon.iter().flat_map(|plan| &plan.steps) {
            prop_assert!(step.argv.iter().all(|argument| !argument.contains(&0)));
            prop_assert!(!step.argv[0].is_empty());
        }
        prop_assert_eq!(daemon, helper);
    }
}
