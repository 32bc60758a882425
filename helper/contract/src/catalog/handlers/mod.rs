#![forbid(unsafe_code)]
//! What each built-in handler takes: its parameters, the keys of its configuration, and the ceilings that
//! a configuration can only tighten. A file for each handler; the handlers themselves read the same tables.

mod ceiling;
mod files;
mod http_get;
mod log_search;
mod mysql_query;
mod redis_command;
mod server;
#[cfg(test)]
mod tests;

pub use redis_command::REDIS_COMMANDS;

use super::{Action, Builtin, BuiltinConfig, Param, ParamType};

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

/// A handler's parameters and configuration keys, as the documentation's tables have them.
struct Form {
    required: &'static [(&'static str, Takes)],
    optional: &'static [(&'static str, Takes)],
    required_keys: &'static [&'static str],
    optional_keys: &'static [&'static str],
    /// What the values of its own keys must be, limits aside.
    check: fn(&BuiltinConfig) -> Result<(), Problem>,
}

fn form(builtin: Builtin) -> Option<&'static Form> {
    match builtin {
        Builtin::Command => None,
        Builtin::LogSearch => Some(&log_search::FORM),
        Builtin::MysqlQuery => Some(&mysql_query::FORM),
        Builtin::RedisCommand => Some(&redis_command::FORM),
        Builtin::HttpGet => Some(&http_get::FORM),
        Builtin::ReadFile => Some(&files::READ),
        Builtin::WriteFile => Some(&files::WRITE),
    }
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
    check_params(action, builtin, form)?;
    check_keys(builtin, form, config)?;
    ceiling::check(config)?;
    (form.check)(config)
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
