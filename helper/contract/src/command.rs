#![forbid(unsafe_code)]
//! `builtin: command`: a text becomes one argv of one program, or a refusal that names the rule.
//!
//! The text is split as a POSIX shell would split it (POSIX.1-2017, Shell Command Language 2.2 and 2.3), and
//! no shell ever runs. What a shell would do beyond splitting (pipes, lists, redirection, expansion) is
//! refused by name. This splitter is the one that decides: the program gets exactly the words that were
//! ruled on.

use crate::catalog::{BuiltinConfig, CommandRule};
use crate::limits;
use std::fmt;

/// A command within its rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<'a> {
    /// The rule that it met.
    pub rule: &'a CommandRule,
    /// The argv of its program.
    pub argv: Vec<Vec<u8>>,
}

/// A command outside its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The rule: `syntax`, `length`, `name`, `option`, `operands`, `words`, `required`.
    pub rule: &'static str,
    /// What and where, and the way to permit it.
    pub message: String,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command blocked by policy (rule: {}): {}", self.rule, self.message)
    }
}

impl std::error::Error for Blocked {}

/// The way to permit what a rule refuses: not from here.
const PERMIT: &str = "An operator can permit more in the signed catalogue";

fn blocked<T>(rule: &'static str, message: impl Into<String>) -> Result<T, Blocked> {
    Err(Blocked { rule, message: message.into() })
}

/// Splits, finds the rule and applies it.
///
/// # Errors
/// The rule that was broken, the place and the way to permit it.
pub fn resolve<'a>(config: &'a BuiltinConfig, command: &str) -> Result<Resolved<'a>, Blocked> {
    if command.len() > limits::COMMAND {
        return blocked(
            "length",
            format!("the command is {} bytes long; at most {}", command.len(), limits::COMMAND),
        );
    }
    let words = split(command)?;
    let Some((name, args)) = words.split_first() else {
        return blocked("syntax", "the command is empty");
    };
    let Some(rule) = find(config, name) else {
        let shown = name.escape_debug().take(80).collect::<String>();
        let known: Vec<&str> = config.rules().map(|rule| rule.name.as_str()).collect();
        return blocked(
            "name",
            format!("`{shown}` is not an allowed command. Allowed: {}. {PERMIT}", known.join(" ")),
        );
    };
    if !rule.any {
        check(rule, args)?;
    }
    let mut argv = Vec::with_capacity(1 + rule.args.len() + args.len());
    argv.push(rule.name.clone().into_bytes());
    argv.extend(rule.args.iter().chain(args).map(|word| word.clone().into_bytes()));
    Ok(Resolved { rule, argv })
}

/// A name stands for itself or for the absolute path of its program, nothing else: no search, no `./`.
fn find<'a>(config: &'a BuiltinConfig, name: &str) -> Option<&'a CommandRule> {
    config.rules().find(|rule| rule.name == name || rule.exec == name)
}

/// What a shell would act upon, outside quotes.
fn operator(c: char, next: Option<char>) -> Option<&'static str> {
    match (c, next) {
        (';', _) => Some("`;` would start a second command"),
        ('|', _) => Some("`|` would start a pipe; call the second command on its own"),
        ('&', _) => Some("`&` would start a second command or a background job"),
        ('`', _) => Some("a backquote would run a command"),
        ('$', Some('(')) => Some("`$(` would run a command"),
        ('$', Some('{')) => Some("`${` would expand a variable"),
        ('<', _) => Some("`<` would redirect input"),
        ('>', _) => Some("`>` would redirect output"),
        ('\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}', _) => {
            Some("a line break would start a second command")
        }
        _ => None,
    }
}

/// Splits into words; quotes are removed, nothing is expanded.
///
/// # Errors
/// An operator outside quotes, an expansion inside double quotes, NUL, or an open quote.
pub fn split(command: &str) -> Result<Vec<String>, Blocked> {
    let refuse = |at: usize, what: &str| {
        blocked(
            "syntax",
            format!("{what} (position {at}). No shell runs here; quote it with '…' to pass it as text"),
        )
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        if c == '\0' {
            return blocked("syntax", format!("NUL cannot be part of a command (position {at})"));
        }
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some((_, '\'')) => break,
                        Some((at, '\0')) => {
                            return blocked(
                                "syntax",
                                format!("NUL cannot be part of a command (position {at})"),
                            );
                        }
                        Some((_, c)) => text.push(c),
                        None => return blocked("syntax", format!("the ' at position {at} is never closed")),
                    }
                }
            }
            '"' => {
                let text = word.get_or_insert_default();
                loop {
                    let Some((inner, c)) = chars.next() else {
                        return blocked("syntax", format!("the \" at position {at} is never closed"));
                    };
                    let next = chars.peek().map(|(_, c)| *c);
                    match c {
                        '"' => break,
                        '\0' => {
                            return blocked(
                                "syntax",
                                format!("NUL cannot be part of a command (position {inner})"),
                            );
                        }
                        '`' | '$' if operator(c, next).is_some() => {
                            return refuse(inner, operator(c, next).unwrap_or_default());
                        }
                        // Within double quotes a backslash escapes these five only (2.2.3).
                        '\\' if matches!(next, Some('$' | '`' | '"' | '\\')) => {
                            text.extend(chars.next().map(|(_, c)| c));
                        }
                        '\\' if next == Some('\n') => {
                            return refuse(inner, "a line continuation is not taken");
                        }
                        _ => text.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some((at, '\n' | '\r')) => return refuse(at, "a line continuation is not taken"),
                Some((at, '\0')) => {
                    return blocked("syntax", format!("NUL cannot be part of a command (position {at})"));
                }
                Some((_, escaped)) => word.get_or_insert_default().push(escaped),
                None => return blocked("syntax", format!("the \\ at position {at} escapes nothing")),
            },
            _ => match operator(c, next) {
                Some(what) => return refuse(at, what),
                None => word.get_or_insert_default().push(c),
            },
        }
    }
    words.extend(word);
    Ok(words)
}

