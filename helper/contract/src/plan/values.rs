#![forbid(unsafe_code)]
//! From arguments to values: each checked against its parameter, the defaults filled in.

use super::{Refusal, is_absolute_path, is_under, refuse, whole_pattern};
use crate::catalog::{Action, Literal, Param, ParamType};
use crate::limits;
use crate::packet::{Argument, Content, Scalar, Value};

/// The value of each parameter that is given or has a default.
pub(super) struct Bound<'a>(Vec<(&'a str, Value)>);

impl Bound<'_> {
    /// The value of that parameter.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// Checks every argument, and fills in the defaults.
pub(super) fn bind<'a>(
    action: &'a Action,
    args: &[Argument],
    content: Option<&Content>,
) -> Result<Bound<'a>, Refusal> {
    if args.len() > limits::ARGUMENTS {
        return refuse("arguments", format!("at most {}", limits::ARGUMENTS));
    }
    for (index, arg) in args.iter().enumerate() {
        if action.params.get(&arg.name).is_none() {
            let known: Vec<&str> = action.params.iter().map(|(name, _)| name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let shown: String = arg.name.chars().take(limits::NAME).collect();
            return refuse(&shown, format!("not a parameter of `{}`; it has: {known}", action.name));
        }
        if args.iter().take(index).any(|earlier| earlier.name == arg.name) {
            return refuse(&arg.name, "given twice");
        }
    }
    let mut bound = Vec::new();
    for (name, param) in action.params.iter() {
        if param.kind == ParamType::Content {
            check_content(name, param, content)?;
            continue;
        }
        let given = args.iter().find(|arg| arg.name == name).map(|arg| &arg.value);
        let value = match (given, &param.default) {
            (Some(value), _) if *value != Value::Null => value.clone(),
            (_, Some(default)) => literal(default),
            (_, None) if param.optional => continue,
            (_, None) => return refuse(name, "required"),
        };
        check_value(name, param, &value)?;
        bound.push((name, value));
    }
    if content.is_some() && !action.params.iter().any(|(_, param)| param.kind == ParamType::Content) {
        return refuse("content", format!("`{}` takes no content", action.name));
    }
    Ok(Bound(bound))
}

fn check_content(name: &str, param: &Param, content: Option<&Content>) -> Result<(), Refusal> {
    match content {
        None if param.is_required() => refuse(name, "required"),
        None => Ok(()),
        Some(content) => check_length(name, param, content.length, limits::OUTPUT_MAX, "bytes"),
    }
}

fn check_length(name: &str, param: &Param, length: u64, most: u64, unit: &str) -> Result<(), Refusal> {
    let max = param.max_length.unwrap_or(most);
    if length > max {
        return refuse(name, format!("{length} {unit} long; at most {max}"));
    }
    match param.min_length {
        Some(min) if length < min => refuse(name, format!("{length} {unit} long; at least {min}")),
        _ => Ok(()),
    }
}

fn literal(default: &Literal) -> Value {
    let scalar = |literal: &Literal| match literal {
        Literal::Boolean(b) => Scalar::Boolean(*b),
        Literal::Integer(i) => Scalar::Integer(*i),
        Literal::Text(t) => Scalar::Text(t.clone().into_bytes()),
        Literal::List(_) => Scalar::Boolean(false),
    };
    match default {
        Literal::List(items) => Value::List(items.iter().map(scalar).collect()),
        one => scalar(one).into(),
    }
}

/// Checks a declared default like any value.
pub(crate) fn check_default(name: &str, param: &Param, default: &Literal) -> Result<(), Refusal> {
    check_value(name, param, &literal(default))
}

fn check_value(name: &str, param: &Param, value: &Value) -> Result<(), Refusal> {
    match (param.kind, value) {
        (ParamType::Boolean, Value::Boolean(_)) => Ok(()),
        (ParamType::Integer, Value::Integer(number)) => check_integer(name, param, *number),
        (ParamType::String, Value::Text(bytes)) => check_text(name, param, text(name, bytes)?),
        (ParamType::Path, Value::Text(bytes)) => check_path(name, param, text(name, bytes)?),
        (ParamType::Enum, Value::Text(bytes)) => {
            let text = text(name, bytes)?;
            if param.values.iter().any(|known| known == text) {
                Ok(())
            } else {
                refuse(name, format!("must be one of: {}", param.values.join(", ")))
            }
        }
        (ParamType::List, Value::List(items)) => {
            let count = items.len() as u64;
            let max = param.max_items.unwrap_or(limits::ITEMS_DEFAULT).min(limits::LIST as u64);
            if count > max {
                return refuse(name, format!("{count} items; at most {max}"));
            }
            if count < param.min_items.unwrap_or(0) {
                return refuse(name, format!("{count} items; at least {}", param.min_items.unwrap_or(0)));
            }
            match &param.items {
                Some(item) => items.iter().try_for_each(|v| check_value(name, item, &v.clone().into())),
                None => refuse(name, "the catalogue declares no item type"),
            }
        }
        (kind, value) => refuse(name, format!("must be of type {}, not {}", kind.as_str(), value.kind())),
    }
}

/// The text of a value, within what execve(2) takes.
pub(super) fn text<'v>(name: &str, bytes: &'v [u8]) -> Result<&'v str, Refusal> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return refuse(name, "not UTF-8");
    };
    if bytes.len() > limits::ARGUMENT {
        return refuse(
            name,
            format!("{} bytes; one argument takes at most {}", bytes.len(), limits::ARGUMENT),
        );
    }
    match text.find('\0') {
        Some(at) => refuse(name, format!("holds NUL at byte {at}")),
        None => Ok(text),
    }
}

fn check_integer(name: &str, param: &Param, number: i64) -> Result<(), Refusal> {
    let negative_allowed = param.allow_dash || param.min.is_some_and(|min| min < 0);
    let min = param.min.unwrap_or(if negative_allowed { i64::MIN } else { 0 });
    let max = param.max.unwrap_or(i64::MAX);
    if (min..=max).contains(&number) {
        Ok(())
    } else if param.max.is_some() {
        refuse(name, format!("{number} is not within {min} to {max}"))
    } else {
        refuse(name, format!("{number} is below {min}"))
    }
}

fn check_text(name: &str, param: &Param, text: &str) -> Result<(), Refusal> {
    check_length(name, param, text.chars().count() as u64, limits::STRING_LENGTH_DEFAULT, "characters")?;
    if text.starts_with('-') && !param.allow_dash {
        return refuse(name, "begins with `-`, which a program would read as an option");
    }
    match &param.pattern {
        Some(pattern) => match whole_pattern(pattern) {
            Ok(compiled) if compiled.is_match(text) => Ok(()),
            Ok(_) => refuse(name, format!("does not match the pattern {pattern}")),
            Err(error) => refuse(name, format!("the catalogue's pattern does not compile: {error}")),
        },
        None => match text.chars().position(char::is_control) {
            Some(at) => refuse(name, format!("holds a control character at position {at}")),
            None => Ok(()),
        },
    }
}

fn check_path(name: &str, param: &Param, text: &str) -> Result<(), Refusal> {
    check_length(name, param, text.len() as u64, limits::PATH_LENGTH, "bytes")?;
    if !is_absolute_path(text) {
        return refuse(name, "must be an absolute path without `.`, `..`, empty parts and trailing slash");
    }
    if param.roots.iter().any(|root| is_under(text, root)) {
        Ok(())
    } else {
        refuse(name, format!("must lie under one of: {}", param.roots.join(", ")))
    }
}
