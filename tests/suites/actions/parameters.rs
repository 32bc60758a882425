#![forbid(unsafe_code)]
//! Parameters at their limits, and placeholders, through the real pair: what arrives in the program's argv is
//! what was given, byte for byte, or nothing runs.

use super::audit;
use gloveport_contract::packet::{RefusalCode, Scalar, Value as Wire};
use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene, processes};
use serde_json::{Value, json};
use std::time::Duration;

/// Tools whose program prints the words that it got, in hexadecimal.
fn pair() -> Pair {
    let scene = Scene::new();
    let probe = scene.probe();
    let show = |name: &str, params: Value, words: Value| {
        let mut argv = vec![json!(probe), json!("argv")];
        argv.extend(words.as_array().cloned().unwrap_or_default());
        scene.action(name, json!({"params": params, "exec": argv}))
    };
    let one = |name: &str, param: Value| show(name, json!({"p": param}), json!(["{p}"]));
    let actions = [
        one("text", json!({"type": "string"})),
        one("long", json!({"type": "string", "max_length": 1_000_000, "pattern": "(?s).*"})),
        one("dash", json!({"type": "string", "allow_dash": true})),
        one("word", json!({"type": "string", "pattern": "[a-z]+|[0-9]+", "min_length": 2, "max_length": 4})),
        one("integer", json!({"type": "integer", "min": -3, "max": 5})),
        one("natural", json!({"type": "integer"})),
        one("choice", json!({"type": "enum", "values": ["one", "--two"]})),
        one("items", json!({"type": "list", "min_items": 1, "max_items": 3, "items": {"type": "string"}})),
        show(
            "groups",
            json!({
                "a": {"type": "string", "optional": true}, "b": {"type": "integer", "optional": true},
                "v": {"type": "boolean", "optional": true}, "d": {"type": "string", "default": "by default"},
            }),
            json!([["--both", "{a}", "{b}"], ["--verbose", "{v}"], "{d}"]),
        ),
        scene.probing("content", &["stdin"]).with(json!({
            "params": {"text": {"type": "content", "min_length": 1, "max_length": 400_000}},
        })),
    ];
    scene.pair(&actions)
}

/// Calls a tool with one parameter.
fn give(pair: &Pair, tool: &str, value: impl Into<Value>) -> ToolResult {
    pair.call(tool, json!({"params": {"p": value.into()}}))
}

/// The words behind the program's own, as they arrived.
fn arrived(result: &ToolResult) -> Vec<String> {
    assert!(!result.is_error(), "{:#}", result.0);
    let words: Vec<String> = serde_json::from_str(&result.stdout()).expect("the words as JSON");
    let decode = |hex: &String| {
        let bytes = hex.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
        let bytes = bytes.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
        String::from_utf8(bytes).expect("UTF-8")
    };
    words.iter().skip(2).map(decode).collect()
}

/// It is refused with these words, and nothing runs.
fn assert_refused(result: &ToolResult, reason: &str) {
    assert!(result.is_error(), "{reason}: {:#}", result.0);
    assert!(result.structured()["steps"].is_null(), "{reason}: {:#}", result.0);
    assert!(result.text().contains(reason), "{reason}: {}", result.text());
}

#[test]
fn a_text_arrives_as_it_is_whatever_a_shell_would_make_of_it() {
    let pair = pair();
    for text in
        ["", " ", "$(id) `id` ; | & > *", "a b", "'\"\\", "{p}", "%s%n", "é 日本 🦀", "\u{202e}x", "=x", "@f"]
    {
        assert_eq!(arrived(&give(&pair, "text", text)), [text], "{text:?}");
    }
}

#[test]
fn what_a_text_must_not_hold_is_refused_with_its_place() {
    let pair = pair();
    assert_refused(&give(&pair, "text", "-x"), "begins with `-`");
    assert_refused(&give(&pair, "text", "--"), "begins with `-`");
    assert_refused(&give(&pair, "text", "a\nb"), "control character at position 1");
    assert_refused(&give(&pair, "text", "ab\u{1b}[1m"), "control character at position 2");
    assert_refused(&give(&pair, "text", "a\0b"), "NUL");
    assert_refused(&give(&pair, "long", "a\0b"), "NUL");
    assert_eq!(arrived(&give(&pair, "dash", "-x")), ["-x"]);
    assert_eq!(arrived(&give(&pair, "long", "a\nb")), ["a\nb"]);
}

