//! What a client's own validator thinks of arguments is what the pair thinks of them: each argument of a
//! corpus is judged by a JSON Schema 2020-12 validator with the tool's listed schema, and by calling the tool.

use gloveport_tests::{Pair, Scene, clients};
use serde_json::{Value, json};

/// A parameter for each type and each bound.
fn parameters(root: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("boolean", json!({"type": "boolean"})),
        ("choice", json!({"type": "enum", "values": ["one", "two"]})),
        ("choice_or_none", json!({"type": "enum", "values": ["one", "two"], "optional": true})),
        ("integer", json!({"type": "integer"})),
        ("integer_in_bounds", json!({"type": "integer", "min": -1, "max": 10})),
        ("integer_or_none", json!({"type": "integer", "min": 1, "optional": true})),
        ("list", json!({"type": "list", "items": {"type": "string", "max_length": 20}, "max_items": 3})),
        ("list_of_numbers", json!({"type": "list", "items": {"type": "integer"}})),
        ("path", json!({"type": "path", "roots": [root]})),
        ("text", json!({"type": "string", "max_length": 20})),
        ("text_of_letters", json!({"type": "string", "pattern": "[a-z]+"})),
        ("text_with_dash", json!({"type": "string", "allow_dash": true, "min_length": 2})),
        ("text_with_default", json!({"type": "string", "default": "a"})),
    ]
}

/// Values at and beyond every bound of those parameters.
fn values(root: &str) -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(false),
        json!({}),
        json!([]),
        json!([null]),
        json!([["a"]]),
        json!(0),
        json!(1),
        json!(-1),
        json!(-2),
        json!(10),
        json!(11),
        json!(3.0),
        json!(1.5),
        json!(1e2),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!([1]),
        json!([-1]),
        json!(["a"]),
        json!(["a", "b", "c"]),
        json!(["a", "b", "c", "d"]),
        json!(["-a"]),
        json!(["x".repeat(21)]),
        json!([1, "a"]),
    ];
    let texts = [
        "", "a", "ab", "-", "-a", "--", "a-b", "A", " a", "a ", "é", "日本", "one", "two", "ONE", "1",
        "true", "a\n", "\na", "a\tb", "\u{0}", "a\u{7f}", "a\u{85}b", "\u{2028}", "🦀", "a\\b", "$(id)",
        "a;b", "/", "//", "..",
    ];
    values.extend(texts.map(|text| json!(text)));
    values.extend([20, 21, 4096, 4097].map(|length| json!("x".repeat(length))));
    // Of two units in UTF-16 and four bytes in UTF-8: a length is one of characters.
    values.extend([20, 21].map(|length| json!("🦀".repeat(length))));
    let paths =
        ["", "/", "/a", "/a/", "/./a", "/../a", "//a", "/a/..", "/.", "x", "/a b", "/-a", "/...", "/a\n"];
    values.extend(paths.map(|path| json!(format!("{root}{path}"))));
    values
}

/// Whether the pair took the arguments.
fn takes(pair: &Pair, tool: &str, arguments: &Value) -> bool {
    let result = pair.call(tool, arguments.clone());
    assert_eq!(result.is_error(), result.text().contains("Call `"), "{arguments}: {:#}", result.0);
    !result.is_error()
}

#[test]
fn a_validator_and_the_pair_agree_on_every_argument_of_a_corpus() {
    let scene = Scene::new();
    let root = scene.own_directory("data");
    scene.own_file("data/a", "");
    let parameters = parameters(&root);
    let actions: Vec<_> = parameters
        .iter()
        .map(|(name, parameter)| {
            scene.exec(name, &["/usr/bin/true"]).with(json!({
                "exec": ["/usr/bin/true", ["{value}"]], "params": {"value": parameter}, "filters": ["tail", "count"],
            }))
        })
        .collect();
    let pair = scene.pair(&actions);
    let mut cases = Vec::new();
    for (name, _) in &parameters {
        for value in values(&root) {
            cases.push(json!({"tool": name, "arguments": {"params": {"value": value}}}));
        }
    }
    for arguments in [
        json!({}),
        json!({"params": {}}),
        json!({"params": null}),
        json!({"params": []}),
        json!({"value": "a"}),
        json!({"params": {"value": "a", "more": 1}}),
        json!({"params": {"value": "a"}, "more": 1}),
        json!({"params": {"value": "a"}, "tail": 1}),
        json!({"params": {"value": "a"}, "tail": 0}),
        json!({"params": {"value": "a"}, "tail": u64::MAX}),
        json!({"params": {"value": "a"}, "tail": "1"}),
        json!({"params": {"value": "a"}, "head": 1}),
        json!({"params": {"value": "a"}, "count": false}),
        json!({"params": {"value": "a"}, "count": 1}),
        json!({"params": {"value": "a"}, "tail": 1, "count": false}),
    ] {
        for tool in ["text", "integer_or_none"] {
            cases.push(json!({"tool": tool, "arguments": arguments}));
        }
    }
    let schemas: Value = pair.ask("tools/list", json!({}))["result"]["tools"].clone();
    let corpus = pair.scene.file("corpus.json", json!({"tools": schemas, "cases": cases}).to_string());
    let said = clients::run(clients::python("mcp", "json_schema.py"), &pair.endpoint, &[&corpus]);
    let verdicts = said["valid"].as_array().cloned().expect("verdicts");
    assert_eq!(verdicts.len(), cases.len());
    let disagreements: Vec<String> = cases
        .iter()
        .zip(&verdicts)
        .filter(|(case, valid)| {
            let tool = case["tool"].as_str().expect("a name");
            takes(&pair, tool, &case["arguments"]) != valid.as_bool().expect("a verdict")
        })
        .map(|(case, valid)| format!("the validator says {valid} to {case:.200}"))
        .collect();
    assert!(disagreements.is_empty(), "of {} cases:\n{}", cases.len(), disagreements.join("\n"));
}
