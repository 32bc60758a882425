#![forbid(unsafe_code)]
//! The audit chain: who asked for what, what was decided, and how it ended.
//!
//! One process writes it, see [`writer`]. Every other process of the helper holds a [`Client`], sends it a
//! [`Record`] and gets a receipt: the record's number and hash, which also go into the tool's result.

mod abbreviate;
mod chain;
mod client;
mod control;
mod filter;
mod journal;
mod record;
mod recovery;
mod reply;
mod time;
mod volumes;
pub mod writer;

pub use abbreviate::text;
pub use client::{AuditError, Client};
pub use control::{Handed, hand, is_asked_for_next};
pub use journal::Journal;
pub use record::{CallerProof, Decision, Kind, Record, StepRecord, rule};
pub use time::now;
pub use volumes::{Place, begin, begin_head, is_at, place, turn};
