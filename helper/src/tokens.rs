#![forbid(unsafe_code)]
//! Loads the tokens and what each may call.

use crate::trusted_file::{self, Problem, TrustedFileError};
use gloveport_contract::limits;
use gloveport_contract::token::Tokens;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why there are no tokens.
#[derive(Debug)]
pub enum TokensError {
    /// The file is not trusted.
    File(TrustedFileError),
    /// It is not what `gloveport token add` writes; the message names line and column.
    Malformed(PathBuf, serde_json::Error),
    /// An entry is wrong.
    Entry(PathBuf, String),
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Malformed(path, error) => {
                write!(f, "{}: {error}; mend it, or revoke and add tokens anew", path.display())
            }
            Self::Entry(path, problem) => write!(f, "{}: {problem}", path.display()),
        }
    }
}

impl std::error::Error for TokensError {}

/// Reads the tokens. Without a file there are none.
///
/// # Errors
/// The file is not trusted, no JSON of the right shape, or an entry is wrong.
pub fn load(path: &Path, same_user: bool) -> Result<Tokens, TokensError> {
    match trusted_file::read(path, limits::TOKENS_FILE, same_user) {
        Ok(bytes) => parse(path, &bytes),
        Err(TrustedFileError { problem: Problem::Missing, .. }) => Ok(Tokens::default()),
        Err(error) => Err(TokensError::File(error)),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Tokens, TokensError> {
    let tokens: Tokens =
        serde_json::from_slice(bytes).map_err(|error| TokensError::Malformed(path.to_owned(), error))?;
    tokens.check().map_err(|problem| TokensError::Entry(path.to_owned(), problem))?;
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(Path::new("/etc/gloveport/tokens.json"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_missing_file_is_an_empty_set() {
        assert_eq!(load(Path::new("/etc/gloveport-absent/tokens.json"), false).unwrap(), Tokens::default());
    }

    #[test]
    fn a_malformed_file_is_named_with_line_and_column() {
        let message = message("{\n  \"tokens\": [\n    {\"nam\": \"ci\"}\n  ]\n}");
        assert!(message.contains("tokens.json") && message.contains("line 3 column"), "{message}");
    }

    #[test]
    fn a_digest_that_is_none_is_named_with_its_token() {
        let entry = r#"{"tokens": [{"name": "ci", "id": "1", "sha256": "XY", "via": ["header"],
            "scope": {"allow": ["*"], "max_risk": "read"}}]}"#;
        assert!(message(entry).contains("token `ci`"), "{}", message(entry));
    }

    #[test]
    fn text_after_the_document_is_refused() {
        assert!(message("{} {}").contains("trailing"), "{}", message("{} {}"));
    }
}
