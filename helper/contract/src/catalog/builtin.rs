#![forbid(unsafe_code)]
//! Built-in actions and their signed configuration.

use super::Sandbox;
use super::action::is_default;
use crate::units::{Bytes, Millis};
use serde::{Deserialize, Serialize};

/// A built-in action by name. `command` is pure code in this crate; the others are run by
/// `gloveport-handler` inside the sandbox of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the language; the reference page describes them")]
pub enum Builtin {
    Command,
    LogSearch,
    MysqlQuery,
    RedisCommand,
    HttpGet,
    ReadFile,
    WriteFile,
}

impl Builtin {
    /// The word used in catalogues, and the handler's first argument.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::LogSearch => "log_search",
            Self::MysqlQuery => "mysql_query",
            Self::RedisCommand => "redis_command",
            Self::HttpGet => "http_get",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
        }
    }
}

/// Which addresses `http_get` may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressRule(pub String);

/// The configuration of a built-in. One flat struct: [`super::Catalog::check`] says which keys belong to
/// which.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the keys are the language; the reference page describes them")]
pub struct BuiltinConfig {
    /// `command`: a rule for each program. `redis_command`: names out of those the handler knows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub commands: Vec<CommandEntry>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub roots: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub read: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub write: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub url_prefixes: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub addresses: Vec<AddressRule>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub headers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_files: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_scan: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_matches: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
}

impl BuiltinConfig {
    /// The rules of `builtin: command`.
    pub fn rules(&self) -> impl Iterator<Item = &CommandRule> {
        self.commands.iter().filter_map(|entry| match entry {
            CommandEntry::Rule(rule) => Some(rule.as_ref()),
            CommandEntry::Name(_) => None,
        })
    }
}

/// An element of `commands`.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandEntry {
    /// A name alone, as `redis_command` takes them.
    Name(String),
    /// A program with its rules, as `command` takes them.
    Rule(Box<CommandRule>),
}

/// How many operands a command takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Operands {
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// One program of `builtin: command`, in the terms of getopt(3). Only what is named is accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRule {
    /// The first word of the command.
    pub name: String,
    /// The program's absolute path.
    pub exec: String,
    /// Other absolute paths, tried only when the first does not exist.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exec_fallbacks: Vec<String>,
    /// Whether the program may be an interpreter; its rules then say what it may be asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_interpreter: bool,
    /// Fixed arguments put first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub args: Vec<String>,
    /// Short options as in an optstring: `"ln:"`; `"b::"` takes a value only in the same word.
    #[serde(default, skip_serializing_if = "is_default")]
    pub short: String,
    /// Long options without dashes; `name=` takes a value, `name=?` may take one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub long: Vec<String>,
    /// Options of find(1)'s kind: `"-name:"` takes the next word.
    #[serde(default, skip_serializing_if = "is_default")]
    pub single_dash: Vec<String>,
    /// Accepted beginnings of the operands, word by word: `"status"`, `"addr show"`; nothing may follow
    /// one that ends in `$`: `"addr$"`; `"$"` alone: no operand at all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub words: Vec<String>,
    /// Options that must be given, with their dashes; `"-V|--version"`: one of these.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: Vec<String>,
    /// How many operands, `words` not counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub operands: Operands,
    /// What each operand must match, whole; without it any text without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operand: Option<String>,
    /// Any arguments: only for programs that can neither write nor start anything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub any: bool,
    /// A sandbox of its own in place of the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
}
