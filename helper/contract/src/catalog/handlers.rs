#![forbid(unsafe_code)]
//! What each built-in handler takes: its parameters, the keys of its configuration, and the ceilings that
//! a configuration can only tighten. The catalogue's check and the handlers themselves read the same tables.

use super::{Action, Builtin, BuiltinConfig, CommandEntry, Param, ParamType, is_name};
use crate::address::AddressClass;
use crate::limits;
use crate::plan::is_absolute_path;
use crate::units::{Bytes, Millis};
use crate::url::Url;

/// The commands that `redis_command` knows. Each only reads, and none blocks.
pub const REDIS_COMMANDS: [&str; 13] = [
    "GET", "MGET", "HGET", "HLEN", "TTL", "TYPE", "EXISTS", "STRLEN", "LLEN", "SCARD", "ZCARD", "SCAN",
    "INFO",
];

/// Request headers that no configuration can hand to a caller: they decide about the connection, the
/// framing or the name of the server.
const FIXED_HEADERS: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A limit that a configuration may lower: what holds without it, and the most that it can say.
struct Ceiling {
    default: u64,
    most: u64,
}

/// Files that one search opens.
const FILES: Ceiling = Ceiling { default: 100, most: 10_000 };
/// Bytes that one search reads, after decompression.
const SCAN: Ceiling = Ceiling { default: 1 << 30, most: limits::SCAN_MAX };
/// Matches that one search returns.
const MATCHES: Ceiling = Ceiling { default: 100, most: 10_000 };
/// Lines before and after a match.
const CONTEXT: Ceiling = Ceiling { default: 10, most: 100 };
/// Rows of one result.
const ROWS: Ceiling = Ceiling { default: 1000, most: 100_000 };
/// Bytes of a result, a body or a file's content.
const BYTES: Ceiling = Ceiling { default: 1 << 20, most: limits::OUTPUT_MAX };
/// Milliseconds of one statement on the server.
const STATEMENT: Ceiling = Ceiling { default: 10_000, most: 60_000 };

impl Ceiling {
    fn of(&self, configured: Option<u64>) -> u64 {
        configured.unwrap_or(self.default).min(self.most)
    }
}

/// The limits in force: as configured, never above the handler's own.
impl BuiltinConfig {
    /// Most files of a search.
    pub fn max_files(&self) -> u64 {
        FILES.of(self.max_files)
    }
    /// Most bytes of a search, after decompression.
    pub fn max_scan(&self) -> u64 {
        SCAN.of(self.max_scan.map(|bytes| bytes.0))
    }
    /// Most matches of a search.
    pub fn max_matches(&self) -> u64 {
        MATCHES.of(self.max_matches)
    }
    /// Most lines before and after a match.
    pub fn max_context(&self) -> u64 {
        CONTEXT.of(self.max_context)
    }
    /// Most rows of a query's result.
    pub fn max_rows(&self) -> u64 {
        ROWS.of(self.max_rows)
    }
    /// Most bytes of a result, a body or a file's content.
    pub fn max_bytes(&self) -> u64 {
        BYTES.of(self.max_bytes.map(|bytes| bytes.0))
    }
    /// Longest time of a statement on the server.
    pub fn statement_time(&self) -> Millis {
        Millis(STATEMENT.of(self.timeout.map(|time| time.0)))
    }
}

/// What a parameter of a handler may be declared as.
#[derive(Clone, Copy)]
enum Takes {
    /// `string`, or narrower: `enum`, `path`.
    Text,
    Integer,
    Boolean,
    Content,
    /// A list of texts.
    Texts,
    /// A list of any scalars.
    Scalars,
}

impl Takes {
    fn accepts(self, param: &Param) -> bool {
        let is_text = |kind| matches!(kind, ParamType::String | ParamType::Enum | ParamType::Path);
        match self {
            Self::Text => is_text(param.kind),
            Self::Integer => param.kind == ParamType::Integer,
            Self::Boolean => param.kind == ParamType::Boolean,
            Self::Content => param.kind == ParamType::Content,
            Self::Texts => param.items.as_ref().is_some_and(|item| is_text(item.kind)),
            Self::Scalars => param.kind == ParamType::List,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Text => "a string (or an enum or path)",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
            Self::Content => "of type content",
            Self::Texts => "a list of strings",
            Self::Scalars => "a list",
        }
    }
}

/// A handler's parameters and configuration keys, as DESIGN's table has them. Required ones stand first.
struct Form {
    required: &'static [(&'static str, Takes)],
    optional: &'static [(&'static str, Takes)],
    required_keys: &'static [&'static str],
    optional_keys: &'static [&'static str],
}

