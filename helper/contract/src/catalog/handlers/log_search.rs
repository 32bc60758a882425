#![forbid(unsafe_code)]
//! What `log_search` takes.

use super::Form;
use super::Takes::{Integer, Text, Texts};
use super::{Problem, files};
use crate::catalog::BuiltinConfig;

pub(super) const FORM: Form = Form {
    required: &[("paths", Texts)],
    optional: &[
        ("pattern", Text),
        ("context", Integer),
        ("since", Text),
        ("until", Text),
        ("max_matches", Integer),
        ("order", Text),
    ],
    required_keys: &["roots"],
    optional_keys: &["max_files", "max_scan", "max_matches", "max_context"],
    check,
};

fn check(config: &BuiltinConfig) -> Result<(), Problem> {
    files::check_globs("roots", &config.roots)
}
