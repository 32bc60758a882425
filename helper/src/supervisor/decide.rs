#![forbid(unsafe_code)]
//! May this call run? The helper's own answer: nothing here believes the daemon but its word about who a
//! local user is, and that is recorded as its word.

use super::Refusal;
use crate::audit::CallerProof;
use crate::in_force::InForce;
use gloveport_contract::catalog::Action;
use gloveport_contract::packet::{RefusalCode, Run, VERSION};
use gloveport_contract::plan::{self, Plan};
use gloveport_contract::token::{Scope, Tokens};

/// Who calls, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The token's name, or the local user's.
    pub name: String,
    /// The token's id.
    pub token_id: Option<String>,
    /// The uid of a local user.
    pub uid: Option<u32>,
    /// How it is known.
    pub proof: CallerProof,
}

impl Known {
    /// A name that no other caller has, for counting.
    pub fn key(&self) -> String {
        match &self.token_id {
            Some(id) => format!("token {id}"),
            None => format!("local user {}", self.uid.unwrap_or(u32::MAX)),
        }
    }
}

/// A call that the catalogue and the caller's scope permit.
pub struct Decided<'a> {
    /// The action.
    pub action: &'a Action,
    /// What would run.
    pub plan: Plan<'a>,
}

/// The caller and the scope, by the token or by the daemon's word.
///
/// # Errors
/// An unknown token or local user.
pub fn caller<'t>(run: &Run, tokens: &'t Tokens) -> Result<(Known, &'t Scope), Refusal> {
    let refuse = |detail: String| Refusal { code: RefusalCode::Scope, detail };
    match (&run.token, run.caller.uid) {
        (Some(secret), _) => {
            let token = tokens.find(secret).ok_or_else(|| {
                refuse("the token is not known here: `gloveport token list` shows those that are".into())
            })?;
            let known = Known {
                name: token.name.clone(),
                token_id: Some(token.id.clone()),
                uid: None,
                proof: CallerProof::Token,
            };
            Ok((known, &token.scope))
        }
        (None, Some(uid)) => {
            let user = tokens
                .local_user(uid)
                .ok_or_else(|| refuse(format!("uid {uid} is not among the local_users of tokens.json")))?;
            let known = Known {
                name: run.caller.peer.clone(),
                token_id: None,
                uid: Some(uid),
                proof: CallerProof::DaemonSays,
            };
            Ok((known, &user.scope))
        }
        (None, None) => Err(refuse("neither a token nor a local user".into())),
    }
}

/// Decides about a call of a caller with this scope, at `now` (seconds since 1970-01-01 UTC).
///
/// # Errors
/// The first rule that refuses.
pub fn decide<'a>(run: &Run, scope: &Scope, in_force: &'a InForce, now: u64) -> Result<Decided<'a>, Refusal> {
    let refuse = |code, detail: String| Err(Refusal { code, detail });
    if run.digest != in_force.digest {
        return refuse(RefusalCode::Stale, "another catalogue is in force: read it again".into());
    }
    let Some(action) = in_force.actions.get(&run.action) else {
        return refuse(RefusalCode::UnknownAction, "no such action in the catalogue in force".into());
    };
    if let Err(rule) = scope.permits(&action.name, action.risk, now) {
        return refuse(RefusalCode::Scope, rule.to_string());
    }
    let plan = match plan::plan(action, &run.args, run.content.as_ref()) {
        Ok(plan) => plan,
        Err(refusal @ plan::Refusal::Argument { .. }) => {
            return refuse(RefusalCode::Argument, refusal.to_string());
        }
        Err(refusal @ plan::Refusal::Command(_)) => return refuse(RefusalCode::Command, refusal.to_string()),
    };
    if !plan.steps.iter().map(|step| &step.argv).eq(&run.argv) {
        return refuse(
            RefusalCode::Mismatch,
            "the argv that the daemon rendered is not what the catalogue yields: a bug, or an attack".into(),
        );
    }
    Ok(Decided { action, plan })
}

/// Whether daemon and helper speak of the same packets.
///
/// # Errors
/// Both versions by name.
pub fn same_version(run: &Run) -> Result<(), Refusal> {
    if run.version == VERSION {
        return Ok(());
    }
    let detail = format!(
        "the daemon speaks version {} and the helper version {VERSION}: restart both after an upgrade",
        run.version
    );
    Err(Refusal { code: RefusalCode::Internal, detail })
}
