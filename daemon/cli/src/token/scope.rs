#![forbid(unsafe_code)]
//! A scope as it is written on the command line, and as it is shown.

use crate::clock;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use gloveport_contract::catalog::Risk;
use gloveport_contract::token::Scope;
use serde_json::Value;

/// What a token or a local user may do.
#[derive(Debug, Args)]
pub struct ScopeArgs {
    /// Actions that may be called; `*` and `?` are wildcards; may be repeated [default: *]
    #[arg(long, value_name = "GLOB")]
    allow: Vec<String>,
    /// The highest risk
    #[arg(long, value_name = "RISK", default_value = "read")]
    max_risk: MaxRisk,
    /// End of its life from now on, such as 12h or 30d [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Hours of the day, UTC, such as 08:00-18:00 [default: all]
    #[arg(long, value_name = "FROM-TO")]
    hours: Option<String>,
    /// Calls per minute [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_minute: Option<u32>,
    /// Runs at once [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
}

/// A risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MaxRisk {
    /// Changes nothing
    Read,
    /// Changes something that can be put right
    Write,
    /// May cost data or the host
    Dangerous,
}

impl ScopeArgs {
    /// The scope that the arguments mean.
    ///
    /// # Errors
    /// The time is none.
    pub fn scope(&self) -> Result<Scope, Failure> {
        let expires = self.expires.as_deref().map(end_of_life).transpose()?;
        Ok(Scope {
            allow: if self.allow.is_empty() { vec!["*".into()] } else { self.allow.clone() },
            max_risk: match self.max_risk {
                MaxRisk::Read => Risk::Read,
                MaxRisk::Write => Risk::Write,
                MaxRisk::Dangerous => Risk::Dangerous,
            },
            expires,
            hours: self.hours.clone(),
            per_minute: self.per_minute,
            at_once: self.at_once,
        })
    }
}

fn end_of_life(text: &str) -> Result<u64, Failure> {
    let seconds = clock::parse_span(text).ok_or_else(|| {
        Failure::usage(format!("`{text}` is no time")).remedy("write a number and s, m, h, d or w: 12h, 30d")
    })?;
    clock::now().checked_add(seconds).ok_or_else(|| Failure::usage(format!("`{text}` is too far away")))
}

/// Adds the keys of a scope to an object.
pub fn into_json(scope: &Scope, object: &mut Value) {
    if let (Some(object), Ok(Value::Object(scope))) = (object.as_object_mut(), serde_json::to_value(scope)) {
        object.extend(scope);
    }
}

/// A scope in the columns of a list.
pub fn columns(scope: &Scope) -> Vec<String> {
    let expires = match scope.expires {
        None => "never".to_owned(),
        Some(end) if end <= clock::now() => format!("{} (over)", clock::rfc3339(end)),
        Some(end) => clock::rfc3339(end),
    };
    let more = [
        scope.hours.as_ref().map(|hours| format!("{hours} UTC")),
        scope.per_minute.map(|calls| format!("{calls} per minute")),
        scope.at_once.map(|runs| format!("{runs} at once")),
    ];
    let more: Vec<String> = more.into_iter().flatten().collect();
    vec![scope.allow.join(","), scope.max_risk.as_str().to_owned(), expires, more.join(", ")]
}