fn form(builtin: Builtin) -> Option<Form> {
    use Takes::{Boolean, Content, Integer, Scalars, Text, Texts};
    Some(match builtin {
        Builtin::Command => return None,
        Builtin::LogSearch => Form {
            required: &[("paths", Texts)],
            optional: &[
                ("pattern", Text),
                ("context", Integer),
                ("since", Text),
                ("until", Text),
                ("max_matches", Integer),
                ("order", Text),
            ],
            required_keys: &["roots"],
            optional_keys: &["max_files", "max_scan", "max_matches", "max_context"],
        },
        Builtin::MysqlQuery => Form {
            required: &[("sql", Text)],
            optional: &[("values", Scalars)],
            required_keys: &["server"],
            optional_keys: &["database", "credential", "max_rows", "max_bytes", "timeout"],
        },
        Builtin::RedisCommand => Form {
            required: &[("command", Texts)],
            optional: &[],
            required_keys: &["server"],
            optional_keys: &["credential", "db", "commands", "max_bytes"],
        },
        Builtin::HttpGet => Form {
            required: &[("url", Text)],
            optional: &[("headers", Texts)],
            required_keys: &["url_prefixes"],
            optional_keys: &["addresses", "max_bytes", "headers"],
        },
        Builtin::ReadFile => Form {
            required: &[("path", Text)],
            optional: &[("start_line", Integer), ("lines", Integer), ("offset", Integer), ("bytes", Integer)],
            required_keys: &["read"],
            optional_keys: &["max_bytes"],
        },
        Builtin::WriteFile => Form {
            required: &[("path", Text), ("content", Content)],
            optional: &[
                ("encoding", Text),
                ("append", Boolean),
                ("backup", Boolean),
                ("mode", Text),
                ("expect", Text),
                ("dry_run", Boolean),
            ],
            required_keys: &["write"],
            optional_keys: &["max_bytes"],
        },
    })
}

/// A key and what is wrong with it.
type Problem = (String, String);

fn problem<T>(path: impl Into<String>, text: impl Into<String>) -> Result<T, Problem> {
    Err((path.into(), text.into()))
}

/// Checks a built-in action's parameters and configuration.
pub(super) fn check(action: &Action, builtin: Builtin, config: &BuiltinConfig) -> Result<(), Problem> {
    let Some(form) = form(builtin) else {
        return Ok(());
    };
    check_params(action, builtin, &form)?;
    check_keys(builtin, &form, config)?;
    check_ceilings(config)?;
    for (key, globs) in [("roots", &config.roots), ("read", &config.read), ("write", &config.write)] {
        for (index, glob) in globs.iter().enumerate() {
            check_glob(&format!("builtin_config.{key}.{index}"), glob)?;
        }
    }
    if let Some(server) = &config.server {
        check_server(server)?;
    }
    if let Some(name) = config.credential.as_deref().filter(|name| !is_name(name)) {
        return problem(
            "builtin_config.credential",
            format!("`{name}` is no file name of /etc/gloveport/credentials: 1 to 64 of A-Z a-z 0-9 . _ -"),
        );
    }
    check_commands(config)?;
    check_http(config)
}

fn check_params(action: &Action, builtin: Builtin, form: &Form) -> Result<(), Problem> {
    let known = || form.required.iter().chain(form.optional);
    for (name, param) in action.params.iter() {
        let Some((_, takes)) = known().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = known().map(|(name, _)| *name).collect();
            return problem(
                format!("params.{name}"),
                format!("{} has no parameter of that name; it has: {}", builtin.as_str(), names.join(", ")),
            );
        };
        if !takes.accepts(param) {
            return problem(
                format!("params.{name}.type"),
                format!("{} needs `{name}` to be {}", builtin.as_str(), takes.expected()),
            );
        }
    }
    for (name, takes) in form.required {
        if action.params.get(name).is_none_or(|param| param.optional) {
            return problem(
                format!("params.{name}"),
                format!(
                    "{} needs the parameter `{name}`, {}, not optional",
                    builtin.as_str(),
                    takes.expected()
                ),
            );
        }
    }
    Ok(())
}

fn check_keys(builtin: Builtin, form: &Form, config: &BuiltinConfig) -> Result<(), Problem> {
    let given = [
        ("commands", !config.commands.is_empty()),
        ("roots", !config.roots.is_empty()),
        ("read", !config.read.is_empty()),
        ("write", !config.write.is_empty()),
        ("server", config.server.is_some()),
        ("database", config.database.is_some()),
        ("db", config.db.is_some()),
        ("credential", config.credential.is_some()),
        ("url_prefixes", !config.url_prefixes.is_empty()),
        ("addresses", !config.addresses.is_empty()),
        ("headers", !config.headers.is_empty()),
        ("max_files", config.max_files.is_some()),
        ("max_scan", config.max_scan.is_some()),
        ("max_matches", config.max_matches.is_some()),
        ("max_context", config.max_context.is_some()),
        ("max_rows", config.max_rows.is_some()),
        ("max_bytes", config.max_bytes.is_some()),
        ("timeout", config.timeout.is_some()),
    ];
    for (key, is_given) in given {
        let at = format!("builtin_config.{key}");
        if is_given && !form.required_keys.contains(&key) && !form.optional_keys.contains(&key) {
            let keys = [form.required_keys, form.optional_keys].concat().join(", ");
            return problem(at, format!("{} has no such key; it has: {keys}", builtin.as_str()));
        }
        if !is_given && form.required_keys.contains(&key) {
            return problem(at, format!("{} needs it", builtin.as_str()));
        }
    }
    Ok(())
}

