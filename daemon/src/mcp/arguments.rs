#![forbid(unsafe_code)]
//! From a tool's JSON arguments to the contract's: by form only. What a value must fulfil, the contract says.

use super::envelope::Members;
use super::json::kind;
use crate::run::report::Filters;
use gloveport_contract::catalog::{Action, Arguments, Filter, Param, ParamType};
use gloveport_contract::packet::{Argument, Content, Scalar, Value};
use serde_json::Value as Json;

/// Longest `match` or `exclude`, characters.
pub const PATTERN_LENGTH: usize = 200;
/// The parameter by which a client that can set no header presents its token.
pub const KEY: &str = "api_key";

/// The arguments of one call.
#[derive(Debug, Default)]
pub struct Input {
    /// The action's arguments, without the key and the content.
    pub args: Vec<Argument>,
    /// What goes to stdin.
    pub content: Option<Vec<u8>>,
    /// The filters.
    pub filters: Filters,
}

impl Input {
    /// What the plan needs to know of the content.
    pub fn content(&self) -> Option<Content> {
        self.content
            .as_ref()
            .map(|bytes| Content { length: bytes.len() as u64, sha256: hmac_sha256::Hash::hash(bytes) })
    }

    /// The text of an argument, where it is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        let argument = self.args.iter().find(|argument| argument.name == name)?;
        match &argument.value {
            Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// Whether an action takes the token as an argument.
pub fn takes_key(action: &Action) -> bool {
    action.arguments == Arguments::Flat
        && action.params.get(KEY).is_some_and(|key| key.kind == ParamType::String && !key.is_required())
}

/// Takes the key out of the arguments of an action that takes one: it goes to nobody else. What is no text
/// stays, to be refused by its form.
pub fn take_key(action: &Action, arguments: &mut Members) -> Option<String> {
    if !takes_key(action) || !arguments.get(KEY).is_some_and(Json::is_string) {
        return None;
    }
    match arguments.remove(KEY) {
        Some(Json::String(key)) => Some(key),
        _ => None,
    }
}

/// Reads the arguments of an action.
///
/// # Errors
/// The first thing that has another form than the tool's input schema says.
pub fn read(action: &Action, mut arguments: Members) -> Result<Input, String> {
    let mut input = Input::default();
    for filter in [Filter::Match, Filter::Exclude, Filter::Tail, Filter::Head, Filter::Count] {
        let name = filter.as_str();
        let is_parameter = action.arguments == Arguments::Flat && action.params.get(name).is_some();
        if !is_parameter && let Some(value) = arguments.remove(name) {
            if !action.filters.contains(&filter) {
                return Err(format!("{name}: `{}` does not take this filter", action.name));
            }
            read_filter(&mut input.filters, filter, value)?;
        }
    }
    check_exclusion(&input.filters)?;
    let params = match action.arguments {
        Arguments::Flat => arguments,
        Arguments::Nested => {
            let params = match arguments.remove("params") {
                None => Members::new(),
                Some(Json::Object(params)) => params,
                Some(other) => return Err(format!("params: must be an object, not {}", kind(&other))),
            };
            if let Some(name) = arguments.keys().next() {
                let shown: String = name.chars().take(64).collect();
                let hint = match action.params.get(name) {
                    Some(_) => "put it into `params`",
                    None => "not an input of this tool",
                };
                return Err(format!("{shown}: {hint}"));
            }
            params
        }
    };
    for (name, value) in params {
        match action.params.get(&name) {
            Some(Param { kind: ParamType::Content, .. }) => match value {
                Json::String(text) => input.content = Some(text.into_bytes()),
                Json::Null => {}
                other => return Err(format!("{name}: must be a text, not {}", kind(&other))),
            },
            _ => input.args.push(Argument { value: convert(&name, value)?, name }),
        }
    }
    Ok(input)
}

fn convert(name: &str, value: Json) -> Result<Value, String> {
    match value {
        Json::Null => Ok(Value::Null),
        Json::Array(items) => {
            items.into_iter().map(|item| scalar(name, item)).collect::<Result<_, _>>().map(Value::List)
        }
        one => scalar(name, one).map(Value::from),
    }
}

fn scalar(name: &str, value: Json) -> Result<Scalar, String> {
    match value {
        Json::Bool(value) => Ok(Scalar::Boolean(value)),
        Json::String(text) => Ok(Scalar::Text(text.into_bytes())),
        Json::Number(number) => match integer(&number) {
            Some(integer) => Ok(Scalar::Integer(integer)),
            None => Err(format!("{name}: {number} is not a 64-bit integer")),
        },
        other => Err(format!("{name}: cannot be {}", kind(&other))),
    }
}

/// An integer, however it is written: `3.0` is one to JSON Schema.
fn integer(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        // Beyond 2^53 a fraction could have been lost on the way, so the value would be a guess.
        let value = number.as_f64().filter(|v| v.fract() == 0.0 && v.abs() <= 9_007_199_254_740_992.0)?;
        format!("{value:.0}").parse().ok()
    })
}

