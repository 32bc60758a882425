#![forbid(unsafe_code)]
//! What a change of a catalogue permits that was not permitted before, in words.
//!
//! The table of the language says of each key what more of it means; this module only compares.

use super::language::{Absent, Block, Effect, Key, Shape, root};
use gloveport_contract::catalog::{Action, Catalog};
use gloveport_contract::units::{Bytes, Millis};
use serde_json::{Map, Value};
use std::fmt;

/// Which way a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Something is permitted that was not.
    More,
    /// Something else is permitted: a reviewer has to look.
    Other,
    /// Something is no longer permitted.
    Less,
    /// Words only.
    Words,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The action.
    pub action: String,
    /// Which way it goes.
    pub direction: Direction,
    /// What changed, in words.
    pub text: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.direction {
            Direction::More => '+',
            Direction::Other => '!',
            Direction::Less => '-',
            Direction::Words => ' ',
        };
        write!(f, "{sign} {}: {}", self.action, self.text)
    }
}

/// Compares two catalogues, action by action. Within one, what permits more stands first.
pub fn diff(old: &Catalog, new: &Catalog) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut names: Vec<&str> =
        old.actions.iter().chain(&new.actions).map(|action| action.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let mut comparison = Comparison::default();
        match (old.action(name), new.action(name)) {
            (None, Some(new)) => comparison.say(Direction::More, format!("new action, {}", summary(new))),
            (Some(_), None) => comparison.say(Direction::Less, "the action is gone".to_owned()),
            (Some(old), Some(new)) => comparison.block(root(), "", &object(old), &object(new)),
            (None, None) => {}
        }
        comparison.found.sort_by_key(|(direction, _)| *direction);
        changes.extend(comparison.found.into_iter().map(|(direction, text)| Change {
            action: name.to_owned(),
            direction,
            text,
        }));
    }
    changes
}

fn summary(action: &Action) -> String {
    let risk = action.risk.as_str();
    format!("risk {risk}, as {}: {}", action.run_as(), action.description.trim())
}

