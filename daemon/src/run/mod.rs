//! Being written.
pub mod report;
