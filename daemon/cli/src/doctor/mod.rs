#![forbid(unsafe_code)]
//! `gloveport doctor`: what is wrong on this host, why, and the way out.

mod client;
mod clock;
mod credentials;
mod files;
mod host;
mod modes;
mod running;
mod trust;
mod units;

use crate::failure::{Failure, Outcome};
use crate::mcp::DaemonArgs;
use crate::{health, out};
use clap::Args;
use gloveportd::paths::Paths;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What is wrong on this host, why, and the way out.
///
/// Ends with 0 where all is well, 1 where something deserves a look, 2 where something does not work.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Examine, step by step, what a client would see at this URL instead (GLOVEPORT_TOKEN is presented)
    #[arg(long, value_name = "URL")]
    client: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// How a check came out, in rising order; the exit code is the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, and deserves a look.
    Warn,
    /// Does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, for monitoring.
    pub name: &'static str,
    /// How it came out.
    pub status: State,
    /// What was found, and why it matters.
    pub detail: String,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: State::Ok, detail: detail.into(), remedy: None }
    }
    /// It deserves a look.
    pub fn warn(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, status: State::Warn, detail: detail.into(), remedy: Some(remedy.into()) }
    }
    /// It does not work.
    pub fn fail(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, status: State::Fail, detail: detail.into(), remedy: Some(remedy.into()) }
    }
    /// It does not work, as a command would say it.
    pub fn failure(name: &'static str, failure: &Failure) -> Self {
        let remedy = failure.way_out().map(str::to_owned);
        Self { name, status: State::Fail, detail: failure.what().to_owned(), remedy }
    }
}

/// Runs the command.
///
/// # Errors
/// None: what is wrong is the answer.
pub fn run(args: &DoctorArgs, paths: &Paths) -> Outcome {
    let checks = match &args.client {
        Some(url) => {
            let token = std::env::var("GLOVEPORT_TOKEN").ok();
            client::examine(&DaemonArgs { url: Some(url.clone()), token }, paths)
        }
        None => {
            let helper = health::helper(paths);
            [
                host::examine(paths, helper.is_ok()),
                units::examine(paths),
                modes::examine(paths),
                trust::examine(paths, helper.as_ref().ok()),
                files::examine(paths),
                credentials::examine(paths),
                clock::examine(paths),
                running::examine(paths, &helper),
            ]
            .concat()
        }
    };
    let worst = checks.iter().map(|check| check.status).max().unwrap_or(State::Ok);
    if args.json {
        out::json(&json!({"status": worst, "checks": checks}));
    } else {
        checks.iter().for_each(print);
    }
    Ok(worst as u8)
}

fn print(check: &Check) {
    let sign = match check.status {
        State::Ok => "ok  ",
        State::Warn => "warn",
        State::Fail => "FAIL",
    };
    out::line(format!("{sign}  {}: {}", check.name, check.detail.replace('\n', "\n        ")));
    if let Some(remedy) = &check.remedy {
        out::line(format!("      → {}", remedy.replace('\n', "\n        ")));
    }
}
