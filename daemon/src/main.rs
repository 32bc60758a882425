#![forbid(unsafe_code)]
//! Being written.
fn main() {}
