#![forbid(unsafe_code)]
//! The catalogue: what an operator declares, a reviewer signs and the helper loads.
//!
//! One model serves the YAML sources and the signed `catalog.json`. Unknown keys are errors in both. What
//! a document *means* is checked by [`Catalog::check`], on both sides of the boundary.

mod action;
mod builtin;
mod check;
mod derive;
mod handlers;
mod param;
mod programs;
mod sandbox;
mod shapes;

pub use action::{
    Action, Approval, Arguments, ArgvItem, Directory, Escapes, Filter, OnDisconnect, OnError, Output, Redact,
    ResultShape, Risk, Script, Step, Timeout,
};
pub use builtin::{AddressRule, Builtin, BuiltinConfig, CommandEntry, CommandRule, Operands};
pub use check::{CatalogError, hex, is_name, is_root_group};
pub use derive::fixed_part;
pub use handlers::REDIS_COMMANDS;
pub use param::{Literal, Param, ParamType};
pub use programs::{is_interpreter, is_wrapper};
pub use sandbox::{Base, Limits, ListScope, Network, NetworkClass, Promise, Sandbox, SyscallGroup};

use serde::{Deserialize, Serialize};

/// The only value of [`Catalog::format`] that this version reads.
pub const FORMAT: u32 = 1;

/// A whole catalogue, as signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// Version of this document's form.
    pub format: u32,
    /// Its actions, sorted by name.
    pub actions: Vec<Action>,
}

impl Catalog {
    /// The action of that name.
    pub fn action(&self, name: &str) -> Option<&Action> {
        let at = self.actions.binary_search_by(|action| action.name.as_str().cmp(name)).ok()?;
        self.actions.get(at)
    }
}
