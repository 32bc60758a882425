#![forbid(unsafe_code)]
//! The names of an audit chain's full files, which the helper gives and whoever reads the chain looks for.
//!
//! The file that is written is `audit.jsonl`. A full one is named by the number of its first record, so that its
//! name says where it belongs, and which records a missing one held.

const BEFORE: &str = "audit-";
const AFTER: &str = ".jsonl";
/// As many digits as keep the order of names that of numbers, for longer than any host lives.
const DIGITS: usize = 12;

/// The name of the full file that begins with this record.
pub fn name(first: u64) -> String {
    format!("{BEFORE}{first:0DIGITS$}{AFTER}")
}

/// The record that a file of this name begins with; `None`: it is no full file of a chain.
pub fn first(name: &str) -> Option<u64> {
    let first = name.strip_prefix(BEFORE)?.strip_suffix(AFTER)?.parse().ok()?;
    (self::name(first) == name).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_a_file_belongs_and_no_other_name_does() {
        assert_eq!(name(5001), "audit-000000005001.jsonl");
        for number in [1, 5001, u64::MAX] {
            assert_eq!(first(&name(number)), Some(number));
        }
        for other in
            ["audit.jsonl", "audit-1.jsonl", "audit-+00000005001.jsonl", "audit-000000005001.jsonl.gz"]
        {
            assert_eq!(first(other), None, "{other}");
        }
    }
}
