#![forbid(unsafe_code)]
//! What the tests of this layer begin with.

use crate::http::auth::Principal;
use crate::policy::Snapshot;
use crate::run::report::{Report, StepReport, StepStatus};
use gloveport_contract::catalog::{Action, Catalog, Risk};
use gloveport_contract::packet::{Enforcement, Receipt, Usage};
use gloveport_contract::token::{Scope, Tokens, Via};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A snapshot with these actions in force.
pub fn snapshot(actions: Value) -> Snapshot {
    let catalog: Catalog = serde_json::from_value(json!({"format": 1, "actions": actions})).unwrap();
    Snapshot {
        catalog: Ok(Arc::new(catalog)),
        tokens: Tokens::default(),
        digest: Some([0; 32]),
        rejected: None,
        unsupported: BTreeMap::new(),
        layers: Vec::new(),
        run_as: BTreeSet::new(),
        generation: 1,
    }
}

/// A caller who may call what the pattern matches, up to risk `read`.
pub fn principal(allow: &str) -> Principal {
    let scope = Scope {
        allow: vec![allow.to_owned()],
        max_risk: Risk::Read,
        expires: None,
        hours: None,
        per_minute: None,
        at_once: None,
    };
    Principal::Token { secret: "gp_x".to_owned(), id: "x".to_owned(), via: Via::Header, scope }
}

/// An action with these keys in place of the plain ones; `null` takes one away.
pub fn action(keys: Value) -> Action {
    let mut action = json!({"name": "a", "description": "d", "risk": "read", "exec": ["/bin/true"]});
    let members = action.as_object_mut().unwrap();
    members.extend(keys.as_object().unwrap().clone());
    members.retain(|_, value| !value.is_null());
    serde_json::from_value(action).unwrap()
}

/// The report of a run that succeeded and printed this.
pub fn report(stdout: &str) -> Report {
    let step = StepReport {
        name: "main".to_owned(),
        status: StepStatus::Success,
        exit_code: Some(0),
        signal: None,
        not_started: None,
        stdout: stdout.to_owned(),
        stderr: String::new(),
        stdout_bytes: stdout.len() as u64,
        stderr_bytes: 0,
        stdout_truncated: false,
        stderr_truncated: false,
        scan_limit_reached: false,
        redactions: 0,
        lossy_utf8: false,
        count: None,
        usage: Usage::default(),
    };
    Report {
        action: "a".to_owned(),
        success: true,
        exit_code: 0,
        timed_out: false,
        deadline: Duration::from_secs(30),
        duration: Duration::from_millis(5),
        steps: vec![step],
        enforcement: Enforcement::default(),
        killed_by: None,
        ended_by: None,
        receipt: Receipt { seq: 7, hash: [0; 32] },
    }
}
