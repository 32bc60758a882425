#![forbid(unsafe_code)]
//! What the fuzz targets call. The helper is a program and no library: its modules are taken by their path.

#[path = "../../src/signers.rs"]
pub mod signers;
#[path = "../../src/sshsig/mod.rs"]
pub mod sshsig;
pub mod subjects;
