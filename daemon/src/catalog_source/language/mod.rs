#![forbid(unsafe_code)]
//! The language as a table: every key with its type, its default, its meaning and what it permits.
//!
//! The JSON Schema for editors, the reference page and `catalog diff` are all read from here, so none of
//! them can disagree with another. That the table and the reader know the same keys is a test.

mod action;
mod builtin;
mod page;
mod param;
mod sandbox;
mod schema;

pub use page::reference_page;
pub use schema::json_schema;

/// A mapping of the language.
#[derive(Debug)]
pub struct Block {
    /// Its name in the schema.
    pub id: &'static str,
    /// Its heading in the reference.
    pub title: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its keys, in the order of the reference.
    pub keys: &'static [Key],
}

/// A key of a mapping.
#[derive(Debug)]
pub struct Key {
    /// The key as written.
    pub name: &'static str,
    /// What may stand there.
    pub shape: Shape,
    /// What holds where it is not given.
    pub absent: Absent,
    /// What a change of it means for a reviewer.
    pub effect: Effect,
    /// What it means.
    pub about: &'static str,
}

/// What holds where a key is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// It must be given.
    Required,
    /// Nothing, the empty list, `false`.
    Nothing,
    /// The same as this text of the language.
    Default(&'static str),
}

/// What a change of a key means for a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Says nothing about what is permitted.
    Words,
    /// More of it (a higher number, one more element, `true`, a later word) permits more. A number that
    /// is absent without a default is unbounded.
    Widens,
    /// More of it permits less.
    Narrows,
    /// Another value permits something else.
    Decides,
}

/// What may stand at a key.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Any text.
    Text,
    /// `[A-Za-z0-9._-]{1,64}`.
    Name,
    /// An absolute path without `.`, `..` and empty parts.
    Path,
    /// The same, and `?` before it where it may be absent on a host.
    OptionalPath,
    /// A pattern in RE2 syntax without Unicode classes.
    Pattern,
    /// `true` or `false`.
    Boolean,
    /// An integer within these bounds.
    Integer(i64, i64),
    /// A size such as `256KB`.
    Size,
    /// A time such as `20s`.
    Time,
    /// One of these words, each with its meaning; from the least to the most permissive.
    Word(&'static [(&'static str, &'static str)]),
    /// An argv: texts, `"{parameter}"` and optional groups.
    Argv,
    /// An optstring as getopt(3) has it.
    Optstring,
    /// A number, or a range such as `0..64`.
    Range,
    /// A text, an integer, a boolean or a list of those.
    Literal,
    /// Values by name.
    Map(&'static Shape),
    /// A list.
    List(&'static Shape),
    /// A mapping.
    Block(&'static Block),
    /// One of several.
    Either(&'static [Shape]),
}

/// The mapping that a source document is.
pub fn root() -> &'static Block {
    &action::ACTION
}

/// Every mapping, the document first, each once.
pub fn blocks() -> Vec<&'static Block> {
    let mut found = vec![root()];
    let mut next = 0;
    while let Some(block) = found.get(next).copied() {
        for key in block.keys {
            collect(&key.shape, &mut found);
        }
        next += 1;
    }
    found
}

fn collect(shape: &'static Shape, found: &mut Vec<&'static Block>) {
    match shape {
        Shape::Block(block) if !found.iter().any(|known| known.id == block.id) => found.push(block),
        Shape::List(inner) | Shape::Map(inner) => collect(inner, found),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| collect(shape, found)),
        _ => {}
    }
}

/// A key of the table, for the tables' own brevity.
const fn key(name: &'static str, shape: Shape, absent: Absent, effect: Effect, about: &'static str) -> Key {
    Key { name, shape, absent, effect, about }
}
