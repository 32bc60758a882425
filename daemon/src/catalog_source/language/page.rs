#![forbid(unsafe_code)]
//! The reference page.

use super::{Absent, Block, Key, Shape, blocks};
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The catalogue language

Generated from the table that also yields the JSON Schema (`gloveport catalog schema`); a test compares
them. How to get from a task to a signed action is told in [catalog-guide.md](catalog-guide.md).

A source is a YAML file (`*.yaml`, `*.yml`) of UTF-8 text, at most 1 MiB. Each of its documents, separated
by `---`, is one action. Unknown keys, keys that stand twice, anchors, aliases, tags and merge keys are
errors. Only `true` and `false` are booleans. A text that YAML would read as a number or a boolean is
quoted, and so is a placeholder: `\"{unit}\"`.

| written | is |
| --- | --- |
| size | `512`, `512B`, `256KB` (1000), `256KiB` (1024), up to `GB` and `GiB` |
| time | `250ms`, `20s`, `5m`, `2h` |
| name | 1 to 64 of `A-Z a-z 0-9 . _ -` |
| path | absolute, without `.`, `..`, empty parts and trailing slash, at most 4095 bytes |
| pattern | RE2 syntax without Unicode classes, at most 1000 characters, matched against the whole value |
";

/// The reference of all keys, as Markdown.
pub fn reference_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for block in blocks() {
        section(block, &mut page);
    }
    page
}

fn section(block: &Block, page: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {}\n\n{}\n\n", block.title, block.about);
    page.push_str("| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in block.keys {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            key.name,
            cell(&shape(&key.shape)),
            default(key),
            cell(&meaning(key))
        );
    }
}

/// A text within a table: a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn default(key: &Key) -> String {
    match key.absent {
        Absent::Required => "required".to_owned(),
        Absent::Nothing => String::new(),
        Absent::Default(text) => format!("`{text}`"),
    }
}

fn meaning(key: &Key) -> String {
    let mut text = key.about.to_owned();
    let mut words = Vec::new();
    meanings(&key.shape, &mut words);
    for (word, meaning) in words {
        // Writing to a String cannot fail.
        let _ = write!(text, "<br>`{word}`: {meaning}");
    }
    text
}

fn meanings(shape: &Shape, into: &mut Vec<(&'static str, &'static str)>) {
    match shape {
        Shape::Word(words) => into.extend(*words),
        Shape::List(inner) | Shape::Map(inner) => meanings(inner, into),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| meanings(shape, into)),
        _ => {}
    }
}

fn shape(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Name => "name".to_owned(),
        Shape::Path => "path".to_owned(),
        Shape::OptionalPath => "path or `?`path".to_owned(),
        Shape::Pattern => "pattern".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer(i64::MIN, i64::MAX) => "integer".to_owned(),
        Shape::Integer(min, max) if *max >= 1 << 32 => format!("integer from {min}"),
        Shape::Integer(min, max) => format!("integer {min} to {max}"),
        Shape::Size => "size".to_owned(),
        Shape::Time => "time".to_owned(),
        Shape::Word(_) => "word".to_owned(),
        Shape::Argv => "argv".to_owned(),
        Shape::Optstring => "optstring".to_owned(),
        Shape::Range => "number or `MIN..MAX`".to_owned(),
        Shape::Literal => "value".to_owned(),
        Shape::Map(inner) => format!("{} by name", self::shape(inner)),
        Shape::List(inner) => format!("list of {}", self::shape(inner)),
        Shape::Block(block) => format!("[{}](#{})", block.id, anchor(block.title)),
        Shape::Either(shapes) => shapes.iter().map(self::shape).collect::<Vec<_>>().join(" or "),
    }
}

/// The anchor that a Markdown reader gives to a heading.
fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}
