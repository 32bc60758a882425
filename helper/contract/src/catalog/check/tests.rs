//! What a catalogue must fulfil: each refusal with its key, and the nearest thing that is permitted.

use super::is_name;
use crate::catalog::{Action, Catalog};

/// The key that is refused, or an empty text.
fn refused(rest: &str) -> String {
    let text = format!(r#"{{"name": "a", "description": "d", "risk": "dangerous", {rest}}}"#);
    let action: Action = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    match action.check() {
        Ok(()) => String::new(),
        Err(error) if error.path.is_empty() => "(action)".to_owned(),
        Err(error) => error.path,
    }
}

fn all(cases: &[(&str, &str)]) {
    for (rest, key) in cases {
        assert_eq!(refused(rest), *key, "{rest}");
    }
}

const EXEC: &str = r#""exec": ["/bin/x"]"#;

/// The same beside an `exec`.
fn beside_exec(cases: &[(&str, &str)]) {
    for (rest, key) in cases {
        assert_eq!(refused(&format!("{EXEC}, {rest}")), *key, "{rest}");
    }
}

#[test]
fn an_action_starts_exactly_one_thing() {
    all(&[
        (EXEC, ""),
        (r#""title": "t""#, "(action)"),
        (r#""exec": ["/bin/x"], "steps": [{"name": "s", "exec": ["/bin/x"]}]"#, "(action)"),
        (r#""steps": [{"name": "s", "exec": ["/bin/x"]}]"#, ""),
        (r#""steps": []"#, "steps"),
        (r#""steps": [{"name": "s s", "exec": ["/bin/x"]}]"#, "steps.0.name"),
        (
            r#""steps": [{"name": "s", "exec": ["/bin/x"]}, {"name": "s", "exec": ["/bin/x"]}]"#,
            "steps.0.name",
        ),
        (r#""steps": [{"name": "s", "exec": ["x"]}]"#, "steps.0.exec"),
        (r#""steps": [{"name": "s", "exec": ["/bin/x"]}], "exec_fallbacks": ["/x"]"#, "exec_fallbacks"),
        (r#""exec": []"#, "exec"),
        (r#""exec": [["/bin/x"]]"#, "exec"),
        (r#""exec": ["/bin/../x"]"#, "exec"),
        (r#""exec": ["/bin/sh", "-c", "id"]"#, "exec.0"),
        (r#""exec": ["/bin/sh"], "allow_interpreter": true"#, ""),
        (r#""exec": ["/bin/x"], "exec_fallbacks": ["/usr/bin/python3.11"]"#, "exec_fallbacks.0"),
        (r#""exec": ["/bin/x"], "exec_fallbacks": ["/usr/bin/x"]"#, ""),
        (r#""script": {"file": "s", "interpreter": "sh"}"#, "script.interpreter"),
        (r#""builtin": "read_file""#, "builtin_config"),
        (r#""exec": ["/bin/x"], "builtin_config": {}"#, "builtin_config"),
    ]);
}

#[test]
fn a_placeholder_is_a_whole_element_and_known() {
    let params = r#""params": {"u": {"type": "string", "optional": true}, "s": {"type": "string", "secret": true},
                   "c": {"type": "content"}, "d": {"type": "string", "default": "x"}}"#;
    for (exec, key) in [
        (r#"["{u}"]"#, ""),
        (r#""{u}""#, "exec.1"),
        (r#""{d}""#, ""),
        (r#""--x={d}""#, "exec.1"),
        (r#""{other}""#, "exec.1"),
        (r#""{ other }""#, ""),
        (r#""{s}""#, "exec.1"),
        (r#"["{c}"]"#, "exec.1"),
        (r#"["--all"]"#, "exec.1"),
        (r#"["--x", "{u}"], "b""#, ""),
        (r#""a\u0000""#, "exec.1"),
    ] {
        assert_eq!(refused(&format!(r#""exec": ["/bin/x", {exec}], {params}"#)), key, "{exec}");
    }
}

#[test]
fn a_parameter_has_the_keys_of_its_type() {
    for (param, key) in [
        (r#""type": "integer", "min": 5, "max": 4"#, "params.p.min"),
        (r#""type": "integer", "pattern": "x""#, "params.p.pattern"),
        (r#""type": "integer", "default": 5, "max": 4"#, "params.p.default"),
        (r#""type": "string", "min": 1"#, "params.p.min"),
        (r#""type": "string", "pattern": "(""#, "params.p.pattern"),
        (r#""type": "string", "default": "-x""#, "params.p.default"),
        (r#""type": "string", "default": "x", "optional": true"#, "params.p.optional"),
        (r#""type": "string", "min_length": 3, "max_length": 2"#, "params.p.min_length"),
        (r#""type": "boolean", "allow_dash": true"#, "params.p.allow_dash"),
        (r#""type": "enum""#, "params.p.values"),
        (r#""type": "enum", "values": ["a"], "default": "b""#, "params.p.default"),
        (r#""type": "path""#, "params.p.roots"),
        (r#""type": "path", "roots": ["x"]"#, "params.p.roots"),
        (r#""type": "path", "roots": ["/tmp"], "default": "/tmpx""#, "params.p.default"),
        (r#""type": "list""#, "params.p.items"),
        (r#""type": "list", "items": {"type": "list"}"#, "params.p.items.type"),
        (r#""type": "list", "items": {"type": "string", "optional": true}"#, "params.p.items"),
        (r#""type": "list", "items": {"type": "string", "max": 1}"#, "params.p.items.max"),
        (r#""type": "content", "default": "x""#, "params.p.default"),
        (r#""type": "list", "items": {"type": "integer"}, "default": [1], "max_items": 1"#, ""),
        (r#""type": "path", "roots": ["/"], "must_exist": true, "default": "/etc""#, ""),
    ] {
        beside_exec(&[(&format!(r#""params": {{"p": {{{param}}}}}"#), key)]);
    }
    beside_exec(&[
        (r#""params": {"p-q": {"type": "string"}}"#, "params.p-q"),
        (r#""params": {"a": {"type": "content"}, "b": {"type": "content"}}"#, "params"),
    ]);
}

#[test]
fn the_surroundings_are_within_their_bounds() {
    beside_exec(&[
        (r#""timeout": "0s""#, "timeout"),
        (r#""timeout": "3601s""#, "timeout"),
        (r#""timeout": "1h""#, ""),
        (r#""timeout": {"param": "t", "default": "1s", "max": "2s"}"#, "timeout.param"),
        (
            r#""params": {"t": {"type": "integer"}}, "timeout": {"param": "t", "default": "3s", "max": "2s"}"#,
            "timeout.default",
        ),
        (r#""cwd": "srv""#, "cwd"),
        (r#""cwd": {"param": "d", "roots": ["/srv"]}"#, "cwd.param"),
        (r#""run_as": """#, "run_as"),
        (r#""run_as": "-x""#, "run_as"),
        (r#""run_as": "1000""#, "run_as"),
        (r#""run_as": "1000:1000""#, ""),
        (r#""run_as": "4294967295:0""#, "run_as"),
        (r#""groups": ["a b"]"#, "groups.0"),
        (r#""groups": ["?systemd-journal", "27"]"#, ""),
        (r#""env": {"A": "b", "_X1": "\n"}"#, ""),
        (r#""env": {"1A": "b"}"#, "env.1A"),
        (r#""env": {"LD_PRELOAD": "x"}"#, "env.LD_PRELOAD"),
        (r#""env": {"PYTHONPATH": "x"}"#, "env.PYTHONPATH"),
        (r#""env": {"A": "\u0000"}"#, "env.A"),
        (r#""limits": {"open_files": 15}"#, "limits.open_files"),
        (r#""limits": {"processes": 0}"#, "limits.processes"),
        (r#""limits": {"memory": "1KB"}"#, "limits.memory"),
        (r#""limits": {"cpu_percent": 0}"#, "limits.cpu_percent"),
        (r#""limits": {"cpu_percent": 250}"#, ""),
        (r#""concurrency": 0"#, "concurrency"),
        (r#""max_output": "17MiB""#, "max_output"),
        (r#""approval_timeout": "25h""#, "approval_timeout"),
        (r#""keep_result": "5m""#, "keep_result"),
        (r#""on_disconnect": "finish", "keep_result": "25h""#, "keep_result"),
        (r#""filters": ["tail", "tail"]"#, "filters.0"),
        (
            r#""arguments": "flat", "params": {"tail": {"type": "integer", "optional": true}}, "filters": ["tail"]"#,
            "filters.0",
        ),
        (r#""redact": {"builtin": ["x"]}"#, "redact.builtin"),
        (r#""sandbox": {"read": ["?/x", "y"]}"#, "sandbox.read.1"),
        (r#""sandbox": {"write": ["/x/"]}"#, "sandbox.write.0"),
        (r#""sandbox": {"exec": ["x"]}"#, "sandbox.exec"),
        (r#""sandbox": {"network": [{"connect": []}]}"#, "sandbox.network"),
        (r#""sandbox": {"network": [{"connect": [0]}]}"#, "sandbox.network"),
        (r#""sandbox": {"bounding": ["sys_admin"]}"#, "sandbox.bounding"),
    ]);
}

#[test]
fn a_socket_of_the_host_as_root_is_meant_or_refused() {
    let unix = r#""sandbox": {"network": ["unix"]}"#;
    for (identity, key) in [
        (r#""run_as": "web""#, ""),
        (r#""run_as": "root""#, "sandbox.network"),
        (r#""run_as": "0:0""#, "sandbox.network"),
        (r#""groups": ["?docker"]"#, "sandbox.network"),
        (r#""groups": ["adm"]"#, ""),
        (r#""run_as": "root", "host_root": true"#, ""),
    ] {
        beside_exec(&[(&format!("{identity}, {unix}"), key)]);
    }
    let step = format!(r#""run_as": "root", "steps": [{{"name": "s", "exec": ["/bin/x"], {unix}}}]"#);
    assert_eq!(refused(&step), "steps.0.sandbox.network");
    let mild = r#"{"name": "a", "description": "d", "risk": "write", "exec": ["/bin/x"], "host_root": true}"#;
    let mild: Action = serde_json::from_str(mild).unwrap();
    assert_eq!(mild.check().unwrap_err().path, "host_root");
}

#[test]
fn the_rules_of_a_command_make_sense() {
    let at = "builtin_config.commands.0";
    for (rule, key) in [
        (r#""short": "ln:b::""#, String::new()),
        (r#""short": ":a""#, format!("{at}.short")),
        (r#""short": "a:::""#, format!("{at}.short")),
        (r#""short": "a b""#, format!("{at}.short")),
        (r#""short": "a-""#, format!("{at}.short")),
        (r#""short": "Hi:I""#, String::new()),
        (r#""short": "Ii:I:""#, format!("{at}.short")),
        (r#""long": ["color", "color=?"]"#, format!("{at}.long")),
        (r#""long": ["--all"]"#, format!("{at}.long")),
        (r#""single_dash": ["name:"]"#, format!("{at}.single_dash")),
        (r#""single_dash": ["-name:"], "short": "a""#, format!("{at}.single_dash")),
        (r#""operand": "(""#, format!("{at}.operand")),
        (r#""any": true"#, String::new()),
        (r#""any": true, "short": "a""#, format!("{at}.any")),
        (r#""exec_fallbacks": ["/bin/bash"]"#, format!("{at}.exec")),
        (r#""exec_fallbacks": ["/bin/bash"], "allow_interpreter": true"#, String::new()),
    ] {
        let rest = format!(
            r#""builtin": "command", "params": {{"command": {{"type": "string"}}}},
               "builtin_config": {{"commands": [{{"name": "x", "exec": "/bin/x", {rule}}}]}}"#
        );
        assert_eq!(refused(&rest), key, "{rule}");
    }
    let twice = r#""builtin": "command", "params": {"command": {"type": "string"}}, "builtin_config":
                   {"commands": [{"name": "x", "exec": "/bin/x"}, {"name": "x", "exec": "/bin/y"}]}"#;
    assert_eq!(refused(twice), "builtin_config.commands.1.name");
    assert_eq!(refused(r#""builtin": "command""#), "builtin_config.commands");
}

#[test]
fn a_run_has_one_temporary_directory_of_a_bounded_size() {
    let check = |rest: &str| {
        let text = format!(r#"{{"name": "a", "description": "d", "risk": "read", {rest}}}"#);
        let action: Action = serde_json::from_str(&text).unwrap();
        action.check().map_err(|error| (error.path, error.problem))
    };
    let sized = |size: &str| check(&format!(r#"{EXEC}, "sandbox": {{"private_tmp": "{size}"}}"#));
    for size in ["4KiB", "1MB", "1GiB"] {
        assert_eq!(sized(size), Ok(()), "{size}");
    }
    // Nothing would mean no limit to the kernel.
    for size in ["0", "4095", "1025MiB"] {
        assert_eq!(sized(size).unwrap_err().0, "sandbox.private_tmp", "{size}");
    }
    let steps = |sizes: [&str; 2]| {
        let step = |name: &str, size: &str| {
            format!(r#"{{"name": "{name}", "exec": ["/bin/true"], "sandbox": {{{size}}}}}"#)
        };
        check(&format!(r#""steps": [{}, {}]"#, step("a", sizes[0]), step("b", sizes[1])))
    };
    let megabyte = r#""private_tmp": "1MB""#;
    assert_eq!(steps([megabyte, megabyte]), Ok(()));
    assert_eq!(steps(["", megabyte]), Ok(()));
    assert_eq!(steps([megabyte, r#""private_tmp": "2MB""#]).unwrap_err().0, "steps.1.sandbox.private_tmp");
    let variable = format!(r#"{EXEC}, "env": {{"TMPDIR": "/srv"}}"#);
    assert_eq!(check(&variable), Ok(()));
    let both = format!(r#"{variable}, "sandbox": {{{megabyte}}}"#);
    assert_eq!(check(&both).unwrap_err().0, "env.TMPDIR");
}

#[test]
fn a_catalogue_is_sorted_of_a_known_format_and_carries_its_scripts() {
    let action = |name: &str| format!(r#"{{"name": "{name}", "description": "d", "risk": "read", {EXEC}}}"#);
    let check =
        |text: String| serde_json::from_str::<Catalog>(&text).unwrap().check().map_err(|e| e.to_string());
    let of = |names: &[&str]| {
        let actions: Vec<String> = names.iter().map(|name| action(name)).collect();
        check(format!(r#"{{"format": 1, "actions": [{}]}}"#, actions.join(",")))
    };
    assert_eq!(of(&["a", "b"]), Ok(()));
    assert!(of(&["b", "a"]).unwrap_err().contains("`a` stands twice or out of order"));
    assert!(of(&["a", "a"]).unwrap_err().contains("stands twice"));
    assert!(of(&["a b"]).unwrap_err().contains("action `a b`, name"));
    assert!(check(r#"{"format": 2, "actions": []}"#.into()).unwrap_err().contains("format 2 is not known"));
    let script = |more: &str| {
        check(format!(
            r#"{{"format": 1, "actions": [{{"name": "a", "description": "d", "risk": "read",
                "script": {{"file": "s", "interpreter": "/bin/sh" {more}}}}}]}}"#
        ))
    };
    assert!(script("").unwrap_err().contains("catalog build"));
    assert!(script(r#", "body": "id", "sha256": "00""#).unwrap_err().contains("digest"));
    let digest = crate::catalog::hex(&hmac_sha256::Hash::hash(b"id"));
    assert_eq!(script(&format!(r#", "body": "id", "sha256": "{digest}""#)), Ok(()));
}

#[test]
fn unknown_and_repeated_keys_are_errors() {
    for text in [
        r#"{"format": 1, "actions": [], "x": 1}"#,
        r#"{"format": 1, "format": 1, "actions": []}"#,
        r#"{"format": 1, "actions": [{"name": "a", "description": "d", "risk": "read", "timeout_seconds": 5}]}"#,
        r#"{"format": 1, "actions": [{"name": "a", "name": "a", "description": "d", "risk": "read"}]}"#,
        r#"{"format": 1, "actions": [{"name": "a", "description": "d", "risk": "read",
            "params": {"x": {"type": "string"}, "x": {"type": "string"}}}]}"#,
        r#"{"format": 1, "actions": [{"name": "a", "description": "d", "risk": "read", "limits": {"cpus": 1}}]}"#,
    ] {
        assert!(serde_json::from_str::<Catalog>(text).is_err(), "{text}");
    }
}

#[test]
fn a_name_is_that_of_a_tool() {
    for name in ["a", "A-b_c.9", "-", &"x".repeat(64)] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", "a b", "é", "a/b", "a\n", &"x".repeat(65)] {
        assert!(!is_name(name), "{name}");
    }
}