/// Applies a rule to the words behind the name, as getopt_long(3) would read them.
fn check(rule: &CommandRule, args: &[String]) -> Result<(), Blocked> {
    let mut seen: Vec<String> = Vec::new();
    let mut operands: Vec<&str> = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if word == "--" && rule.single_dash.is_empty() {
            operands.extend(rest.by_ref().map(String::as_str));
        } else if word == "-" || !word.starts_with('-') {
            operands.push(word);
        } else if !rule.single_dash.is_empty() {
            seen.push(word.clone());
            single_dash(rule, word, &mut rest)?;
        } else if let Some(long) = word.strip_prefix("--") {
            seen.push(long_option(rule, long, &mut rest)?);
        } else {
            short_options(rule, word, &mut rest, &mut seen)?;
        }
    }
    let given = |options: &str| options.split('|').any(|option| seen.iter().any(|given| given == option));
    if let Some(missing) = rule.required.iter().find(|options| !given(options)) {
        let missing = missing.replace('|', " or ");
        return blocked("required", format!("`{}` must be called with {missing}", rule.name));
    }
    check_operands(rule, &operands)
}

type Rest<'w> = std::slice::Iter<'w, String>;

fn unknown<T>(rule: &CommandRule, option: &str) -> Result<T, Blocked> {
    let option: String = option.escape_debug().take(80).collect();
    blocked(
        "option",
        format!("`{}` may not be called with `{option}`. Allowed: {}. {PERMIT}", rule.name, allowed(rule)),
    )
}

/// The options of a rule, for a reader.
pub fn allowed(rule: &CommandRule) -> String {
    let mut options: Vec<String> = Vec::new();
    let mut chars = rule.short.chars().peekable();
    while let Some(c) = chars.next() {
        let value = match (chars.next_if_eq(&':'), chars.next_if_eq(&':')) {
            (None, _) => "",
            (Some(_), None) => " VALUE",
            (Some(_), Some(_)) => "[VALUE]",
        };
        options.push(format!("-{c}{value}"));
    }
    options.extend(rule.long.iter().map(|declared| match declared.strip_suffix("=?") {
        Some(name) => format!("--{name}[=VALUE]"),
        None => format!("--{}", declared.replace('=', "=VALUE")),
    }));
    options.extend(rule.single_dash.iter().map(|name| name.replace(':', " VALUE")));
    if options.is_empty() { "no options".to_owned() } else { options.join(" ") }
}

fn single_dash(rule: &CommandRule, word: &str, rest: &mut Rest<'_>) -> Result<(), Blocked> {
    for option in &rule.single_dash {
        match option.strip_suffix(':') {
            Some(name) if name == word => {
                return match rest.next() {
                    Some(value) => check_value(rule, word, value),
                    None => blocked("option", format!("`{word}` of `{}` needs a value", rule.name)),
                };
            }
            None if option == word => return Ok(()),
            _ => {}
        }
    }
    unknown(rule, word)
}

fn long_option(rule: &CommandRule, text: &str, rest: &mut Rest<'_>) -> Result<String, Blocked> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let option = format!("--{name}");
    for declared in &rule.long {
        let (known, takes) = match declared.strip_suffix("=?") {
            Some(known) => (known, "maybe"),
            None => declared.strip_suffix('=').map_or((declared.as_str(), "no"), |known| (known, "yes")),
        };
        if known != name {
            continue;
        }
        return match (takes, value) {
            ("no", Some(_)) => blocked("option", format!("`{option}` of `{}` takes no value", rule.name)),
            ("yes", None) => next_value(rule, &option, rest).map(|()| option),
            (_, Some(value)) => check_value(rule, &option, value).map(|()| option),
            (_, None) => Ok(option),
        };
    }
    // Abbreviations are not taken: getopt_long would accept `--comp` for `--compress-program`.
    unknown(rule, &option)
}

