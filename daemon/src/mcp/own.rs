#![forbid(unsafe_code)]
//! The daemon's own tools, beside one for each action. An action of the same name takes the place of one.

use super::{batch, fetch};
use crate::http::auth::Principal;
use gloveport_contract::catalog::{Action, Catalog, OnDisconnect};
use serde_json::Value;

/// A tool of the daemon's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Several tools in one call.
    Batch,
    /// What became of a run.
    RunResult,
    /// Ending a run.
    EndRun,
}

impl Own {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Batch, Self::RunResult, Self::EndRun];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => batch::NAME,
            Self::RunResult => fetch::RESULT,
            Self::EndRun => fetch::END,
        }
    }

    /// The tool as it is listed.
    pub fn describe(self) -> Value {
        match self {
            Self::Batch => batch::describe(),
            Self::RunResult => fetch::describe_result(),
            Self::EndRun => fetch::describe_end(),
        }
    }

    /// Whether this catalogue has a use for it.
    pub fn is_in(self, catalog: &Catalog) -> bool {
        self == Self::Batch || catalog.actions.iter().any(goes_on)
    }

    /// Whether the caller may call it. A batch is a permission of its own; whoever may start a run that outlives
    /// its connection may ask for it and end it, and for no other.
    pub fn is_permitted(self, principal: &Principal, catalog: &Catalog) -> bool {
        let may_call =
            |action: &Action| goes_on(action) && principal.permits(&action.name, action.risk).is_ok();
        match self {
            Self::Batch => principal.permits(batch::NAME, batch::RISK).is_ok(),
            Self::RunResult | Self::EndRun => catalog.actions.iter().any(may_call),
        }
    }

    /// The tool of that name in this catalogue.
    pub fn of(name: &str, catalog: &Catalog) -> Option<Self> {
        let own = Self::ALL.into_iter().find(|own| own.name() == name)?;
        (own.is_in(catalog) && catalog.action(name).is_none()).then_some(own)
    }
}

/// Whether runs of an action outlive their connection.
fn goes_on(action: &Action) -> bool {
    action.on_disconnect == OnDisconnect::Finish
}
