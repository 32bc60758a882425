#![forbid(unsafe_code)]
//! What `mysql_query` takes.

use super::Form;
use super::Takes::{Scalars, Text};
use super::server;

pub(super) const FORM: Form = Form {
    required: &[("sql", Text)],
    optional: &[("values", Scalars)],
    required_keys: &["server"],
    optional_keys: &["database", "credential", "max_rows", "max_bytes", "timeout"],
    check: server::check,
};