fn object(action: &Action) -> Map<String, Value> {
    match serde_json::to_value(action) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

#[derive(Default)]
struct Comparison {
    found: Vec<(Direction, String)>,
}

impl Comparison {
    fn say(&mut self, direction: Direction, text: String) {
        self.found.push((direction, text));
    }

    fn block(&mut self, block: &Block, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        for key in block.keys {
            let at = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
            self.key(key, &at, old.get(key.name), new.get(key.name));
        }
    }

    fn key(&mut self, key: &Key, at: &str, old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        if key.effect == Effect::Words && !matches!(key.shape, Shape::Block(_)) {
            return self.say(Direction::Words, format!("`{at}` is worded otherwise"));
        }
        let empty = Map::new();
        match &key.shape {
            Shape::Block(block) => match (entries(old), entries(new)) {
                // What one of the two leaves out means its defaults, except where it replaces another block.
                (None, None) => self.other(at, old, new),
                (old_block, new_block)
                    if key.effect != Effect::Decides || (old.is_some() && new.is_some()) =>
                {
                    self.block(block, at, old_block.unwrap_or(&empty), new_block.unwrap_or(&empty));
                }
                _ => self.other(at, old, new),
            },
            Shape::Map(Shape::Block(block)) => {
                self.named(block, at, &pairs(old), &pairs(new));
            }
            Shape::List(Shape::Block(block)) | Shape::List(Shape::Either([_, Shape::Block(block)]))
                if is_named(old) && is_named(new) =>
            {
                self.named(block, at, &by_name(old), &by_name(new));
            }
            Shape::Either([Shape::Time, Shape::Block(block)]) => match (entries(old), entries(new)) {
                (Some(old), Some(new)) => self.block(block, at, old, new),
                (None, None) => self.number(key, at, old, new),
                _ => self.other(at, old, new),
            },
            Shape::Either([Shape::Path, Shape::Block(block)]) => match (entries(old), entries(new)) {
                (Some(old), Some(new)) => self.block(block, at, old, new),
                _ => self.other(at, old, new),
            },
            Shape::List(_) | Shape::Optstring | Shape::Either(_) if key.effect != Effect::Decides => {
                self.set(key, at, old, new);
            }
            Shape::Integer(..) | Shape::Size | Shape::Time => self.number(key, at, old, new),
            Shape::Range => self.range(at, old, new),
            Shape::Boolean => {
                let now = new == Some(&Value::Bool(true));
                let text = if now { format!("`{at}` is set") } else { format!("`{at}` is no longer set") };
                self.say(toward(key.effect, now), text);
            }
            Shape::Word(words) if key.effect != Effect::Decides => {
                let rank = |value: Option<&Value>| {
                    let word = value.and_then(Value::as_str).or(default(key));
                    words.iter().position(|(known, _)| Some(*known) == word)
                };
                let direction = toward(key.effect, rank(new) > rank(old));
                self.say(direction, format!("`{at}` {}", from_to(key, old, new)));
            }
            _ if key.effect == Effect::Narrows && (old.is_none() || new.is_none()) => {
                let text = format!("`{at}` {}", from_to(key, old, new));
                self.say(toward(Effect::Narrows, new.is_some()), text);
            }
            _ => self.other(at, old, new),
        }
    }

    fn other(&mut self, at: &str, old: Option<&Value>, new: Option<&Value>) {
        let text = match (old, new) {
            (None, Some(new)) => format!("`{at}` is new: {}", shown(new)),
            (Some(old), None) => format!("`{at}` is gone: {}", shown(old)),
            _ => format!(
                "`{at}` changed\n      was {}\n      is  {}",
                old.map(shown).unwrap_or_default(),
                new.map(shown).unwrap_or_default()
            ),
        };
        self.say(Direction::Other, text);
    }

    /// Mappings by name: parameters, steps, command rules.
    fn named(&mut self, block: &Block, at: &str, old: &[Named<'_>], new: &[Named<'_>]) {
        let find = |pairs: &[Named<'_>], name: &str| pairs.iter().any(|(known, _)| *known == name);
        for (name, value) in new {
            match old.iter().find(|(known, _)| known == name) {
                None => self.say(Direction::More, format!("`{at}` also `{name}`: {}", shown(value))),
                Some((_, old)) => {
                    if let (Some(old), Some(new)) = (entries(Some(old)), entries(Some(value))) {
                        self.block(block, &format!("{at}.{name}"), old, new);
                    }
                }
            }
        }
        for (name, _) in old.iter().filter(|(name, _)| !find(new, name)) {
            self.say(Direction::Less, format!("`{at}` no longer `{name}`"));
        }
        let order = |pairs: &[Named<'_>], others: &[Named<'_>]| -> Vec<String> {
            pairs.iter().filter(|(name, _)| find(others, name)).map(|(name, _)| (*name).to_owned()).collect()
        };
        if block.id == "step" && order(old, new) != order(new, old) {
            self.say(
                Direction::Other,
                format!("`{at}` run in another order: {}", order(new, old).join(", ")),
            );
        }
    }

    fn set(&mut self, key: &Key, at: &str, old: Option<&Value>, new: Option<&Value>) {
        let with_default = |value: Option<&Value>| match value {
            Some(value) => elements(&key.shape, value),
            None => default(key).map(list_of).unwrap_or_default(),
        };
        let (old, new) = (with_default(old), with_default(new));
        for element in new.iter().filter(|element| !old.contains(element)) {
            self.say(toward(key.effect, true), format!("`{at}` also {element}"));
        }
        for element in old.iter().filter(|element| !new.contains(element)) {
            self.say(toward(key.effect, false), format!("`{at}` no longer {element}"));
        }
    }

    fn number(&mut self, key: &Key, at: &str, old: Option<&Value>, new: Option<&Value>) {
        let number = |value: Option<&Value>| match value {
            Some(value) => measure(value),
            // Without a bound: the widest, which is the highest for what widens and the lowest else.
            None => match (default(key), key.effect) {
                (Some(text), _) => measure(&Value::String(text.to_owned())),
                (None, Effect::Narrows) => Some(i128::MIN),
                (None, _) => Some(i128::MAX),
            },
        };
        match (number(old), number(new)) {
            (Some(before), Some(after)) => {
                let text = format!("`{at}` {}", from_to(key, old, new));
                let direction =
                    if before == after { Direction::Words } else { toward(key.effect, after > before) };
                self.say(direction, text);
            }
            _ => self.other(at, old, new),
        }
    }

    fn range(&mut self, at: &str, old: Option<&Value>, new: Option<&Value>) {
        let ends = |value: Option<&Value>| -> Option<(u64, u64)> {
            match value {
                None => Some((0, 0)),
                Some(Value::String(text)) => {
                    let (min, max) = text.split_once("..")?;
                    Some((min.parse().ok()?, max.parse().ok()?))
                }
                Some(value) => value.as_u64().map(|count| (count, count)),
            }
        };
        let (Some(before), Some(after)) = (ends(old), ends(new)) else {
            return self.other(at, old, new);
        };
        let direction =
            match (after.0 <= before.0 && after.1 >= before.1, after.0 >= before.0 && after.1 <= before.1) {
                (true, _) => Direction::More,
                (_, true) => Direction::Less,
                _ => Direction::Other,
            };
        self.say(direction, format!("`{at}` from {}..{} to {}..{}", before.0, before.1, after.0, after.1));
    }
}

/// A value and its name.
type Named<'v> = (&'v str, &'v Value);

fn toward(effect: Effect, more: bool) -> Direction {
    match (effect, more) {
        (Effect::Widens, true) | (Effect::Narrows, false) => Direction::More,
        (Effect::Widens, false) | (Effect::Narrows, true) => Direction::Less,
        (Effect::Decides, _) => Direction::Other,
        (Effect::Words, _) => Direction::Words,
    }
}

fn default(key: &Key) -> Option<&'static str> {
    match key.absent {
        Absent::Default(text) => Some(text),
        Absent::Required | Absent::Nothing => None,
    }
}

fn entries(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn pairs(value: Option<&Value>) -> Vec<Named<'_>> {
    entries(value).into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Whether every element has a `name` (steps and command rules have, a redis command is a text).
fn is_named(value: Option<&Value>) -> bool {
    items(value).all(|item| item.get("name").is_some())
}

fn by_name(value: Option<&Value>) -> Vec<Named<'_>> {
    items(value).filter_map(|item| Some((item.get("name")?.as_str()?, item))).collect()
}

/// The elements of a set, each in words. Ports are elements of their own.
fn elements(shape: &Shape, value: &Value) -> Vec<String> {
    match (shape, value) {
        (Shape::Optstring, Value::String(text)) => {
            let mut options: Vec<String> = Vec::new();
            for c in text.chars() {
                match (c, options.last_mut()) {
                    (':', Some(option)) => option.push(':'),
                    _ => options.push(format!("-{c}")),
                }
            }
            options
        }
        (_, Value::String(text)) if text == "none" => Vec::new(),
        (_, Value::Array(items)) => items.iter().flat_map(|item| elements(shape, item)).collect(),
        (_, Value::Object(map)) => map
            .iter()
            .flat_map(|(class, ports)| items(Some(ports)).map(move |port| format!("{class} {port}")))
            .collect(),
        (_, value) => vec![shown(value)],
    }
}

/// The elements of a default that is written as `[a, b]`, or `none`.
fn list_of(text: &str) -> Vec<String> {
    text.trim_matches(['[', ']']).split(", ").filter(|word| *word != "none").map(str::to_owned).collect()
}

/// A number, a size in bytes or a time in milliseconds.
fn measure(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)),
        Value::String(text) => Millis::parse(text)
            .map(|time| time.0)
            .or_else(|| Bytes::parse(text).map(|bytes| bytes.0))
            .map(i128::from),
        _ => None,
    }
}

fn from_to(key: &Key, old: Option<&Value>, new: Option<&Value>) -> String {
    let word = |value: Option<&Value>| {
        value.map(shown).or(default(key).map(str::to_owned)).unwrap_or_else(|| "nothing".to_owned())
    };
    format!("from {} to {}", word(old), word(new))
}

/// A value for a reader, on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.chars().any(char::is_control) => text.clone(),
        value => value.to_string(),
    }
}
