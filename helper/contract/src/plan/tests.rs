//! From a call to an argv: the boundaries of parameters and placeholders.

use super::{SCRIPT_PLACE, is_absolute_path, is_under, plan, whole_pattern};
use crate::catalog::Action;
use crate::limits;
use crate::packet::{Argument, Content, Scalar, Value};
use proptest::prelude::*;
use std::time::Duration;

/// An action that starts `/bin/x` with these arguments and has these parameters.
fn action(exec: &str, params: &str) -> Action {
    with(&format!(r#""exec": ["/bin/x"{exec}], "params": {{{params}}}"#))
}

fn with(rest: &str) -> Action {
    let text = format!(r#"{{"name": "a", "description": "d", "risk": "read", {rest}}}"#);
    let action: Action = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    action.check().unwrap_or_else(|error| panic!("{error}: {text}"));
    action
}

fn arg(name: &str, value: impl Into<Value>) -> Argument {
    Argument { name: name.into(), value: value.into() }
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|item| Scalar::Text(item.as_bytes().to_vec())).collect())
}

/// The argv behind the program, joined by bars; or what is wrong.
fn rendered(action: &Action, args: &[Argument]) -> Result<String, String> {
    let plan = plan(action, args, None).map_err(|refusal| refusal.to_string())?;
    let argv: Vec<_> =
        plan.steps[0].argv[1..].iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
    Ok(argv.join("|"))
}

/// Whether one value of a parameter `x` of that declaration is taken; what is wrong with it else.
fn takes(declaration: &str, value: impl Into<Value>) -> Result<(), String> {
    rendered(&action(r#", "{x}""#, &format!(r#""x": {{{declaration}}}"#)), &[arg("x", value)]).map(|_| ())
}

#[test]
fn a_placeholder_is_one_element_whatever_it_holds() {
    let action =
        action(r#", "--unit", "{x}", "{ y }", "a{b}c""#, r#""x": {"type": "string", "pattern": "(?s).*"}"#);
    for value in ["nginx", "a b", "a;b|c", "$(id)", "'\"", "{x}", "é日\u{202e}", "a\nb", ""] {
        assert_eq!(rendered(&action, &[arg("x", value)]), Ok(format!("--unit|{value}|{{ y }}|a{{b}}c")));
    }
}

#[test]
fn an_optional_group_stands_or_falls_as_a_whole() {
    let action = action(
        r#", ["-n", "{n}"], ["{a}", "{b}"], ["--all", "{all}"], ["-u", "{list}"], "end""#,
        r#""n": {"type": "integer", "optional": true}, "a": {"type": "string", "optional": true},
           "b": {"type": "string", "optional": true}, "all": {"type": "boolean", "optional": true},
           "list": {"type": "list", "items": {"type": "string"}, "optional": true}"#,
    );
    let cases: [(&[Argument], &str); 9] = [
        (&[], "end"),
        (&[arg("n", Value::Integer(0))], "-n|0|end"),
        (&[arg("n", Value::Null)], "end"),
        (&[arg("a", "x")], "end"),
        (&[arg("b", "y"), arg("a", "x")], "x|y|end"),
        (&[arg("all", Value::Boolean(true))], "--all|end"),
        (&[arg("all", Value::Boolean(false))], "end"),
        (&[arg("list", list(&["p", "q"]))], "-u|p|q|end"),
        (&[arg("list", list(&[]))], "end"),
    ];
    for (args, expected) in cases {
        assert_eq!(rendered(&action, args), Ok(expected.to_owned()), "{args:?}");
    }
}

#[test]
fn a_default_stands_where_nothing_or_null_is_given() {
    let action = action(
        r#", "{n}", "{b}", "{l}""#,
        r#""n": {"type": "integer", "default": 7}, "b": {"type": "boolean", "default": false},
           "l": {"type": "list", "items": {"type": "integer"}, "default": [1, 2]}"#,
    );
    assert_eq!(rendered(&action, &[]), Ok("7|false|1|2".into()));
    assert_eq!(
        rendered(&action, &[arg("n", Value::Null), arg("b", Value::Boolean(true))]),
        Ok("7|true|1|2".into())
    );
}

#[test]
fn arguments_are_known_given_once_and_given_where_required() {
    let action = action(r#", "{x}""#, r#""x": {"type": "string"}"#);
    assert_eq!(rendered(&action, &[]), Err("x: required".into()));
    assert_eq!(rendered(&action, &[arg("x", Value::Null)]), Err("x: required".into()));
    assert_eq!(rendered(&action, &[arg("y", "")]), Err("y: not a parameter of `a`; it has: x".into()));
    assert_eq!(rendered(&action, &[arg("x", "a"), arg("x", "a")]), Err("x: given twice".into()));
    assert!(rendered(&action, &vec![arg("x", "a"); 129]).unwrap_err().contains("at most 128"));
}

#[test]
fn a_text_has_its_boundaries() {
    let string = r#""type": "string""#;
    for value in ["", "a", "é".repeat(1024).as_str(), " a", "a-"] {
        assert_eq!(takes(string, value), Ok(()), "{value}");
    }
    let cases = [
        ("é".repeat(1025), "x: 1025 characters long; at most 1024"),
        ("-a".to_owned(), "x: begins with `-`, which a program would read as an option"),
        ("-".to_owned(), "x: begins with `-`, which a program would read as an option"),
        ("a\0b".to_owned(), "x: holds NUL at byte 1"),
        ("a\nb".to_owned(), "x: holds a control character at position 1"),
        ("é\u{85}".to_owned(), "x: holds a control character at position 1"),
        ("x".repeat(300 * 1024), "x: 307200 bytes; one argument takes at most 131071"),
    ];
    for (value, expected) in cases {
        assert_eq!(takes(string, value.as_str()), Err(expected.into()));
    }
    assert_eq!(takes(string, Value::Text(vec![0xff])), Err("x: not UTF-8".into()));
    assert_eq!(takes(string, Value::Integer(1)), Err("x: must be of type string, not an integer".into()));
    assert_eq!(takes(r#""type": "string", "allow_dash": true"#, "-a"), Ok(()));

    let bounded = r#""type": "string", "min_length": 2, "max_length": 3"#;
    assert_eq!(takes(bounded, "éé"), Ok(()));
    assert_eq!(takes(bounded, "é"), Err("x: 1 characters long; at least 2".into()));
    assert_eq!(takes(bounded, "éééé"), Err("x: 4 characters long; at most 3".into()));

    let largest = r#""type": "string", "max_length": 200000"#;
    assert_eq!(takes(largest, "x".repeat(limits::ARGUMENT).as_str()), Ok(()));
    assert!(takes(largest, "x".repeat(limits::ARGUMENT + 1).as_str()).is_err(), "execve(2) takes no more");
}

#[test]
fn a_pattern_matches_the_whole_value() {
    let unit = r#""type": "string", "pattern": "[a-z]+|x y""#;
    for (value, is_taken) in
        [("abc", true), ("x y", true), ("abc1", false), ("1abc", false), ("abc\n", false), ("", false)]
    {
        assert_eq!(takes(unit, value).is_ok(), is_taken, "{value:?}");
    }
    assert_eq!(takes(unit, "1").unwrap_err(), "x: does not match the pattern [a-z]+|x y");
    assert!(takes(r#""type": "string", "pattern": "(?m)^a$""#, "a\nb").is_err());
    for pattern in ["a)(b", "(", "[", "a{2", "\\", "(?x)a#", "\\w{1000}{1000}", "(?=a)", "\\1"] {
        assert!(whole_pattern(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn a_number_has_its_range() {
    let plain = r#""type": "integer""#;
    assert_eq!(takes(plain, Value::Integer(0)), Ok(()));
    assert_eq!(takes(plain, Value::Integer(i64::MAX)), Ok(()));
    assert_eq!(takes(plain, Value::Integer(-1)), Err("x: -1 is below 0".into()));
    let ranged = r#""type": "integer", "min": -5, "max": 5"#;
    for (number, is_taken) in [(-6, false), (-5, true), (5, true), (6, false), (i64::MIN, false)] {
        assert_eq!(takes(ranged, Value::Integer(number)).is_ok(), is_taken, "{number}");
    }
    assert_eq!(takes(r#""type": "integer", "allow_dash": true"#, Value::Integer(i64::MIN)), Ok(()));
    assert!(takes(plain, "5").is_err() && takes(plain, Value::Boolean(true)).is_err());
}

#[test]
fn an_enum_and_a_boolean_take_their_values_only() {
    let choice = r#""type": "enum", "values": ["a", "b"]"#;
    assert_eq!(takes(choice, "b"), Ok(()));
    assert_eq!(takes(choice, "B"), Err("x: must be one of: a, b".into()));
    assert_eq!(takes(choice, ""), Err("x: must be one of: a, b".into()));
    let switch = r#""type": "boolean""#;
    assert_eq!(takes(switch, Value::Boolean(false)), Ok(()));
    assert!(takes(switch, "true").is_err() && takes(switch, Value::Integer(1)).is_err());
}

#[test]
fn a_path_lies_under_its_roots_at_a_component_boundary() {
    let path = r#""type": "path", "roots": ["/srv/app", "/tmp"]"#;
    for value in ["/srv/app", "/srv/app/x", "/tmp/a b", "/tmp/...", "/tmp/-x", "/srv/app/.hidden"] {
        assert_eq!(takes(path, value), Ok(()), "{value}");
    }
    for value in [
        "/srv/app-evil",
        "/srv/app2/x",
        "/srv",
        "/",
        "/etc/passwd",
        "/srv/app/../x",
        "/srv/app/./x",
        "/srv/app//x",
        "/srv/app/",
        "//srv/app/x",
        "srv/app/x",
        "",
        "./x",
        "../x",
        "/srv/app/..",
        "/SRV/app",
        "/proc/self/root/srv/app",
    ] {
        assert!(takes(path, value).is_err(), "{value}");
    }
    assert!(takes(path, "/tmp/a\0b").is_err());
    let longest = format!("/tmp/{}", "x".repeat(4090));
    assert_eq!(takes(path, longest.as_str()), Ok(()));
    assert!(takes(path, format!("{longest}x").as_str()).is_err());
    assert_eq!(takes(r#""type": "path", "roots": ["/"]"#, "/etc/passwd"), Ok(()));
    assert!(is_absolute_path("/") && !is_absolute_path("/a/") && !is_absolute_path(""));
    assert!(is_under("/a", "/a") && is_under("/a/b", "/a") && !is_under("/ab", "/a") && is_under("/ab", "/"));
}

#[test]
fn paths_are_handed_on_to_be_looked_at_as_run_as() {
    let action = action(
        r#", "{p}", "{l}""#,
        r#""p": {"type": "path", "roots": ["/tmp"], "must_exist": true},
           "l": {"type": "list", "items": {"type": "path", "roots": ["/srv"]}}"#,
    );
    let args = [arg("p", "/tmp/x"), arg("l", list(&["/srv/a", "/srv/b"]))];
    let paths = plan(&action, &args, None).unwrap().paths;
    let seen: Vec<_> = paths.iter().map(|path| (path.name, path.path.as_str(), path.must_exist)).collect();
    assert_eq!(seen, [("p", "/tmp/x", true), ("l", "/srv/a", false), ("l", "/srv/b", false)]);
}

#[test]
fn a_list_is_bounded_and_each_item_is_checked() {
    let plain = r#""type": "list", "items": {"type": "string"}"#;
    assert_eq!(takes(plain, list(&["a"; 64])), Ok(()));
    assert_eq!(takes(plain, list(&["a"; 65])), Err("x: 65 items; at most 64".into()));
    assert!(takes(plain, list(&["a", "-b"])).unwrap_err().contains("begins with `-`"));
    assert!(takes(plain, Value::List(vec![Scalar::Integer(1)])).is_err());
    assert!(takes(plain, "a").is_err());
    let few = r#""type": "list", "items": {"type": "integer"}, "min_items": 1, "max_items": 5000"#;
    assert_eq!(takes(few, Value::List(vec![])), Err("x: 0 items; at least 1".into()));
    assert_eq!(takes(few, Value::List(vec![Scalar::Integer(1); 1024])), Ok(()));
    assert!(takes(few, Value::List(vec![Scalar::Integer(1); 1025])).is_err());
}

#[test]
fn an_argv_has_a_largest_size() {
    let items = r#", "{x}", "{x}", "{x}", "{x}""#;
    let action = action(items, r#""x": {"type": "list", "items": {"type": "integer"}, "max_items": 1024}"#);
    let args = |count| [arg("x", Value::List(vec![Scalar::Integer(1); count]))];
    assert!(rendered(&action, &args(1023)).is_ok());
    assert!(rendered(&action, &args(1024)).unwrap_err().contains("at most 4096"));
}

#[test]
fn content_is_declared_and_taken_where_the_action_has_it() {
    let action = with(
        r#""exec": ["/bin/x"], "params": {"c": {"type": "content", "max_length": 10, "min_length": 2}}"#,
    );
    let content = |length| Some(Content { length, sha256: [0; 32] });
    let problem =
        |length| plan(&action, &[], content(length).as_ref()).map(|_| ()).map_err(|r| r.to_string());
    assert_eq!(problem(2), Ok(()));
    assert_eq!(problem(10), Ok(()));
    assert_eq!(problem(1), Err("c: 1 bytes long; at least 2".into()));
    assert_eq!(problem(11), Err("c: 11 bytes long; at most 10".into()));
    assert_eq!(plan(&action, &[], None).unwrap_err().to_string(), "c: required");
    let without = with(r#""exec": ["/bin/x"]"#);
    assert!(plan(&without, &[], content(1).as_ref()).unwrap_err().to_string().contains("takes no content"));
}

#[test]
fn a_timeout_from_a_parameter_is_clamped() {
    let action = with(
        r#""exec": ["/bin/x"], "params": {"t": {"type": "integer", "optional": true}},
           "timeout": {"param": "t", "default": "30s", "max": "120s"}"#,
    );
    let timeout = |args: &[Argument]| plan(&action, args, None).unwrap().timeout;
    assert_eq!(timeout(&[]), Duration::from_secs(30));
    for (given, expected) in [(0, 1), (1, 1), (120, 120), (121, 120), (i64::MAX, 120)] {
        assert_eq!(timeout(&[arg("t", Value::Integer(given))]), Duration::from_secs(expected), "{given}");
    }
}

#[test]
fn a_directory_from_a_parameter_lies_under_its_roots() {
    let action = with(
        r#""exec": ["/bin/x"], "params": {"d": {"type": "string", "optional": true}},
           "cwd": {"param": "d", "roots": ["/srv"]}"#,
    );
    let directory =
        |args: &[Argument]| plan(&action, args, None).map(|plan| plan.cwd.path).map_err(|r| r.to_string());
    assert_eq!(directory(&[]), Ok("/".into()));
    assert_eq!(directory(&[arg("d", "/srv/x")]), Ok("/srv/x".into()));
    for outside in ["/srv-evil", "/srv/../etc", "srv", "/etc", "/srv/"] {
        assert!(directory(&[arg("d", outside)]).is_err(), "{outside}");
    }
}

#[test]
fn python_runs_isolated_and_the_script_has_its_place() {
    let argv = |interpreter: &str| {
        let action = with(&format!(
            r#""script": {{"file": "s", "interpreter": "{interpreter}", "args": ["{{x}}"], "body": "b"}},
               "params": {{"x": {{"type": "string"}}}}"#
        ));
        rendered(&action, &[arg("x", "v")]).unwrap()
    };
    assert_eq!(argv("/usr/bin/python3"), format!("-I|{SCRIPT_PLACE}|v"));
    assert_eq!(argv("/usr/bin/python3.11"), format!("-I|{SCRIPT_PLACE}|v"));
    assert_eq!(argv("/bin/sh"), format!("{SCRIPT_PLACE}|v"));
    assert_eq!(argv("/usr/bin/pythonic"), format!("{SCRIPT_PLACE}|v"));
}

proptest! {
    /// A value never changes the number of elements, and never becomes part of another.
    #[test]
    fn a_value_stays_within_its_element(value in any::<String>()) {
        let action = action(r#", "a", "{x}", "b""#, r#""x": {"type": "string", "pattern": "(?s).*", "max_length": 100000}"#);
        if let Ok(plan) = plan(&action, &[arg("x", value.as_str())], None) {
            let argv: Vec<&[u8]> = plan.steps[0].argv.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(argv, [b"/bin/x".as_slice(), b"a", value.as_bytes(), b"b"]);
            prop_assert!(!value.contains('\0') && !value.starts_with('-'));
        }
    }

    /// Whatever is taken as a path under a root has that root's components in front, and no way out.
    #[test]
    fn a_path_that_is_taken_stays_under_its_root(value in "(/srv/app)?[/.a-z\u{0}-]{0,20}") {
        if takes(r#""type": "path", "roots": ["/srv/app"]"#, value.as_str()).is_ok() {
            prop_assert!(value == "/srv/app" || value.starts_with("/srv/app/"));
            prop_assert!(!value.split('/').any(|part| part == ".." || part == "."));
        }
    }
}
