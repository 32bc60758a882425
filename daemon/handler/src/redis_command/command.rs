#![forbid(unsafe_code)]
//! Which commands are sent, and with which arguments.

use crate::failure::{Failure, refuse};
use gloveport_contract::catalog::{BuiltinConfig, CommandEntry, REDIS_COMMANDS};

/// Most keys of one command.
const KEYS: usize = 100;
/// Longest argument, bytes.
const ARGUMENT: usize = 8 * 1024;
/// Most work of one SCAN (its COUNT): the server does nothing else meanwhile.
const SCAN_COUNT: u32 = 1000;

/// Checks a command against the list, the configuration and its own arguments; gives its name in capitals.
///
/// # Errors
/// It is not on the list, or its arguments are not its own.
pub fn check(words: &[&str], config: &BuiltinConfig) -> Result<&'static str, Failure> {
    let Some((name, arguments)) = words.split_first() else {
        return refuse("command: a list such as [\"GET\", \"key\"]");
    };
    let known =
        REDIS_COMMANDS.iter().find(|known| known.eq_ignore_ascii_case(name) && is_listed(known, config));
    let Some(known) = known else {
        let list: Vec<&str> = REDIS_COMMANDS.into_iter().filter(|known| is_listed(known, config)).collect();
        let shown = crate::answer::prefix_of(name, 64);
        return refuse(format!("command: `{shown}` is not allowed; allowed are: {}", list.join(", ")));
    };
    if let Some(long) = arguments.iter().find(|argument| argument.len() > ARGUMENT) {
        return refuse(format!("command: an argument of {} bytes; at most {ARGUMENT}", long.len()));
    }
    let takes = match *known {
        "MGET" | "EXISTS" => (1..=KEYS).contains(&arguments.len()).then_some(()).ok_or("from 1 to 100 keys"),
        "HGET" => (arguments.len() == 2).then_some(()).ok_or("a key and a field"),
        "SCAN" => scan(arguments),
        "INFO" => info(arguments),
        _ => (arguments.len() == 1).then_some(()).ok_or("one key"),
    };
    match takes {
        Ok(()) => Ok(known),
        Err(expected) => refuse(format!("command: {known} takes {expected}")),
    }
}

/// Whether the action lists a command that the handler knows; without a list it has them all.
pub fn is_listed(known: &str, config: &BuiltinConfig) -> bool {
    let is =
        |entry: &CommandEntry| matches!(entry, CommandEntry::Name(name) if name.eq_ignore_ascii_case(known));
    config.commands.is_empty() || config.commands.iter().any(is)
}

fn scan(arguments: &[&str]) -> Result<(), &'static str> {
    const FORM: &str = "a cursor, then MATCH pattern, COUNT 1 to 1000, TYPE type, each at most once";
    let Some((cursor, options)) = arguments.split_first() else {
        return Err(FORM);
    };
    if cursor.parse::<u64>().is_err() {
        return Err(FORM);
    }
    let mut seen: Vec<String> = Vec::new();
    for option in options.chunks(2) {
        let [name, value] = option else {
            return Err(FORM);
        };
        let name = name.to_ascii_uppercase();
        let fits = match name.as_str() {
            "MATCH" => true,
            "COUNT" => value.parse().is_ok_and(|count| (1..=SCAN_COUNT).contains(&count)),
            "TYPE" => value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
            _ => false,
        };
        if !fits || seen.contains(&name) {
            return Err(FORM);
        }
        seen.push(name);
    }
    Ok(())
}

fn info(sections: &[&str]) -> Result<(), &'static str> {
    let word = |section: &&str| {
        (1..=32).contains(&section.len()) && section.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if sections.len() <= 8 && sections.iter().all(word) { Ok(()) } else { Err("up to 8 names of sections") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(words: &[&str]) -> bool {
        check(words, &BuiltinConfig::default()).is_ok()
    }

    #[test]
    fn each_command_passes_with_its_arguments() {
        for words in [
            &["get", "k"][..],
            &["MGET", "a", "b"],
            &["HGET", "h", "f"],
            &["EXISTS", "a", "a"],
            &["SCAN", "0"],
            &["scan", "17", "match", "user:*", "COUNT", "100", "TYPE", "hash"],
            &["INFO"],
            &["INFO", "server", "memory"],
            &["TTL", "-k"],
        ] {
            assert!(allowed(words), "{words:?}");
        }
    }

    #[test]
    fn what_writes_blocks_or_runs_code_is_refused_in_any_spelling() {
        for name in [
            "SET",
            "set",
            "DEL",
            "EVAL",
            "EVAL_RO",
            "FCALL_RO",
            "CONFIG",
            "config|get",
            "CONFIG SET",
            "DEBUG",
            "REPLICAOF",
            "SLAVEOF",
            "MODULE",
            "SCRIPT",
            "FUNCTION",
            "MIGRATE",
            "SAVE",
            "SHUTDOWN",
            "KEYS",
            "MONITOR",
            "SUBSCRIBE",
            "BLPOP",
            "WAIT",
            "GETDEL",
            "GETEX",
            "GETSET",
            "SORT",
            "SORT_RO",
            "OBJECT",
            "FLUSHALL",
            "GET ",
            " GET",
            "GET\r\nSET",
            "",
        ] {
            assert!(!allowed(&[name, "k"]), "{name}");
        }
        assert!(!allowed(&[]));
    }

    #[test]
    fn arguments_are_those_of_the_command() {
        let many = vec!["MGET"; 102];
        for words in [
            &["GET"][..],
            &["GET", "a", "b"],
            &["HGET", "h"],
            &["SCAN"],
            &["SCAN", "x"],
            &["SCAN", "0", "COUNT", "1001"],
            &["SCAN", "0", "COUNT", "0"],
            &["SCAN", "0", "COUNT", "1", "COUNT", "2"],
            &["SCAN", "0", "MATCH"],
            &["SCAN", "0", "STORE", "x"],
            &["INFO", "a b"],
            &many,
        ] {
            assert!(!allowed(words), "{words:?}");
        }
    }

    #[test]
    fn a_configuration_tightens_the_list() {
        let config = BuiltinConfig { commands: vec![CommandEntry::Name("get".into())], ..Default::default() };
        assert!(check(&["GET", "k"], &config).is_ok());
        assert!(check(&["TTL", "k"], &config).unwrap_err().message().ends_with("allowed are: GET"));
    }
}
