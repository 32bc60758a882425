#![forbid(unsafe_code)]
//! Parameters, and what an argv or an environment gives away.

use super::{Report, pattern};
use gloveport_contract::catalog::{Action, ArgvItem, Directory, Param, ParamType, Timeout};
use gloveport_contract::plan::placeholder;

/// A parameter of this name may carry the caller's token; the daemon takes it out.
const TOKEN: &str = "api_key";

pub(super) fn lint(action: &Action, report: &mut Report<'_>) {
    for (name, param) in action.params.iter() {
        let at = format!("params.{name}");
        values(&at, param, report);
        if is_telling(name) && !param.secret && param.kind == ParamType::String {
            report.warn(
                &at,
                format!("`{name}` sounds like a secret: without `secret: true` its value is recorded"),
            );
        }
        let elsewhere = param.kind == ParamType::Content || name == TOKEN || action.builtin.is_some();
        if !elsewhere && !is_used(name, action) {
            report.warn(&at, "is never used: its value reaches nothing");
        }
        if param.description.is_none() {
            report.note(&at, "has no `description`: agents read it");
        }
    }
    for (at, text) in arguments(action) {
        if gives_away(text) {
            report.warn(
                at,
                "looks like a secret: every local user can read an argv, and so can who reads the catalogue",
            );
        }
    }
    for (name, _) in action.env.iter().filter(|(name, value)| is_telling(name) && !value.is_empty()) {
        report.warn(format!("env.{name}"), "looks like a secret: who reads the catalogue reads it");
    }
}

fn values(at: &str, param: &Param, report: &mut Report<'_>) {
    if let Some(items) = &param.items {
        values(&format!("{at}.items"), items, report);
    }
    let reach = param.pattern.as_deref().and_then(pattern::reach);
    if reach.is_some_and(|reach| reach.newline) {
        report.warn(
            format!("{at}.pattern"),
            "can match a line break; programs read lines. `.`, `\\w` and listed characters do not",
        );
    }
    if param.allow_dash && param.kind == ParamType::String && reach.is_none_or(|reach| reach.leading_dash) {
        report.warn(
            format!("{at}.allow_dash"),
            "the program may read such a value as an option; put `--` before it, or let the pattern begin \
             with something else",
        );
    }
    if param.roots.iter().any(|root| root == "/") {
        report.note(format!("{at}.roots"), "`/` is every path; what may be read is up to the sandbox alone");
    }
}

/// Whether a parameter stands in an argv, or decides about the timeout or the directory.
fn is_used(name: &str, action: &Action) -> bool {
    let in_argv = arguments(action).iter().any(|(_, text)| placeholder(text) == Some(name));
    let in_timeout = matches!(&action.timeout, Some(Timeout::Param { param, .. }) if param == name);
    let in_directory = matches!(&action.cwd, Some(Directory::Param { param, .. }) if param == name);
    in_argv || in_timeout || in_directory
}

/// Every element of every argv with its key.
fn arguments(action: &Action) -> Vec<(String, &str)> {
    let steps = action.steps.iter().flatten().enumerate();
    let mut lists: Vec<(String, &[ArgvItem])> =
        steps.map(|(index, step)| (format!("steps.{index}.exec"), step.exec.as_slice())).collect();
    lists.extend(action.exec.as_deref().map(|exec| ("exec".to_owned(), exec)));
    lists.extend(action.script.as_ref().map(|script| ("script.args".to_owned(), script.args.as_slice())));
    let mut found = Vec::new();
    for (at, items) in lists {
        for (index, item) in items.iter().enumerate() {
            let texts = match item {
                ArgvItem::One(text) => std::slice::from_ref(text),
                ArgvItem::Group(texts) => texts.as_slice(),
            };
            found.extend(texts.iter().map(|text| (format!("{at}.{index}"), text.as_str())));
        }
    }
    found
}

const TELLING: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "credential", "private_key"];

/// Whether a name says that its value is a secret.
fn is_telling(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    TELLING.iter().any(|word| {
        name == *word || name.ends_with(&format!("_{word}")) || name.starts_with(&format!("{word}_"))
    })
}

/// `--password=x`, `TOKEN=x`, `https://user:x@host`, `Authorization: Bearer x`.
fn gives_away(text: &str) -> bool {
    let assigned = text
        .split_once('=')
        .is_some_and(|(name, value)| is_telling(name.trim_start_matches('-')) && !value.is_empty());
    let userinfo = text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split('/').next().unwrap_or_default();
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    });
    assigned || userinfo || text.to_lowercase().starts_with("authorization:")
}
