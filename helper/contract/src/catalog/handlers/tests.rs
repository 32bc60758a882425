#![forbid(unsafe_code)]
//! What a catalogue may say of a handler, and what it may not.

use super::Action;

fn problem_of(text: &str) -> String {
    let action: Action = serde_json::from_str(text).unwrap();
    action.check().err().map(|error| format!("{}: {}", error.path, error.problem)).unwrap_or_default()
}

fn redis(params: &str, config: &str) -> String {
    problem_of(&format!(
        r#"{{"name": "a", "description": "d", "risk": "read", "params": {{{params}}},
            "builtin": "redis_command", "builtin_config": {{{config}}}}}"#
    ))
}

const COMMAND: &str = r#""command": {"type": "list", "items": {"type": "string"}}"#;

#[test]
fn a_complete_action_passes() {
    let config = r#""server": "127.0.0.1:6379", "commands": ["GET", "ttl"], "max_bytes": "64KiB", "db": 2"#;
    assert_eq!(redis(COMMAND, config), "");
    assert_eq!(redis(COMMAND, r#""server": "/run/redis/redis.sock""#), "");
    assert_eq!(redis(COMMAND, r#""server": "[::1]:6379""#), "");
}

#[test]
fn parameters_are_those_of_the_handler() {
    let server = r#""server": "h:1""#;
    assert!(redis("", server).starts_with("params.command: redis_command needs the parameter"));
    assert!(redis(r#""command": {"type": "string"}"#, server).starts_with("params.command.type: "));
    let more = format!(r#"{COMMAND}, "extra": {{"type": "string"}}"#);
    assert!(redis(&more, server).contains("has no parameter of that name; it has: command"));
}

#[test]
fn a_configuration_names_what_the_handler_has_and_only_tightens() {
    assert!(redis(COMMAND, r#""max_bytes": "1KB""#).starts_with("builtin_config.server: "));
    assert!(redis(COMMAND, r#""server": "h:1", "roots": ["/x"]"#).starts_with("builtin_config.roots: "));
    assert!(redis(COMMAND, r#""server": "h:1", "commands": ["SET"]"#).contains("it knows: GET"));
    assert!(redis(COMMAND, r#""server": "h:1", "max_bytes": "17MiB""#).contains("can only tighten"));
    assert!(redis(COMMAND, r#""server": "h:1", "max_bytes": "0B""#).contains("can only tighten"));
    for server in ["h", "h:", "h:0", "[::1]", "h:1/x", "u@h:1", "/run/../x", "127.1:1"] {
        let problem = redis(COMMAND, &format!(r#""server": "{server}""#));
        assert!(problem.starts_with("builtin_config.server: "), "{server}");
    }
    assert!(
        redis(COMMAND, r#""server": "h:1", "credential": "../x""#).starts_with("builtin_config.credential")
    );
}

#[test]
fn globs_urls_addresses_and_headers_are_read_when_the_catalogue_is_checked() {
    let files = |root: &str| {
        problem_of(&format!(
            r#"{{"name": "a", "description": "d", "risk": "read", "params": {{"path": {{"type": "string"}}}},
                "builtin": "read_file", "builtin_config": {{"read": ["{root}"]}}}}"#
        ))
    };
    assert_eq!(files("/home/ops/**"), "");
    for root in ["home", "/a/../b", "/a//b", "/a[b", "/a{b,c", "/a/"] {
        assert!(files(root).starts_with("builtin_config.read.0: "), "{root}");
    }
    let http = |config: &str| {
        problem_of(&format!(
            r#"{{"name": "a", "description": "d", "risk": "read", "params": {{"url": {{"type": "string"}}}},
                "builtin": "http_get", "builtin_config": {{"url_prefixes": ["https://h/api"], {config}}}}}"#
        ))
    };
    assert_eq!(http(r#""addresses": ["public", "10.0.0.0/8"], "headers": ["Accept", "X-Id"]"#), "");
    assert!(http(r#""addresses": ["any"]"#).starts_with("builtin_config.addresses.0: "));
    for header in ["Host", "content-length", "A B", "", "X:"] {
        assert!(http(&format!(r#""headers": ["{header}"]"#)).starts_with("builtin_config.headers.0: "));
    }
}

#[test]
fn every_limit_of_every_handler_has_a_ceiling_that_can_be_named_and_not_passed() {
    let text = r#""type": "string""#;
    let texts = r#""type": "list", "items": {"type": "string"}"#;
    // Handler, its one parameter, its one required key, and the limits: key, ceiling, more than that.
    let handlers = [
        (
            "log_search",
            format!(r#""paths": {{{texts}}}"#),
            r#""roots": ["/var/log"]"#,
            &[
                ("max_files", "10000", "10001"),
                ("max_scan", r#""16GiB""#, r#""17GiB""#),
                ("max_matches", "10000", "10001"),
                ("max_context", "100", "101"),
            ][..],
        ),
        (
            "mysql_query",
            format!(r#""sql": {{{text}}}"#),
            r#""server": "h:1""#,
            &[
                ("max_rows", "100000", "100001"),
                ("max_bytes", r#""16MiB""#, r#""17MiB""#),
                ("timeout", r#""60s""#, r#""61s""#),
            ],
        ),
        (
            "redis_command",
            format!(r#""command": {{{texts}}}"#),
            r#""server": "h:1""#,
            &[("max_bytes", r#""16MiB""#, r#""17MiB""#)],
        ),
        (
            "http_get",
            format!(r#""url": {{{text}}}"#),
            r#""url_prefixes": ["http://h/"]"#,
            &[("max_bytes", r#""16MiB""#, r#""17MiB""#)],
        ),
        (
            "read_file",
            format!(r#""path": {{{text}}}"#),
            r#""read": ["/srv"]"#,
            &[("max_bytes", r#""16MiB""#, r#""17MiB""#)],
        ),
        (
            "write_file",
            format!(r#""path": {{{text}}}, "content": {{"type": "content"}}"#),
            r#""write": ["/srv"]"#,
            &[("max_bytes", r#""16MiB""#, r#""17MiB""#)],
        ),
    ];
    for (handler, params, key, limits) in handlers {
        for (limit, most, more) in limits {
            let with = |value: &str| {
                problem_of(&format!(
                    r#"{{"name": "a", "description": "d", "risk": "read", "params": {{{params}}},
                        "builtin": "{handler}", "builtin_config": {{{key}, "{limit}": {value}}}}}"#
                ))
            };
            assert_eq!(with(most), "", "{handler}");
            let problem = with(more);
            assert!(problem.starts_with(&format!("builtin_config.{limit}: ")), "{handler}: {problem}");
            assert!(problem.ends_with("can only tighten"), "{handler}: {problem}");
        }
    }
}
