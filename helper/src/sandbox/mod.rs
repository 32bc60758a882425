#![forbid(unsafe_code)]
//! What a signed sandbox means on this host: which paths, sockets and calls.

mod calls;
mod elf;
pub mod landlock;
pub mod network;
pub mod packed;
pub mod places;
pub mod program;
pub mod resolve;
pub mod seccomp;
pub mod temporary;