#[test]
fn lengths_count_characters_and_an_argument_has_a_limit_of_the_kernel() {
    let pair = pair();
    let default = "é".repeat(1024);
    assert_eq!(arrived(&give(&pair, "text", default.as_str())), [default.as_str()]);
    assert_refused(&give(&pair, "text", format!("{default}x")), "1025 characters long; at most 1024");
    // The probe's answer is twice as long, and is cut: that it ran is what counts.
    let longest = give(&pair, "long", "x".repeat(95_000));
    assert_eq!(longest.structured()["exit_code"], 0, "{}", longest.text());
    // A packet holds a value twice: as it was given, and as it was rendered.
    assert_refused(
        &give(&pair, "long", "x".repeat(131_071)),
        "shorten the arguments, or pass them as content",
    );
    assert_refused(
        &give(&pair, "long", "x".repeat(131_072)),
        "131072 bytes; one argument takes at most 131071",
    );
    assert_refused(&give(&pair, "long", "x".repeat(300 * 1024)), "307200 bytes");
    // As content it needs no argument, and arrives whole.
    let content = pair.call("content", json!({"params": {"text": "x".repeat(300 * 1024)}}));
    assert_eq!(content.stdout(), "307200", "{:#}", content.0);
    let much = pair.call("content", json!({"params": {"text": "x".repeat(400_001)}}));
    assert_refused(&much, "400001 bytes long; at most 400000");
    assert_refused(&pair.call("content", json!({"params": {"text": ""}})), "at least 1");
    assert_refused(&pair.call("content", json!({"params": {}})), "required");
}

#[test]
fn a_pattern_matches_the_whole_value() {
    let pair = pair();
    for good in ["ab", "abcd", "12"] {
        assert_eq!(arrived(&give(&pair, "word", good)), [good]);
    }
    // Each alternative is anchored at both ends, and `$` matches no line end within.
    for bad in ["ab1", "1ab", "ab\n", "\nab", "AB", "é1", "a b"] {
        assert_refused(&give(&pair, "word", bad), "does not match the pattern");
    }
    assert_refused(&give(&pair, "word", "a"), "at least 2");
    assert_refused(&give(&pair, "word", "abcde"), "at most 4");
}

#[test]
fn integers_and_choices_have_their_range_and_their_type() {
    let pair = pair();
    for good in [-3, 0, 5] {
        assert_eq!(arrived(&give(&pair, "integer", good)), [good.to_string()]);
    }
    for bad in [-4, 6] {
        assert_refused(&give(&pair, "integer", bad), "not within -3 to 5");
    }
    assert_eq!(arrived(&give(&pair, "natural", i64::MAX)), [i64::MAX.to_string()]);
    assert_refused(&give(&pair, "natural", -1), "below 0");
    for bad in [json!(1.5), json!(1e300), json!(u64::MAX)] {
        assert_refused(&give(&pair, "natural", bad), "not a 64-bit integer");
    }
    for bad in [json!("5"), json!(true), json!([5])] {
        assert_refused(&give(&pair, "natural", bad), "must be of type integer");
    }
    assert_refused(&give(&pair, "natural", json!({})), "cannot be");
    assert_refused(&give(&pair, "natural", Value::Null), "required");
    assert_eq!(arrived(&give(&pair, "choice", "--two")), ["--two"]);
    assert_refused(&give(&pair, "choice", "One"), "must be one of: one, --two");
}

#[test]
fn a_list_is_an_element_each_and_each_is_checked() {
    let pair = pair();
    assert_eq!(arrived(&give(&pair, "items", json!(["a b", "", "é"]))), ["a b", "", "é"]);
    assert_refused(&give(&pair, "items", json!([])), "at least 1");
    assert_refused(&give(&pair, "items", json!(["a", "b", "c", "d"])), "4 items; at most 3");
    assert_refused(&give(&pair, "items", json!(["a", "-b"])), "begins with `-`");
    assert_refused(&give(&pair, "items", json!(["a", 5])), "must be of type string");
    assert_refused(&give(&pair, "items", json!([["a"]])), "cannot be");
}

