#![forbid(unsafe_code)]
//! What `read_file` and `write_file` take, and the globs of their roots.

use super::Form;
use super::Takes::{Boolean, Content, Integer, Text};
use super::{Problem, problem};
use crate::plan::is_absolute_path;

pub(super) const READ: Form = Form {
    required: &[("path", Text)],
    optional: &[("start_line", Integer), ("lines", Integer), ("offset", Integer), ("bytes", Integer)],
    required_keys: &["read"],
    optional_keys: &["max_bytes"],
    check: |config| check_globs("read", &config.read),
};

pub(super) const WRITE: Form = Form {
    required: &[("path", Text), ("content", Content)],
    optional: &[
        ("encoding", Text),
        ("append", Boolean),
        ("backup", Boolean),
        ("mode", Text),
        ("expect", Text),
        ("dry_run", Boolean),
    ],
    required_keys: &["write"],
    optional_keys: &["max_bytes"],
    check: |config| check_globs("write", &config.write),
};

/// Checks the globs of one key.
pub(super) fn check_globs(key: &str, globs: &[String]) -> Result<(), Problem> {
    globs
        .iter()
        .enumerate()
        .try_for_each(|(index, glob)| check_glob(&format!("builtin_config.{key}.{index}"), glob))
}

fn check_glob(at: &str, glob: &str) -> Result<(), Problem> {
    if !is_absolute_path(glob) {
        return problem(at, format!("`{glob}` is not absolute without `.`, `..` and empty parts"));
    }
    let count = |c: char| glob.matches(c).count();
    if count('[') != count(']') || count('{') != count('}') || glob.contains('\\') {
        return problem(at, format!("`{glob}` is no glob: `*`, `?`, `**`, `[a-z]` and `{{a,b}}` are known"));
    }
    Ok(())
}