fn read_filter(filters: &mut Filters, filter: Filter, value: Json) -> Result<(), String> {
    let name = filter.as_str();
    let wrong = |value: &Json, expected: &str| format!("{name}: must be {expected}, not {}", kind(value));
    match filter {
        Filter::Match | Filter::Exclude => {
            let Json::String(pattern) = value else {
                return Err(wrong(&value, "a pattern (RE2 syntax)"));
            };
            if pattern.chars().count() > PATTERN_LENGTH {
                return Err(format!("{name}: at most {PATTERN_LENGTH} characters"));
            }
            let place = if filter == Filter::Match { &mut filters.matching } else { &mut filters.exclude };
            *place = Some(pattern);
        }
        Filter::Tail | Filter::Head => {
            let lines = match &value {
                Json::Number(number) => integer(number).and_then(|lines| u64::try_from(lines).ok()),
                _ => None,
            };
            let Some(lines) = lines.filter(|lines| *lines > 0) else {
                return Err(format!("{name}: must be a positive number of lines"));
            };
            *if filter == Filter::Tail { &mut filters.tail } else { &mut filters.head } = Some(lines);
        }
        Filter::Count => {
            let Json::Bool(count) = value else {
                return Err(wrong(&value, "true or false"));
            };
            filters.count = Some(count);
        }
    }
    Ok(())
}

fn check_exclusion(filters: &Filters) -> Result<(), String> {
    let given = [filters.tail.is_some(), filters.head.is_some(), filters.count.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err("tail, head, count: give one of them at most (`count: false` counts as given)".to_owned());
    }
    Ok(())
}