fn short_options(
    rule: &CommandRule,
    word: &str,
    rest: &mut Rest<'_>,
    seen: &mut Vec<String>,
) -> Result<(), Blocked> {
    let mut cluster = word.chars();
    cluster.next();
    while let Some(c) = cluster.next() {
        let option = format!("-{c}");
        let Some(at) = rule.short.find(c).filter(|_| c != ':') else {
            return unknown(rule, &option);
        };
        seen.push(option.clone());
        let behind = rule.short.get(at + c.len_utf8()..).unwrap_or_default();
        let attached = cluster.as_str();
        // `x:` takes the rest of the word or the next one, `x::` the rest of the word only.
        if behind.starts_with("::") || (behind.starts_with(':') && !attached.is_empty()) {
            return check_value(rule, &option, attached);
        }
        if behind.starts_with(':') {
            return next_value(rule, &option, rest);
        }
    }
    Ok(())
}

/// A value in a word of its own. One that looks like an option is not taken: should the program hold the
/// value for optional, it would read that word as the option that it looks like.
fn next_value(rule: &CommandRule, option: &str, rest: &mut Rest<'_>) -> Result<(), Blocked> {
    match rest.next() {
        None => blocked("option", format!("`{option}` of `{}` needs a value", rule.name)),
        Some(value) if looks_like_option(value) => {
            let shown: String = value.escape_debug().take(80).collect();
            let joined = if option.starts_with("--") { "=" } else { "" };
            blocked(
                "option",
                format!(
                    "the value of `{option}` of `{}` begins with a dash; write it in one word: `{option}{joined}{shown}`",
                    rule.name
                ),
            )
        }
        Some(value) => check_value(rule, option, value),
    }
}

/// A dash and more, but no negative number.
fn looks_like_option(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn check_value(rule: &CommandRule, option: &str, value: &str) -> Result<(), Blocked> {
    match value.chars().position(char::is_control) {
        Some(at) => blocked(
            "option",
            format!("the value of `{option}` of `{}` holds a control character at {at}", rule.name),
        ),
        None => Ok(()),
    }
}

fn check_operands(rule: &CommandRule, operands: &[&str]) -> Result<(), Blocked> {
    let mut rest = operands;
    if !rule.words.is_empty() {
        rest = behind_words(rule, operands)?;
    }
    let count = u32::try_from(rest.len()).unwrap_or(u32::MAX);
    if !(rule.operands.min..=rule.operands.max).contains(&count) {
        let (min, max) = (rule.operands.min, rule.operands.max);
        let range = if min == max { format!("{min}") } else { format!("{min} to {max}") };
        return blocked("operands", format!("`{}` takes {range} operands, not {count}", rule.name));
    }
    let pattern = match &rule.operand {
        Some(pattern) => match crate::plan::whole_pattern(pattern) {
            Ok(compiled) => Some(compiled),
            Err(error) => {
                return blocked("operands", format!("the catalogue's pattern does not compile: {error}"));
            }
        },
        None => None,
    };
    for operand in rest {
        let fits = match &pattern {
            Some(pattern) => pattern.is_match(operand),
            None => !operand.chars().any(char::is_control),
        };
        if !fits {
            let shown: String = operand.escape_debug().take(80).collect();
            return blocked("operands", format!("`{}` may not be called with `{shown}`", rule.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

/// Finds the accepted beginning, and yields what stands behind it.
fn behind_words<'w, 'o>(rule: &CommandRule, operands: &'w [&'o str]) -> Result<&'w [&'o str], Blocked> {
    let mut too_long = None;
    for declared in &rule.words {
        let (words, ends) =
            declared.strip_suffix('$').map_or((declared.as_str(), false), |words| (words, true));
        let sequence: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
        let begins = operands.len() >= sequence.len() && operands.iter().zip(&sequence).all(|(a, b)| a == b);
        match operands.get(sequence.len()..).filter(|_| begins) {
            Some(behind) if !ends || behind.is_empty() => return Ok(behind),
            Some(_) if !sequence.is_empty() => too_long = Some(words),
            _ => {}
        }
    }
    if let Some(words) = too_long {
        return blocked("words", format!("nothing may follow `{} {words}`. {PERMIT}", rule.name));
    }
    let known: Vec<&str> = rule
        .words
        .iter()
        .map(|words| words.trim_end_matches('$'))
        .filter(|words| !words.is_empty())
        .collect();
    let given = operands.first().map_or("nothing".to_owned(), |word| format!("`{}`", word.escape_debug()));
    blocked(
        "words",
        format!("`{}` must be followed by one of: {}; not by {given}. {PERMIT}", rule.name, known.join(", ")),
    )
}
