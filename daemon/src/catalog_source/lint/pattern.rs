#![forbid(unsafe_code)]
//! What a pattern can match, read off its syntax tree.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Which bytes a pattern can match where they are risky.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    /// A line break, anywhere.
    pub newline: bool,
    /// A dash as the first character.
    pub leading_dash: bool,
}

/// What a pattern of a parameter can match; `None` where it is no pattern.
pub(super) fn reach(pattern: &str) -> Option<Reach> {
    let tree = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    Some(Reach { newline: has(&tree, b'\n'), leading_dash: begins_with(&tree, b'-') })
}

fn class_has(class: &Class, byte: u8) -> bool {
    match class {
        Class::Bytes(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte))
        }
        Class::Unicode(class) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&char::from(byte)))
        }
    }
}

/// Whether the byte can stand anywhere in a match.
fn has(tree: &Hir, byte: u8) -> bool {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Class(class) => class_has(class, byte),
        HirKind::Repetition(repetition) => repetition.max != Some(0) && has(&repetition.sub, byte),
        HirKind::Capture(capture) => has(&capture.sub, byte),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(|part| has(part, byte)),
    }
}

/// Whether a match can begin with the byte.
fn begins_with(tree: &Hir, byte: u8) -> bool {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.first() == Some(&byte),
        HirKind::Class(class) => class_has(class, byte),
        HirKind::Repetition(repetition) => repetition.max != Some(0) && begins_with(&repetition.sub, byte),
        HirKind::Capture(capture) => begins_with(&capture.sub, byte),
        HirKind::Alternation(parts) => parts.iter().any(|part| begins_with(part, byte)),
        HirKind::Concat(parts) => {
            for part in parts {
                if begins_with(part, byte) {
                    return true;
                }
                if part.properties().minimum_len() != Some(0) {
                    return false;
                }
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_is_found_in_classes_and_literals() {
        for pattern in ["[^x]+", r"\s", "(?s).*", r"a\nb", r"[\t-\r]", r"\W"] {
            assert!(reach(pattern).unwrap().newline, "{pattern}");
        }
        for pattern in [".*", "[a-z ]+", r"\w+", "[A-Za-z0-9@:._-]+", "(?:a|b)?"] {
            assert!(!reach(pattern).unwrap().newline, "{pattern}");
        }
    }

    #[test]
    fn a_leading_dash_is_found_behind_what_may_be_empty() {
        for pattern in ["-x", "[a-]+", "a?-", "(?:x|-y)", ".", "^-", "a{0}-"] {
            assert!(reach(pattern).unwrap().leading_dash, "{pattern}");
        }
        for pattern in ["a-", "[a-z]-", "x+-", "", "(?:ab|cd)-"] {
            assert!(!reach(pattern).unwrap().leading_dash, "{pattern}");
        }
    }
}
