#![forbid(unsafe_code)]
//! The keys of a parameter.

use super::Absent::{Default, Nothing, Required};
use super::Effect::{Decides, Narrows, Widens, Words};
use super::{Block, Shape, key};

/// The highest length, count or number that JSON readers agree upon.
const MANY: i64 = (1 << 53) - 1;

pub(super) static PARAM: Block = Block {
    id: "param",
    title: "Parameter",
    about: "A value of `params`, and `items` of a list. Which keys a type takes stands with each key.",
    keys: &[
        key(
            "type",
            Shape::Word(&[
                ("string", "UTF-8 text without NUL; without a `pattern` also without control characters"),
                ("integer", "a 64-bit integer, from 0 where neither `min` nor `allow_dash` says otherwise"),
                ("boolean", "`true` or `false`; in an optional group a switch that adds nothing itself"),
                ("enum", "one of `values`"),
                (
                    "path",
                    "an absolute path under one of `roots`, also after resolving symbolic links as \
                     `run_as`",
                ),
                ("list", "several values of one scalar type, each an element of its own"),
                ("content", "bytes that travel by stdin, with their length and SHA-256 in the request"),
            ]),
            Required,
            Decides,
            "What the value is.",
        ),
        key("description", Shape::Text, Nothing, Words, "What it is for. Agents read this."),
        key(
            "optional",
            Shape::Boolean,
            Default("false"),
            Widens,
            "May be left out. In an argv it then stands in an optional group.",
        ),
        key("default", Shape::Literal, Nothing, Decides, "The value where a call gives none."),
        key(
            "pattern",
            Shape::Pattern,
            Nothing,
            Narrows,
            "`string`: what the whole value must match (RE2 syntax without Unicode classes).",
        ),
        key("min", Shape::Integer(i64::MIN, i64::MAX), Nothing, Narrows, "`integer`: the lowest value."),
        key("max", Shape::Integer(i64::MIN, i64::MAX), Nothing, Widens, "`integer`: the highest value."),
        key(
            "min_length",
            Shape::Integer(0, MANY),
            Nothing,
            Narrows,
            "`string`, `content`: the shortest, in characters (content: bytes).",
        ),
        key(
            "max_length",
            Shape::Integer(0, MANY),
            Nothing,
            Widens,
            "`string`, `path`, `content`: the longest, in characters (path, content: bytes). Without it \
             1024 characters, 4095 bytes of a path, 16 MiB of content.",
        ),
        key("values", Shape::List(&Shape::Text), Nothing, Widens, "`enum`: the values."),
        key(
            "roots",
            Shape::List(&Shape::Path),
            Nothing,
            Widens,
            "`path`: directories that it must lie under, at a component boundary.",
        ),
        key("must_exist", Shape::Boolean, Default("false"), Narrows, "`path`: whether it must exist."),
        key(
            "allow_dash",
            Shape::Boolean,
            Default("false"),
            Widens,
            "`string`, `integer`: whether it may begin with `-`, which a program may read as an option.",
        ),
        key(
            "secret",
            Shape::Boolean,
            Default("false"),
            Narrows,
            "`string`, `content`: kept out of argv, logs and the audit record.",
        ),
        key("items", Shape::Block(&PARAM), Nothing, Decides, "`list`: the type of each item."),
        key("min_items", Shape::Integer(0, 1024), Nothing, Narrows, "`list`: the fewest items."),
        key("max_items", Shape::Integer(0, 1024), Default("64"), Widens, "`list`: the most items."),
    ],
};