#[test]
fn an_optional_group_stands_when_all_of_its_parameters_are_given() {
    let pair = pair();
    let words = |params: Value| arrived(&pair.call("groups", json!({"params": params})));
    let always = ["by default"];
    assert_eq!(words(json!({})), always);
    assert_eq!(words(json!({"a": "x"})), always);
    assert_eq!(words(json!({"b": 1})), always);
    assert_eq!(words(json!({"a": null, "b": 1, "v": false})), always);
    assert_eq!(words(json!({"a": "x", "b": 1})), ["--both", "x", "1", always[0]]);
    assert_eq!(words(json!({"v": true, "d": ""})), ["--verbose", ""]);
    let unknown = pair.call("groups", json!({"params": {"c": 1}}));
    assert_refused(&unknown, "it has: a, b, d, v");
    let outside = pair.call("groups", json!({"a": "x"}));
    assert_refused(&outside, "put it into `params`");
}

#[test]
fn bytes_that_are_no_text_are_refused_by_the_helper_too() {
    let scene = Scene::new();
    let action = scene.any_probe();
    let helper = scene.helper(&[action]);
    for (bytes, reason) in [(b"a\xff".to_vec(), "UTF-8"), (b"a\0".to_vec(), "NUL")] {
        let mut run = helper.call("probe", &[("words", Wire::List(vec![Scalar::Text(b"print".to_vec())]))]);
        run.args[0].value = Wire::List(vec![Scalar::Text(b"print".to_vec()), Scalar::Text(bytes.clone())]);
        run.argv[0].push(bytes);
        let finished = helper.run(run);
        let (code, detail) = finished.refused().expect("a refusal");
        assert_eq!(code, RefusalCode::Argument);
        assert!(detail.contains(reason) && !finished.ran(), "{detail}");
    }
}

#[test]
fn a_secret_is_in_no_record_no_log_no_error_and_no_output() {
    const SECRET: &str = "tulip-Mountain-42";
    let scene = Scene::new();
    // It cannot stand in an argv: the program prints the same text for another reason.
    let secret =
        json!({"s": {"type": "string", "secret": true, "pattern": "[a-zA-Z0-9-]+", "max_length": 30}});
    let actions = [
        scene.probing("print", &["print", SECRET]).with(json!({"params": secret})),
        scene.probing("complain", &["complain", SECRET]).with(json!({"params": secret})),
        scene.exec("fail", &["/nonexistent/x"]).with(json!({"params": secret})),
        scene.probing("content", &["stdin"]).with(json!({
            "params": {"s": {"type": "content", "secret": true, "max_length": 20}},
        })),
    ];
    let pair = scene.pair(&actions);
    let call = |tool: &str, value: &str| pair.call(tool, json!({"params": {"s": value}})).0.to_string();
    let mut answers = vec![
        call("print", SECRET),
        call("complain", SECRET),
        call("fail", SECRET),
        call("content", SECRET),
        call("print", &format!("{SECRET} {SECRET}")),
        call("print", &format!("-{SECRET}")),
        call("print", &SECRET.repeat(3)),
        call("content", &SECRET.repeat(3)),
        pair.call("print", json!({"params": {"s": {"x": SECRET}}})).0.to_string(),
        pair.call("print", json!({"params": {"s": [SECRET]}})).0.to_string(),
    ];
    assert!(answers[0].contains("[redacted]") && answers[1].contains("[redacted]"), "{answers:#?}");
    processes::wait_until("the refusals are recorded", Duration::from_secs(10), || {
        audit(&pair.state).lines().filter(|line| line.contains("\"decision\":\"refuse\"")).count() >= 4
    });
    answers.extend([audit(&pair.state), pair.log()]);
    for text in answers {
        // The program's own argv is the catalogue's, and recorded.
        let own = |word: &str| format!("\"{word}\",\"{SECRET}\"");
        assert!(!text.replace(&own("print"), "").replace(&own("complain"), "").contains(SECRET), "{text}");
    }
}
