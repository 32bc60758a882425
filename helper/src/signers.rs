#![forbid(unsafe_code)]
//! Whose signatures count: OpenSSH `allowed_signers` lines, of which only what we can keep is accepted.

use crate::sshsig::{KeyError, NAMESPACE, PublicKey, base64};
use std::fmt;

/// Somebody whose signature of a catalogue counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// Who it is, as the line says.
    pub principal: String,
    /// The key.
    pub key: PublicKey,
}

/// A line that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignersError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: SignerProblem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignerProblem {
    /// Not `PRINCIPAL [namespaces="…"] TYPE KEY [COMMENT]`.
    Form,
    /// An option that we do not implement: to ignore it would widen what it narrows.
    Option(String),
    /// `namespaces` without ours.
    Namespace,
    /// A kind of key that does not count.
    KeyType(String),
    /// The key is not written in base64.
    Base64,
    /// The key is none.
    Key(KeyError),
}

impl fmt::Display for SignersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.problem {
            SignerProblem::Form => {
                write!(f, "write PRINCIPAL [namespaces=\"{NAMESPACE}\"] ssh-ed25519 KEY [COMMENT]")
            }
            SignerProblem::Option(option) => {
                write!(f, "the option `{option}` is not supported, only namespaces=\"{NAMESPACE}\" is")
            }
            SignerProblem::Namespace => {
                write!(f, "namespaces does not name {NAMESPACE}: add it, or take the line out")
            }
            SignerProblem::KeyType(kind) => {
                write!(f, "keys of type `{kind}` do not count: use ssh-ed25519 or sk-ssh-ed25519@openssh.com")
            }
            SignerProblem::Base64 => f.write_str("the key is not in base64"),
            SignerProblem::Key(error) => write!(f, "the key is not valid: {error}"),
        }
    }
}

impl std::error::Error for SignersError {}

/// Reads the lines of a `trusted_signers` file. Empty lines and those that begin with `#` are passed over.
///
/// # Errors
/// The first line that is not understood in full.
pub fn parse(text: &str) -> Result<Vec<Signer>, SignersError> {
    let lines = text.split('\n').zip(1..);
    let signers = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    signers.map(|(text, line)| parse_line(text).map_err(|problem| SignersError { line, problem })).collect()
}

fn parse_line(line: &str) -> Result<Signer, SignerProblem> {
    let mut fields = line.split([' ', '\t']).filter(|field| !field.is_empty());
    let mut next = || fields.next().ok_or(SignerProblem::Form);
    let principal = next()?;
    let mut kind = next()?;
    if kind.contains('=') || is_bare_option(kind) {
        check_options(kind)?;
        kind = next()?;
    }
    let blob = base64::decode(next()?.as_bytes());
    if !PublicKey::is_known(kind) {
        return Err(SignerProblem::KeyType(kind.to_owned()));
    }
    let key = PublicKey::from_blob(&blob.ok_or(SignerProblem::Base64)?).map_err(SignerProblem::Key)?;
    // The word in front is only a hint for people; it must not say anything else than the key does.
    if key.kind() != kind {
        return Err(SignerProblem::KeyType(kind.to_owned()));
    }
    Ok(Signer { principal: principal.to_owned(), key })
}

fn is_bare_option(word: &str) -> bool {
    ["cert-authority", "verify-required", "no-touch-required"].contains(&word)
}

fn check_options(options: &str) -> Result<(), SignerProblem> {
    let list = options
        .strip_prefix("namespaces=\"")
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|list| !list.contains('"'))
        .ok_or_else(|| SignerProblem::Option(options.to_owned()))?;
    if list.split(',').any(|namespace| namespace == NAMESPACE) {
        Ok(())
    } else {
        Err(SignerProblem::Namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";

    fn problem(line: &str) -> SignerProblem {
        parse(line).unwrap_err().problem
    }

    #[test]
    fn a_signer_may_be_bound_to_our_namespace_or_to_none() {
        for line in [
            format!("a@b {KEY}"),
            format!("a@b\t{KEY} with a comment"),
            format!("a@b namespaces=\"gloveport-catalog\" {KEY}"),
            format!("a@b namespaces=\"git,gloveport-catalog\" {KEY}\n\n# comment\n"),
        ] {
            let signers = parse(&line).unwrap();
            assert_eq!(
                signers.iter().map(|signer| signer.principal.as_str()).collect::<Vec<_>>(),
                ["a@b"],
                "{line}"
            );
        }
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_line() {
        assert_eq!(
            parse(&format!("# x\n\na@b {KEY}\na@b\n")).unwrap_err(),
            SignersError { line: 4, problem: SignerProblem::Form }
        );
        for option in [
            "valid-before=\"20300101\"",
            "cert-authority",
            "namespaces=gloveport-catalog",
            "namespaces=\"gloveport-catalog\",verify-required",
            "verify-required",
        ] {
            let expected = SignerProblem::Option(option.to_owned());
            assert_eq!(problem(&format!("a@b {option} {KEY}")), expected, "{option}");
        }
        for namespaces in ["git", "gloveport-*", "*", "gloveport-catalog2", ""] {
            let line = format!("a@b namespaces=\"{namespaces}\" {KEY}");
            assert_eq!(problem(&line), SignerProblem::Namespace, "{line}");
        }
    }

    #[test]
    fn only_ed25519_keys_count_and_each_by_its_own_name() {
        assert_eq!(problem("a@b ssh-rsa AAAAB3NzaC1yc2E="), SignerProblem::KeyType("ssh-rsa".into()));
        let misnamed = KEY.replace("ssh-ed25519 ", "sk-ssh-ed25519@openssh.com ");
        let expected = SignerProblem::KeyType("sk-ssh-ed25519@openssh.com".into());
        assert_eq!(problem(&format!("a@b {misnamed}")), expected);
        assert_eq!(problem(&format!("a@b {}", KEY.strip_suffix("s").unwrap())), SignerProblem::Base64);
        assert_eq!(
            problem(&format!("a@b {}", KEY.strip_suffix("RtIs").unwrap())),
            SignerProblem::Key(KeyError::Form)
        );
        let weak = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        assert_eq!(problem(&format!("a@b {weak}")), SignerProblem::Key(KeyError::Weak));
    }
}
