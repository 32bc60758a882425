#![forbid(unsafe_code)]
//! Everything unprivileged: the daemon, and what the programs share.

pub mod accounts;
pub mod catalog_source;
pub mod config;
pub mod confine;
pub mod helper;
pub mod http;
pub mod log;
pub mod mcp;
pub mod metrics;
pub mod options;
pub mod paths;
pub mod policy;
pub mod run;
pub mod serve;
