#![forbid(unsafe_code)]
//! JSON Schemas (2020-12) of a tool: its input from the action's parameters, and the one output that all
//! actions with the full result have. Bounds stand in keywords for programs and in words for models.

use super::arguments::{self, PATTERN_LENGTH};
use super::envelope::Members;
use gloveport_contract::catalog::{Action, Arguments, Directory, Filter, Literal, Param, ParamType, Timeout};
use gloveport_contract::limits;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// No control character: what a text without a pattern of its own must fulfil.
const PLAIN_TEXT: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// What no absolute path may hold: empty parts, `.`, `..`, a trailing slash, NUL.
const UNTIDY_PATH: &str = r"/\.{0,2}/|./$|/\.{1,2}$|\u0000";

/// The input schema of an action's tool.
pub fn input(action: &Action) -> Value {
    let params = object(
        action.params.iter().map(|(name, param)| (name.to_owned(), parameter(action, name, param))).collect(),
        action.params.iter().filter(|(_, param)| param.is_required()).map(|(name, _)| name).collect(),
    );
    let mut root = match action.arguments {
        Arguments::Flat => params,
        Arguments::Nested => {
            let required = if action.params.iter().any(|(_, param)| param.is_required()) {
                vec!["params"]
            } else {
                vec![]
            };
            object(Members::from_iter([("params".to_owned(), params)]), required)
        }
    };
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        for filter in &action.filters {
            properties.insert(filter.as_str().to_owned(), filter_schema(*filter));
        }
    }
    if let Some(root) = root.as_object_mut()
        && let Some(exclusion) = exclusion(&action.filters)
    {
        root.insert("dependentSchemas".to_owned(), exclusion);
    }
    root
}

