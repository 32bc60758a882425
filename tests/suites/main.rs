#![forbid(unsafe_code)]
//! The end-to-end suites, against the real programs. A module for each subject; tests that must not share the
//! machine with others lie in a module `alone`.

mod actions;
mod approval;
mod attacks;
mod audit_chain;
mod catalogue_trust;
mod client_settings;
mod confined_daemon;
mod conformance;
mod errors;
mod execute_command;
mod fault_injection;
mod filter;
mod fleet;
mod forgotten_rule;
mod fuzz_corpus;
mod handlers;
mod lifetimes;
mod mcp;
mod namespaces;
mod newcomer;
mod one_shot;
mod one_shot_rules;
mod order;
mod packaging;
mod real_clients;
mod runs;
mod sandbox_table;
mod scopes;
mod ssh;
mod ssh_ops;
mod stdio;
mod taken_over_daemon;
mod temporary_directory;
mod tree_mechanisms;
mod trees;
mod ufo;
mod what_a_program_gets;
mod wire;
