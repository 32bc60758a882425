#![forbid(unsafe_code)]
//! The harness of the end-to-end suites.
//!
//! A test makes a [`Scene`]: a root-owned directory, two user numbers that nobody else uses, and copies of the
//! programs where those users can execute them. In it runs either the whole [`Pair`], as `gloveport up` starts
//! it, or the [`Helper`] alone, with the test in the daemon's place. When it is over, nothing of the two users
//! may be left running.
//!
//! Root is required, and a release build of all programs; `make test` provides both.

pub mod action;
pub mod cgroup;
pub mod clients;
pub mod daemon;
pub mod fake_daemon;
pub mod golden;
pub mod helper;
pub mod http;
pub mod kept;
pub mod linux_agent;
pub mod mcp;
pub mod pair;
pub mod processes;
pub mod programs;
pub mod scene;
pub mod scratch;
pub mod servers;
pub mod signing;
pub mod sshd;
pub mod stages;
pub mod stdio;
pub mod strace;
pub mod terminal;
pub mod uid;

pub use daemon::Daemon;
pub use fake_daemon::{Connection, Finished};
pub use helper::Helper;
pub use pair::Pair;
pub use scene::Scene;
