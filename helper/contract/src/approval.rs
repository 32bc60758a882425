#![forbid(unsafe_code)]
//! What is held until a person decides, and the decision: two files of root's in `pending/`.
//!
//! `ID.json` is written by the helper and says what would run; `ID.decision` is renamed into place by root.
//! Both name the digest of exactly what would run, so that a yes counts for nothing else.

use crate::catalog::Risk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest decision file, bytes.
pub const DECISION: usize = 16 * 1024;

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// Its id, for `gloveport approve`.
    pub id: String,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
    /// How long it is held from then on, milliseconds.
    pub timeout_ms: u64,
    /// The action.
    pub action: String,
    /// Its risk.
    pub risk: Risk,
    /// The token's name, or the local user's.
    pub caller: String,
    /// `token`, or `daemon-says` where only the daemon says who calls.
    pub caller_proof: String,
    /// The peer's address, as the daemon says.
    pub peer: String,
    /// The client's name and version, as it says.
    pub client: String,
    /// The account that the programs run as.
    pub run_as: String,
    /// Where they start.
    pub cwd: String,
    /// The arguments of the call, `name=value`; those of secret parameters without their value.
    pub args: Vec<String>,
    /// The argv of each step.
    pub argv: Vec<Vec<String>>,
    /// What comes by stdin.
    pub content: Option<Content>,
    /// SHA-256 of each signed script, by its step's name.
    pub scripts: BTreeMap<String, String>,
    /// SHA-256 of the catalogue.
    pub catalog: String,
    /// The digest of exactly what would run.
    pub digest: String,
}

/// Content that comes by stdin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Its length in bytes.
    pub length: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// What a person has decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Yes or no.
    pub answer: Answer,
    /// The digest of what was looked at.
    pub digest: String,
    /// Who, for the record: root's word.
    pub by: String,
    /// Why, for the client; may be empty.
    pub reason: String,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It may run, once.
    Approve,
    /// It may not.
    Deny,
}

/// Whether a text can be an id, and so a part of a file's name.
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_out_of_its_directory() {
        assert!(is_id("19ad5b4f1a2-4711"));
        for wrong in ["", ".", "..", "a/b", "../x", "a.b", &"a".repeat(65)] {
            assert!(!is_id(wrong), "{wrong}");
        }
    }
}
