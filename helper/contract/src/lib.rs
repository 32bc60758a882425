#![forbid(unsafe_code)]
//! What both halves of gloveport believe.
//!
//! The daemon validates a call with this crate before it asks the helper; the helper validates the same
//! call with the same code before it acts. Everything here is pure: no file, no clock, no process. What
//! needs the file system (does the path exist, is it a symbolic link) happens in the child, as `run_as`.

pub mod address;
pub mod approval;
pub mod catalog;
pub mod command;
pub mod limits;
pub mod named;
pub mod packet;
pub mod plan;
pub mod promises;
pub mod token;
pub mod units;
pub mod url;
pub mod volume;
