#![forbid(unsafe_code)]
//! Who calls: by a token in the header, in the path or in an argument, or as a local user by the kernel's
//! word. Secrets are compared by digest, in constant time ([`Tokens::find`]), and are in no log.

use super::Peer;
use super::guard::only;
use crate::policy::Snapshot;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use gloveport_contract::catalog::Risk;
use gloveport_contract::packet::Caller;
use gloveport_contract::token::{Scope, ScopeRefusal, Token, Tokens, Via};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Who calls, as far as it was proved.
#[derive(Clone)]
pub enum Principal {
    /// The holder of a token.
    Token {
        /// The token itself: the helper checks it again.
        secret: String,
        /// Its id.
        id: String,
        /// How it was presented.
        via: Via,
        /// What it may do.
        scope: Scope,
    },
    /// A user of this host, by SO_PEERCRED.
    Local {
        /// The uid.
        uid: u32,
        /// What the user may do.
        scope: Scope,
    },
    /// Nobody yet: the key may come as an argument. May list the tools that take one, and try.
    Keyless {
        /// What the keys in existence may do.
        scopes: Vec<Scope>,
    },
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}

/// Why nobody was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// Nothing was presented.
    Missing,
    /// What was presented cannot be read: several headers, or another scheme.
    Malformed,
    /// No such token, or not in this way.
    Unknown,
    /// There is no token at all to compare with.
    NoTokens,
    /// Its time is over.
    Expired,
    /// A local user who is not listed.
    LocalUser,
}

impl Denied {
    /// The HTTP status. A local user cannot do better by presenting something, so it is 403 there.
    pub fn status(self) -> u16 {
        if self == Self::LocalUser { 403 } else { 401 }
    }

    /// What is said to the client.
    pub fn message(self) -> &'static str {
        match self {
            Self::Missing => "a token is required: Authorization: Bearer TOKEN (see `gloveport token add`)",
            Self::Malformed => "exactly one Authorization header of the form `Bearer TOKEN` is required",
            Self::Unknown => "this token is not known, or may not be presented in this way",
            Self::NoTokens => {
                "no token can be checked: the tokens file cannot be read, or holds none; the daemon's log says \
                 which (or `gloveport doctor`)"
            }
            Self::Expired => "this token has expired: `gloveport token add` makes another",
            Self::LocalUser => {
                "this user is not in local_users of tokens.json, or is one that actions run as"
            }
        }
    }
}

