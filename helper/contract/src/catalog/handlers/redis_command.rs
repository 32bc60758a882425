#![forbid(unsafe_code)]
//! What `redis_command` takes.

use super::Form;
use super::Takes::Texts;
use super::{Problem, problem, server};
use crate::catalog::{BuiltinConfig, CommandEntry};

/// The commands that `redis_command` knows. Each only reads, and none blocks.
pub const REDIS_COMMANDS: [&str; 13] = [
    "GET", "MGET", "HGET", "HLEN", "TTL", "TYPE", "EXISTS", "STRLEN", "LLEN", "SCARD", "ZCARD", "SCAN",
    "INFO",
];

pub(super) const FORM: Form = Form {
    required: &[("command", Texts)],
    optional: &[],
    required_keys: &["server"],
    optional_keys: &["credential", "db", "commands", "max_bytes"],
    check,
};

fn check(config: &BuiltinConfig) -> Result<(), Problem> {
    server::check(config)?;
    check_commands(config)
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