fn check_ceilings(config: &BuiltinConfig) -> Result<(), Problem> {
    let bytes = |value: u64| Bytes(value).to_string();
    let number = |value: u64| value.to_string();
    check_ceiling("max_files", config.max_files, &FILES, number)?;
    check_ceiling("max_scan", config.max_scan.map(|size| size.0), &SCAN, bytes)?;
    check_ceiling("max_matches", config.max_matches, &MATCHES, number)?;
    check_ceiling("max_context", config.max_context, &CONTEXT, number)?;
    check_ceiling("max_rows", config.max_rows, &ROWS, number)?;
    check_ceiling("max_bytes", config.max_bytes.map(|size| size.0), &BYTES, bytes)?;
    check_ceiling("timeout", config.timeout.map(|time| time.0), &STATEMENT, |ms| Millis(ms).to_string())
}

fn check_ceiling(
    key: &str,
    value: Option<u64>,
    ceiling: &Ceiling,
    show: impl Fn(u64) -> String,
) -> Result<(), Problem> {
    // No context lines at all is a sensible wish; no files, rows or bytes is not.
    let least = u64::from(key != "max_context");
    match value {
        Some(value) if !(least..=ceiling.most).contains(&value) => problem(
            format!("builtin_config.{key}"),
            format!(
                "{} is not within {} to {}: a configuration can only tighten",
                show(value),
                show(least),
                show(ceiling.most)
            ),
        ),
        _ => Ok(()),
    }
}

fn check_glob(at: &str, glob: &str) -> Result<(), Problem> {
    if !is_absolute_path(glob) {
        return problem(at, format!("`{glob}` is not absolute without `.`, `..` and empty parts"));
    }
    let count = |c: char| glob.matches(c).count();
    if count('[') != count(']') || count('{') != count('}') || glob.contains('\\') {
        return problem(at, format!("`{glob}` is no glob: `*`, `?`, `**`, `[a-z]` and `{{a,b}}` are known"));
    }
    Ok(())
}

fn check_server(server: &str) -> Result<(), Problem> {
    let reachable = if server.starts_with('/') {
        is_absolute_path(server)
    } else {
        // An authority with a port of its own: a path would not end there, and no other scheme is needed.
        let has_port =
            server.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
        has_port && !server.contains('/') && Url::parse(&format!("http://{server}")).is_ok()
    };
    if reachable {
        Ok(())
    } else {
        problem("builtin_config.server", format!("`{server}` is neither host:port nor the path of a socket"))
    }
}

fn check_commands(config: &BuiltinConfig) -> Result<(), Problem> {
    for (index, entry) in config.commands.iter().enumerate() {
        let known = match entry {
            CommandEntry::Name(name) => REDIS_COMMANDS.iter().any(|known| known.eq_ignore_ascii_case(name)),
            CommandEntry::Rule(_) => false,
        };
        if !known {
            return problem(
                format!("builtin_config.commands.{index}"),
                format!("not a command of redis_command; it knows: {}", REDIS_COMMANDS.join(", ")),
            );
        }
    }
    Ok(())
}

fn check_http(config: &BuiltinConfig) -> Result<(), Problem> {
    for (index, prefix) in config.url_prefixes.iter().enumerate() {
        let at = format!("builtin_config.url_prefixes.{index}");
        match Url::parse(prefix) {
            Err(reason) => return problem(at, format!("`{prefix}`: {reason}")),
            Ok(url) if url.query.is_some() => return problem(at, "a prefix has no query"),
            Ok(_) => {}
        }
    }
    for (index, rule) in config.addresses.iter().enumerate() {
        if AddressClass::parse(&rule.0).is_none() {
            return problem(
                format!("builtin_config.addresses.{index}"),
                format!(
                    "`{}` is none of public, private, loopback, link_local and no block such as 10.0.0.0/8",
                    rule.0
                ),
            );
        }
    }
    for (index, name) in config.headers.iter().enumerate() {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty()
            || !name.bytes().all(token)
            || FIXED_HEADERS.iter().any(|h| h.eq_ignore_ascii_case(name))
        {
            return problem(
                format!("builtin_config.headers.{index}"),
                format!("`{name}` is no header that a caller could choose"),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let config =
            r#""server": "127.0.0.1:6379", "commands": ["GET", "ttl"], "max_bytes": "64KiB", "db": 2"#;
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
            redis(COMMAND, r#""server": "h:1", "credential": "../x""#)
                .starts_with("builtin_config.credential")
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
}
