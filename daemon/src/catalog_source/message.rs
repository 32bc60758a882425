#![forbid(unsafe_code)]
//! What a reader of a YAML error needs to hear: the problem in the words of the language and the way out.

use serde_saphyr::Error;

/// The message of a reading error, without its place.
pub(super) fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::SerdeUnknownField { field, expected, .. } => match nearest(field, expected) {
            Some(known) => format!("unknown key `{field}`; did you mean `{known}`?"),
            None => format!("unknown key `{field}`; the keys here are: {}", expected.join(" ")),
        },
        Error::SerdeUnknownVariant { variant, expected, .. } => match nearest(variant, expected) {
            Some(known) => format!("`{variant}` is not known here; did you mean `{known}`?"),
            None => format!("`{variant}` is not known here; give one of: {}", expected.join(" ")),
        },
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::SerdeInvalidType { unexpected, expected, .. } => {
            format!("this must be {expected}, not {unexpected}{}", hint(unexpected, expected))
        }
        Error::SerdeInvalidValue { unexpected, expected, .. } => {
            format!("this must be {expected}, not {unexpected}")
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key `{key}` stands twice"),
        Error::InvalidScalar { ty, .. } if ty.starts_with(['i', 'u']) => "this must be an integer".to_owned(),
        Error::InvalidBooleanStrict { .. } => "write true or false here".to_owned(),
        Error::QuotingRequired { value, .. } => {
            format!("quote this text, \"{value}\": without quotes YAML reads it as a number or a boolean")
        }
        Error::NullIntoString { .. } => "this must be a text, not empty".to_owned(),
        Error::Unexpected { expected, .. } => format!("this must be {expected}"),
        Error::Budget { .. } => {
            "the file is too large or too deeply nested; put its actions into several files".to_owned()
        }
        other => other
            .to_string()
            .lines()
            .next()
            .map(|line| line.split(" at line ").next().unwrap_or(line).to_owned())
            .unwrap_or_default(),
    }
}

/// The usual reason for a wrong type.
fn hint(unexpected: &str, expected: &str) -> &'static str {
    let text = expected.contains("text") || expected.contains("string");
    match unexpected {
        "map" if text => "; a placeholder is quoted: \"{parameter}\"",
        "map" | "sequence" => "",
        _ if text => "; quote it",
        _ => "",
    }
}

/// The known word that a mistyped one most likely stands for.
fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    known
        .iter()
        .map(|candidate| (distance(&word.to_lowercase(), candidate), *candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance (Levenshtein) of two short words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.chars().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(x != y)).min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