/// Seconds since 1970-01-01 UTC.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Principal {
    /// Recognises the caller of a request. A token in the path outranks the header; on the local socket a
    /// token may be presented too, and then counts instead of the user.
    ///
    /// # Errors
    /// Why nobody was recognised.
    pub fn recognise(
        snapshot: &Snapshot,
        peer: &Peer,
        headers: &HeaderMap,
        in_path: Option<&str>,
    ) -> Result<Self, Denied> {
        let tokens = &snapshot.tokens;
        if let Some(secret) = in_path {
            return Self::of_token(tokens, secret, Via::Path);
        }
        if headers.contains_key(AUTHORIZATION) {
            let secret = bearer(headers).ok_or(Denied::Malformed)?;
            return Self::of_token(tokens, secret, Via::Header);
        }
        if let Peer::Local { uid, .. } = peer {
            // A program of a run must not start runs: not even when somebody lists its account.
            let user = tokens.local_user(*uid).filter(|_| !snapshot.run_as.contains(uid));
            let user = user.ok_or(Denied::LocalUser)?;
            return Ok(Self::Local { uid: *uid, scope: user.scope.clone() });
        }
        let by_argument = |token: &&Token| token.via.contains(&Via::Argument) && !is_over(&token.scope);
        let scopes: Vec<Scope> =
            tokens.tokens.iter().filter(by_argument).map(|token| token.scope.clone()).collect();
        if scopes.is_empty() { Err(Denied::Missing) } else { Ok(Self::Keyless { scopes }) }
    }

    /// The holder of a token that was presented in that way.
    ///
    /// # Errors
    /// [`Denied::NoTokens`], [`Denied::Unknown`] or [`Denied::Expired`].
    pub fn of_token(tokens: &Tokens, secret: &str, via: Via) -> Result<Self, Denied> {
        if tokens.tokens.is_empty() {
            return Err(Denied::NoTokens);
        }
        let token = tokens.find(secret).filter(|token| token.via.contains(&via)).ok_or(Denied::Unknown)?;
        if is_over(&token.scope) {
            return Err(Denied::Expired);
        }
        Ok(Self::Token { secret: secret.to_owned(), id: token.id.clone(), via, scope: token.scope.clone() })
    }

    /// Whether it may call that action now.
    ///
    /// # Errors
    /// The rule of its scope that refuses.
    pub fn permits(&self, action: &str, risk: Risk) -> Result<(), ScopeRefusal> {
        let now = now();
        match self {
            Self::Token { scope, .. } | Self::Local { scope, .. } => scope.permits(action, risk, now),
            Self::Keyless { scopes } => {
                let permitted = |scope: &Scope| scope.permits(action, risk, now).is_ok();
                if scopes.iter().any(permitted) { Ok(()) } else { Err(ScopeRefusal::Action) }
            }
        }
    }

    /// Whether it would be recognised again.
    pub fn is_valid(&self, tokens: &Tokens) -> bool {
        match self {
            Self::Token { secret, via, .. } => Self::of_token(tokens, secret, *via).is_ok(),
            Self::Local { uid, .. } => tokens.local_user(*uid).is_some(),
            Self::Keyless { .. } => true,
        }
    }

    /// What tells callers apart, for sessions and logs; never a secret.
    pub fn key(&self) -> String {
        match self {
            Self::Token { id, .. } => format!("token:{id}"),
            Self::Local { uid, .. } => format!("local:{uid}"),
            Self::Keyless { .. } => "keyless".to_owned(),
        }
    }

    /// The token for the helper.
    pub fn token(&self) -> Option<String> {
        match self {
            Self::Token { secret, .. } => Some(secret.clone()),
            _ => None,
        }
    }

    /// The caller for the helper's record.
    pub fn caller(&self, peer: &Peer, client: &str, request: &str) -> Caller {
        let via = match self {
            Self::Token { via: Via::Header, .. } | Self::Keyless { .. } => "http",
            Self::Token { via: Via::Path, .. } => "path",
            Self::Token { via: Via::Argument, .. } => "argument",
            Self::Local { .. } => "local",
        };
        Caller {
            via: via.to_owned(),
            client: client.to_owned(),
            request: request.to_owned(),
            ..peer.caller()
        }
    }
}

fn is_over(scope: &Scope) -> bool {
    scope.expires.is_some_and(|end| now() >= end)
}