fn object(properties: Members, required: Vec<&str>) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty()
        && let Some(schema) = schema.as_object_mut()
    {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

/// A keyword collector: a schema and its description grow together.
struct Schema {
    members: Members,
    notes: Vec<String>,
}

impl Schema {
    fn set(&mut self, keyword: &str, value: impl Into<Value>) {
        self.members.insert(keyword.to_owned(), value.into());
    }
    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

fn parameter(action: &Action, name: &str, param: &Param) -> Value {
    let mut schema = Schema { members: Members::new(), notes: Vec::new() };
    if let Some(description) = &param.description {
        let text = description.trim();
        schema.note(if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") });
    }
    if name == arguments::KEY && arguments::takes_key(action) {
        // Compared with the tokens, and with nothing else.
        schema.set("type", "string");
    } else {
        scalar(&mut schema, param);
    }
    if let Some(Timeout::Param { param, default, max }) = &action.timeout
        && param == name
    {
        schema.note(format!(
            "Seconds; {default} if not given, at most {max}: a greater value is taken as {max}."
        ));
    }
    if let Some(Directory::Param { param, roots }) = &action.cwd
        && param == name
        && !roots.iter().any(|root| root == "/")
    {
        schema.note(format!("Under {}.", roots.join(", ")));
    }
    if let Some(default) = &param.default {
        schema.set("default", literal(default));
    }
    if !param.is_required() {
        // Many clients send null for what they leave out, and the contract takes it so.
        if let Some(kind) = schema.members.remove("type") {
            schema.set("type", json!([kind, "null"]));
        }
        if let Some(Value::Array(values)) = schema.members.get_mut("enum") {
            values.push(Value::Null);
        }
    }
    let description = schema.notes.join(" ");
    if !description.is_empty() {
        schema.set("description", description);
    }
    Value::Object(schema.members)
}

fn scalar(schema: &mut Schema, param: &Param) {
    match param.kind {
        ParamType::Boolean => schema.set("type", "boolean"),
        ParamType::Integer => integer(schema, param),
        ParamType::String => text(schema, param),
        ParamType::Enum => {
            schema.set("type", "string");
            schema.set("enum", json!(param.values));
        }
        ParamType::Path => path(schema, param),
        ParamType::Content => {
            schema.set("type", "string");
            let most = param.max_length.unwrap_or(limits::OUTPUT_MAX);
            schema.set("maxLength", most);
            schema.note(format!("At most {most} bytes."));
        }
        ParamType::List => {
            let most = param.max_items.unwrap_or(limits::ITEMS_DEFAULT).min(limits::LIST as u64);
            let least = param.min_items.unwrap_or(0);
            schema.set("type", "array");
            schema.set("minItems", least);
            schema.set("maxItems", most);
            schema.note(format!("{least} to {most} items."));
            if let Some(items) = &param.items {
                let mut item = Schema { members: Members::new(), notes: Vec::new() };
                scalar(&mut item, items);
                schema.notes.append(&mut item.notes);
                schema.set("items", item.members);
            }
        }
    }
}

fn integer(schema: &mut Schema, param: &Param) {
    schema.set("type", "integer");
    let negative = param.allow_dash || param.min.is_some_and(|min| min < 0);
    let least = param.min.or((!negative).then_some(0));
    // JSON knows no largest integer; the contract's are of 64 bits.
    schema.set("minimum", least.unwrap_or(i64::MIN));
    schema.set("maximum", param.max.unwrap_or(i64::MAX));
    match (least, param.max) {
        (Some(least), Some(most)) => schema.note(format!("From {least} to {most}.")),
        (None, Some(most)) => schema.note(format!("At most {most}.")),
        (Some(least), None) if param.min.is_some() => schema.note(format!("At least {least}.")),
        _ => {}
    }
}

fn text(schema: &mut Schema, param: &Param) {
    let most = param.max_length.unwrap_or(limits::STRING_LENGTH_DEFAULT);
    let least = param.min_length.unwrap_or(0);
    schema.set("type", "string");
    schema.set("maxLength", most);
    if least > 0 {
        schema.set("minLength", least);
    }
    schema.note(format!("{least} to {most} characters."));
    match &param.pattern {
        None => schema.set("pattern", PLAIN_TEXT),
        Some(pattern) => {
            if is_portable(pattern) {
                schema.set("pattern", format!("^(?:{pattern})$"));
            }
            if !pattern.ends_with(".*)") {
                schema.note(format!("Matches {pattern} as a whole."));
            }
        }
    }
    if !param.allow_dash {
        schema.set("not", json!({"type": "string", "pattern": "^-"}));
        schema.note("Does not begin with `-`.");
    }
}

fn path(schema: &mut Schema, param: &Param) {
    schema.set("type", "string");
    schema.set("maxLength", param.max_length.unwrap_or(limits::PATH_LENGTH));
    let roots: Vec<String> = param
        .roots
        .iter()
        .map(|root| if root == "/" { "/".to_owned() } else { format!("{}(?:/|$)", escape(root)) })
        .collect();
    schema.set("pattern", format!("^(?:{})", roots.join("|")));
    schema.set("not", json!({"type": "string", "pattern": UNTIDY_PATH}));
    let exists = if param.must_exist { " that exists" } else { "" };
    schema.note(format!("An absolute path{exists}, without `.` and `..`, under {}.", param.roots.join(", ")));
}

/// Whether RE2 and the ECMA dialect of JSON Schema read a pattern alike. One that is not is left to the
/// words: a client's validator would refuse the whole tool for it.
fn is_portable(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some((_, group)) = rest.split_once("(?") {
        if !group.starts_with(':') {
            return false;
        }
        rest = group;
    }
    !["\\A", "\\z", "\\a", "\\x{", "\\Q", "\\p", "\\P", "\\<", "\\>", "\\b{", "[[:", "&&", "--", "~~"]
        .iter()
        .any(|special| pattern.contains(special))
}

/// A text as a pattern of itself.
fn escape(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        if r"\.+*?()|[]{}^$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    })
}

fn literal(default: &Literal) -> Value {
    match default {
        Literal::Boolean(value) => json!(value),
        Literal::Integer(value) => json!(value),
        Literal::Text(value) => json!(value),
        Literal::List(values) => values.iter().map(literal).collect(),
    }
}

fn filter_schema(filter: Filter) -> Value {
    let pattern = |what: &str| {
        json!({"type": "string", "maxLength": PATTERN_LENGTH,
            "description": format!("{what} (RE2 syntax, at most {PATTERN_LENGTH} characters).")})
    };
    let lines = |what: &str| {
        json!({"type": "integer", "minimum": 1, "maximum": i64::MAX,
            "description": format!("{what} Excludes the others of tail, head, count.")})
    };
    match filter {
        Filter::Match => pattern("Keep only the lines of stdout that match this pattern"),
        Filter::Exclude => pattern("Drop the lines of stdout that match this pattern"),
        Filter::Tail => lines("Only the last lines of stdout, this many."),
        Filter::Head => lines("Only the first lines of stdout, this many."),
        Filter::Count => json!({"type": "boolean",
            "description": "Only the number of lines of stdout. Excludes tail and head."}),
    }
}

/// `tail`, `head` and `count` exclude each other by presence. Written without `oneOf` and its kind, which
/// some model interfaces refuse at the root of a tool's schema.
fn exclusion(filters: &[Filter]) -> Option<Value> {
    let exclusive: Vec<&str> = filters
        .iter()
        .filter(|filter| matches!(filter, Filter::Tail | Filter::Head | Filter::Count))
        .map(|filter| filter.as_str())
        .collect();
    let mut rules = Members::new();
    for (at, name) in exclusive.iter().enumerate() {
        let others: Members =
            exclusive.iter().skip(at + 1).map(|other| ((*other).to_owned(), Value::Bool(false))).collect();
        if !others.is_empty() {
            rules.insert((*name).to_owned(), json!({"properties": others}));
        }
    }
    (!rules.is_empty()).then_some(Value::Object(rules))
}

/// The output schema of every action with the full result.
pub static OUTPUT: LazyLock<Value> = LazyLock::new(|| {
    let integer = || json!({"type": "integer", "minimum": 0});
    let boolean = || json!({"type": "boolean"});
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": text()});
    json!({
        "type": "object",
        "properties": {
            "action": text(),
            "success": boolean(),
            "exit_code": {"type": "integer", "description": "That of the first failed step, or 0; 128+n for signal n."},
            "timed_out": boolean(),
            "timeout_ms": {"type": "integer", "description": "How long it could have taken."},
            "duration_ms": integer(),
            "steps": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": text(),
                    "status": {"enum": ["success", "failed", "skipped", "timeout", "cancelled"]},
                    "exit_code": {"type": ["integer", "null"]},
                    "signal": {"type": ["integer", "null"]},
                    "stdout": text(), "stderr": text(),
                    "stdout_bytes": integer(), "stderr_bytes": integer(),
                    "stdout_truncated": boolean(), "stderr_truncated": boolean(),
                    "scan_limit_reached": boolean(),
                    "redactions": integer(),
                    "lossy_utf8": boolean(),
                    "count": {"type": ["integer", "null"]},
                    "error": {"type": "string", "description": "Why the step could not be started."},
                },
                "required": ["name", "status", "exit_code", "stdout", "stderr"],
            }},
            "data": {"description": "What a built-in handler found."},
            "enforcement": {"type": "object", "properties": {
                "run_as": text(), "no_new_privs": boolean(), "landlock_abi": integer(), "seccomp": text(),
                "one_shot_exec": boolean(), "cgroup": boolean(), "network": text(),
                "absent": texts(), "lacking": texts(), "killed_by": {"type": ["string", "null"]},
            }},
            "audit": {"type": "object", "properties": {"seq": integer(), "hash": text()}, "required": ["seq", "hash"]},
        },
        "required": ["action", "success", "exit_code", "timed_out", "duration_ms", "steps", "enforcement", "audit"],
    })
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fixtures::action;

    #[test]
    fn an_input_schema_states_every_bound() {
        let schema = input(&action(json!({
            "params": {
                "unit": {"type": "string", "pattern": "[a-z]+", "max_length": 20, "description": "A unit"},
                "lines": {"type": "integer", "min": 1, "max": 9, "optional": true},
                "file": {"type": "path", "roots": ["/var/log", "/"], "optional": true},
                "kinds": {"type": "list", "items": {"type": "enum", "values": ["a"]}, "max_items": 3, "default": []},
            },
            "filters": ["match", "tail", "count"],
        })));
        let params = &schema["properties"]["params"];
        assert_eq!(params["required"], json!(["unit"]));
        assert_eq!(schema["required"], json!(["params"]));
        assert_eq!(
            params["properties"]["unit"],
            json!({"type": "string", "maxLength": 20, "pattern": "^(?:[a-z]+)$",
                "not": {"type": "string", "pattern": "^-"},
                "description": "A unit. 0 to 20 characters. Matches [a-z]+ as a whole. Does not begin with `-`."})
        );
        assert_eq!(
            params["properties"]["lines"],
            json!({"type": ["integer", "null"], "minimum": 1, "maximum": 9, "description": "From 1 to 9."})
        );
        assert_eq!(params["properties"]["file"]["pattern"], "^(?:/var/log(?:/|$)|/)");
        assert_eq!(params["properties"]["kinds"]["items"], json!({"type": "string", "enum": ["a"]}));
        assert_eq!(schema["dependentSchemas"], json!({"tail": {"properties": {"count": false}}}));
        assert_eq!(schema["properties"]["match"]["maxLength"], 200);
    }

    #[test]
    fn flat_inputs_have_no_params_and_the_key_no_bounds() {
        let schema = input(&action(json!({"arguments": "flat", "params": {
            "api_key": {"type": "string", "optional": true, "secret": true},
            "timeout": {"type": "integer", "default": 30, "allow_dash": true},
        }, "timeout": {"param": "timeout", "default": "30s", "max": "2m"}})));
        assert_eq!(schema["properties"]["api_key"], json!({"type": ["string", "null"]}));
        assert_eq!(
            schema["properties"]["timeout"],
            json!({"type": ["integer", "null"], "minimum": i64::MIN, "maximum": i64::MAX, "default": 30,
                "description": "Seconds; 30s if not given, at most 2m: a greater value is taken as 2m."})
        );
        assert_eq!(schema.get("required"), None);
    }

    #[test]
    fn a_pattern_that_other_engines_read_differently_stays_in_words() {
        for pattern in ["[a-z]+", "(?:a|b)", r"\d{1,3}", "a(b)c"] {
            assert!(is_portable(pattern), "{pattern}");
        }
        for pattern in ["(?s:.*)", "(?i)a", r"\Aa\z", "[[:alpha:]]", r"\x{41}", "(?P<n>a)", "[a-z&&b]"] {
            assert!(!is_portable(pattern), "{pattern}");
        }
    }
}