/// How a tool is called, in one line.
pub fn usage(action: &Action) -> String {
    let mut inputs: Vec<String> = Vec::new();
    for (name, param) in action.params.iter() {
        let mark = if param.is_required() { "" } else { "?" };
        inputs.push(format!("\"{name}\"{mark}: {}", param.kind.as_str()));
    }
    let params = inputs.join(", ");
    let mut all = match action.arguments {
        Arguments::Flat => inputs,
        Arguments::Nested if inputs.is_empty() => Vec::new(),
        Arguments::Nested => vec![format!("\"params\": {{{params}}}")],
    };
    all.extend(action.filters.iter().map(|filter| {
        let form = match filter {
            Filter::Match | Filter::Exclude => "pattern",
            Filter::Tail | Filter::Head => "lines",
            Filter::Count => "boolean",
        };
        format!("\"{}\"?: {form}", filter.as_str())
    }));
    format!("Call `{}` with {{{}}} (? is optional).", action.name, all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action(more: Json) -> Action {
        let mut action = json!({
            "name": "log", "description": "d", "risk": "read", "exec": ["/bin/true"],
            "params": {"unit": {"type": "string"}, "lines": {"type": "integer", "optional": true}},
            "filters": ["match", "exclude", "tail", "head", "count"],
        });
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(action).unwrap()
    }

    fn input(action: &Action, arguments: Json) -> Result<Input, String> {
        read(action, arguments.as_object().unwrap().clone())
    }

    #[test]
    fn parameters_stand_in_params_and_filters_beside_it() {
        let read = input(
            &action(json!({})),
            json!({"params": {"unit": "a", "lines": 3.0}, "match": "x", "tail": 5}),
        )
        .unwrap();
        assert_eq!(read.text("unit"), Some("a"));
        assert!(read.args.iter().any(|arg| arg.name == "lines" && arg.value == Value::Integer(3)));
        assert_eq!((read.filters.matching.as_deref(), read.filters.tail), (Some("x"), Some(5)));
    }

    #[test]
    fn flat_parameters_stand_at_the_top() {
        let flat = action(json!({"arguments": "flat", "filters": ["tail"]}));
        let read = input(&flat, json!({"unit": "a", "tail": 1})).unwrap();
        assert_eq!((read.text("unit"), read.filters.tail), (Some("a"), Some(1)));
        // The contract refuses what is no parameter, by name.
        assert_eq!(input(&flat, json!({"params": "x"})).unwrap().text("params"), Some("x"));
    }

    #[test]
    fn what_has_another_form_is_named() {
        let action = action(json!({}));
        for (arguments, named) in [
            (json!({"unit": "a"}), "unit: put it into `params`"),
            (json!({"other": 1}), "other: not an input"),
            (json!({"params": []}), "params: must be an object"),
            (json!({"params": null}), "params: must be an object"),
            (json!({"params": {"unit": {}}}), "unit: cannot be an object"),
            (json!({"params": {"unit": [[]]}}), "unit: cannot be a list"),
            (json!({"params": {"lines": 1.5}}), "lines: 1.5 is not"),
            (json!({"params": {"lines": u64::MAX}}), "lines: 18446744073709551615 is not"),
            (json!({"tail": 0}), "tail: must be a positive"),
            (json!({"tail": "5"}), "tail: must be a positive"),
            (json!({"head": null}), "head: must be a positive"),
            (json!({"count": 1}), "count: must be true or false"),
            (json!({"match": "x".repeat(201)}), "match: at most 200"),
            (json!({"tail": 1, "count": false}), "tail, head, count"),
            (json!({"tail": 1, "head": 1}), "tail, head, count"),
        ] {
            let problem = input(&action, arguments.clone()).unwrap_err();
            assert!(problem.starts_with(named), "{arguments}: {problem}");
        }
        assert!(input(&action, json!({"match": "é".repeat(200)})).is_ok());
    }

    #[test]
    fn only_declared_filters_are_taken() {
        let action = action(json!({"filters": ["match"]}));
        assert!(input(&action, json!({"tail": 1})).unwrap_err().starts_with("tail:"));
        assert!(input(&action, json!({"match": "x"})).is_ok());
    }

    #[test]
    fn content_travels_apart_from_the_arguments() {
        let action = action(json!({"params": {"content": {"type": "content"}}}));
        let read = input(&action, json!({"params": {"content": "abc"}})).unwrap();
        assert_eq!((read.args.len(), read.content.as_deref()), (0, Some(b"abc".as_slice())));
        assert_eq!(read.content().map(|content| content.length), Some(3));
        assert!(input(&action, json!({"params": {"content": 5}})).is_err());
    }

    #[test]
    fn the_key_is_taken_out_where_the_action_declares_it() {
        let key = json!({"arguments": "flat", "filters": [],
            "params": {"api_key": {"type": "string", "optional": true, "secret": true}}});
        let mut arguments = json!({"api_key": "gp_x", "other": 1}).as_object().unwrap().clone();
        assert_eq!(take_key(&action(key), &mut arguments).as_deref(), Some("gp_x"));
        assert_eq!(arguments.len(), 1);
        assert_eq!(take_key(&action(json!({})), &mut arguments), None);
    }

    #[test]
    fn usage_shows_the_whole_input() {
        assert_eq!(
            usage(&action(json!({"filters": ["tail"]}))),
            "Call `log` with {\"params\": {\"lines\"?: integer, \"unit\": string}, \"tail\"?: lines} (? is optional)."
        );
    }
}