/// The token of the one `Authorization: Bearer TOKEN`; the scheme's case does not matter (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = only(headers, &AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let secret = secret.trim_start();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty() && !secret.contains(' ')).then_some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fixtures::snapshot;
    use gloveport_contract::token::{LocalUser, digest};

    fn scope(allow: &str) -> Scope {
        Scope {
            allow: vec![allow.to_owned()],
            max_risk: Risk::Read,
            expires: None,
            hours: None,
            per_minute: None,
            at_once: None,
        }
    }

    fn tokens(via: &[Via]) -> Snapshot {
        let token = |name: &str, secret: &str, expires| Token {
            name: name.to_owned(),
            id: name.to_owned(),
            sha256: digest(secret),
            via: via.to_vec(),
            scope: Scope { expires, ..scope("*") },
        };
        let local = |uid| LocalUser { uid, scope: scope("disk") };
        let tokens = Tokens {
            tokens: vec![token("a", "gp_a", None), token("old", "gp_old", Some(1))],
            local_users: vec![local(7), local(9)],
        };
        Snapshot { tokens, run_as: [9].into(), ..snapshot(serde_json::json!([])) }
    }

    fn tcp() -> Peer {
        Peer::Tcp("127.0.0.1:9".parse().unwrap())
    }

    fn with(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_header_is_recognised_whatever_the_scheme_s_case() {
        for value in ["Bearer gp_a", "bearer gp_a", "BEARER  gp_a"] {
            let found = Principal::recognise(&tokens(&[Via::Header]), &tcp(), &with(&[value]), None);
            assert_eq!(found.unwrap().key(), "token:a", "{value}");
        }
    }

    #[test]
    fn anything_else_in_the_header_is_denied() {
        let tokens = tokens(&[Via::Header]);
        for (values, expected) in [
            (&["Bearer gp_b"][..], Denied::Unknown),
            (&["Bearer gp_old"], Denied::Expired),
            (&["Basic gp_a"], Denied::Malformed),
            (&["gp_a"], Denied::Malformed),
            (&["Bearer "], Denied::Malformed),
            (&["Bearer gp_a gp_a"], Denied::Malformed),
            (&["Bearer gp_a", "Bearer gp_a"], Denied::Malformed),
            (&[], Denied::Missing),
        ] {
            let denied = Principal::recognise(&tokens, &tcp(), &with(values), None).unwrap_err();
            assert_eq!(denied, expected, "{values:?}");
        }
    }

    #[test]
    fn where_there_are_no_tokens_it_is_not_the_token_that_is_blamed() {
        let none = snapshot(serde_json::json!([]));
        let denied = Principal::recognise(&none, &tcp(), &with(&["Bearer gp_a"]), None).unwrap_err();
        assert_eq!((denied, denied.status()), (Denied::NoTokens, 401));
        assert!(denied.message().contains("the tokens file cannot be read"));
    }

    #[test]
    fn a_token_counts_only_in_the_way_that_it_allows() {
        let path = tokens(&[Via::Path]);
        assert!(Principal::recognise(&path, &tcp(), &with(&[]), Some("gp_a")).is_ok());
        let denied = Principal::recognise(&path, &tcp(), &with(&["Bearer gp_a"]), None).unwrap_err();
        assert_eq!(denied, Denied::Unknown);
        // A wrong secret in the path is not made good by a header.
        let both = tokens(&[Via::Path, Via::Header]);
        assert!(Principal::recognise(&both, &tcp(), &with(&["Bearer gp_a"]), Some("gp_b")).is_err());
    }

    #[test]
    fn where_keys_come_as_arguments_nobody_is_turned_away_yet() {
        let keyless = Principal::recognise(&tokens(&[Via::Argument]), &tcp(), &with(&[]), None).unwrap();
        assert_eq!(keyless.key(), "keyless");
        assert!(keyless.permits("disk", Risk::Read).is_ok());
        assert!(keyless.permits("disk", Risk::Write).is_err());
        assert_eq!(keyless.token(), None);
    }

    #[test]
    fn a_local_user_is_known_by_uid_unless_a_token_is_presented() {
        let tokens = tokens(&[Via::Header]);
        let local = |uid| Peer::Local { uid, user: "someone".to_owned() };
        let user = Principal::recognise(&tokens, &local(7), &with(&[]), None).unwrap();
        assert_eq!(user.key(), "local:7");
        assert_eq!(user.caller(&local(7), "", "").uid, Some(7));
        for stranger in [8, 9] {
            let denied = Principal::recognise(&tokens, &local(stranger), &with(&[]), None).unwrap_err();
            assert_eq!(denied, Denied::LocalUser);
        }
        let token = Principal::recognise(&tokens, &local(8), &with(&["Bearer gp_a"]), None).unwrap();
        assert_eq!(token.key(), "token:a");
    }

    #[test]
    fn a_secret_is_not_printed_by_accident() {
        let principal = Principal::of_token(&tokens(&[Via::Header]).tokens, "gp_a", Via::Header).unwrap();
        assert!(!format!("{principal:?}").contains("gp_a"));
    }
}
