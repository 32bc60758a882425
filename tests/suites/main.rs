#![forbid(unsafe_code)]
//! The end-to-end suites, against the real programs.
