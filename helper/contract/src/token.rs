#![forbid(unsafe_code)]
//! Tokens and what they may call. Both halves read the same root-owned file; the helper decides.

use crate::catalog::{Risk, is_name};
use serde::{Deserialize, Serialize};
use std::fmt;
use subtle::ConstantTimeEq;

/// How a token may be presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    /// `Authorization: Bearer …`
    Header,
    /// `/mcp/t/SECRET`
    Path,
    /// The tool argument `api_key`.
    Argument,
}

/// What a caller may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Action names, `*` and `?` are wildcards.
    pub allow: Vec<String>,
    /// The highest risk.
    pub max_risk: Risk,
    /// End of its life, seconds since 1970-01-01 UTC; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Hours of the day in UTC, `08:00-18:00`; may cross midnight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
    /// Calls per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    /// Runs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
}

/// A token as stored: never the secret, only its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// A name for people.
    pub name: String,
    /// A short id for logs and `token revoke`.
    pub id: String,
    /// Lower-case hexadecimal SHA-256 of the secret.
    pub sha256: String,
    /// How it may be presented.
    pub via: Vec<Via>,
    /// What it may do. (Not flattened: serde cannot refuse unknown keys through a flattened struct.)
    pub scope: Scope,
}

/// A local user who may connect to the Unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalUser {
    /// The uid, by SO_PEERCRED.
    pub uid: u32,
    /// What the user may do.
    pub scope: Scope,
}

/// The whole of `tokens.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// The tokens.
    #[serde(default)]
    pub tokens: Vec<Token>,
    /// The local users.
    #[serde(default)]
    pub local_users: Vec<LocalUser>,
}

/// The rule of a scope that refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeRefusal {
    /// No glob of `allow` matches.
    Action,
    /// The action's risk is above `max_risk`.
    Risk(Risk),
    /// `expires` has passed.
    Expired,
    /// Outside `hours`.
    Hours(String),
    /// As many calls as `per_minute` says; the next may come in so many seconds.
    PerMinute(u32, u64),
    /// As many runs as `at_once` says are in progress.
    AtOnce(u32),
}

impl fmt::Display for ScopeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action => f.write_str("the token does not allow this action (rule: allow)"),
            Self::Risk(max) => write!(f, "the token goes up to risk `{}` (rule: max_risk)", max.as_str()),
            Self::Expired => f.write_str("the token has expired (rule: expires)"),
            Self::Hours(hours) => write!(f, "the token is valid from {hours} UTC (rule: hours)"),
            Self::PerMinute(most, wait) => {
                write!(f, "{most} calls a minute are made, the next may come in {wait} s (rule: per_minute)")
            }
            Self::AtOnce(most) => {
                write!(f, "{most} runs at once are in progress, one must end first (rule: at_once)")
            }
        }
    }
}

impl std::error::Error for ScopeRefusal {}

/// Prefix of every token.
pub const PREFIX: &str = "gp_";
/// Length of a token: the prefix and 43 base64url characters (32 bytes).
pub const LENGTH: usize = 46;

/// Lower-case hexadecimal SHA-256 of a secret, as stored.
pub fn digest(secret: &str) -> String {
    crate::catalog::hex(&hmac_sha256::Hash::hash(secret.as_bytes()))
}

impl Tokens {
    /// The token of that secret. All digests are compared, each in constant time.
    pub fn find(&self, secret: &str) -> Option<&Token> {
        let wanted = digest(secret);
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.sha256.as_bytes().ct_eq(wanted.as_bytes())) {
                found = Some(token);
            }
        }
        found
    }

    /// The entry of a local user.
    pub fn local_user(&self, uid: u32) -> Option<&LocalUser> {
        self.local_users.iter().find(|user| user.uid == uid)
    }

    /// Checks the document.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        for token in &self.tokens {
            if !is_name(&token.name) {
                return Err(format!("token `{}`: a name is 1 to 64 of A-Z a-z 0-9 . _ -", token.name));
            }
            let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            if token.sha256.len() != 64 || !token.sha256.bytes().all(hex) {
                return Err(format!("token `{}`: sha256 is 64 lower-case hexadecimal digits", token.name));
            }
            if self.tokens.iter().filter(|other| other.name == token.name || other.id == token.id).count() > 1
            {
                return Err(format!("token `{}`: the name or the id stands twice", token.name));
            }
            token.scope.check().map_err(|problem| format!("token `{}`: {problem}", token.name))?;
        }
        self.local_users.iter().try_for_each(|user| {
            user.scope.check().map_err(|problem| format!("local user {}: {problem}", user.uid))
        })
    }
}

/// Longest pattern of `allow`, bytes: no name is longer.
const PATTERN: usize = 64;

/// Whether a pattern can match a name at all.
fn is_pattern(pattern: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-*?".contains(&b);
    (1..=PATTERN).contains(&pattern.len()) && pattern.bytes().all(allowed)
}

impl Scope {
    fn check(&self) -> Result<(), String> {
        if let Some(pattern) = self.allow.iter().find(|pattern| !is_pattern(pattern)) {
            return Err(format!(
                "allow `{pattern}` matches no action: write a name, or a part of one with * and ? \
                 (service_*), of 1 to {PATTERN} of A-Z a-z 0-9 . _ - * ?"
            ));
        }
        match &self.hours {
            Some(hours) if parse_hours(hours).is_none() => Err(format!("hours `{hours}`: write 08:00-18:00")),
            _ => Ok(()),
        }
    }

    /// Whether the action may be called at `now` (seconds since 1970-01-01 UTC).
    ///
    /// # Errors
    /// The rule that refuses.
    pub fn permits(&self, action: &str, risk: Risk, now: u64) -> Result<(), ScopeRefusal> {
        if self.expires.is_some_and(|end| now >= end) {
            return Err(ScopeRefusal::Expired);
        }
        if !self.allow.iter().any(|pattern| glob(pattern.as_bytes(), action.as_bytes())) {
            return Err(ScopeRefusal::Action);
        }
        if risk > self.max_risk {
            return Err(ScopeRefusal::Risk(self.max_risk));
        }
        if let Some(hours) = &self.hours {
            let minute = u32::try_from(now / 60 % 1440).unwrap_or(0);
            let inside = parse_hours(hours).is_some_and(|(from, to)| {
                if from <= to { (from..to).contains(&minute) } else { minute >= from || minute < to }
            });
            if !inside {
                return Err(ScopeRefusal::Hours(hours.clone()));
            }
        }
        Ok(())
    }
}

/// Minutes of the day at which the hours begin and end.
fn parse_hours(text: &str) -> Option<(u32, u32)> {
    let minute = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        let (hour, minute) = (hour.parse::<u32>().ok()?, minute.parse::<u32>().ok()?);
        (hour <= 24 && minute < 60 && hour * 60 + minute <= 1440).then_some(hour * 60 + minute)
    };
    let (from, to) = text.split_once('-')?;
    Some((minute(from)?, minute(to)?))
}

/// Matches with `*` and `?`, in linear time and space.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || Some(c) == text.get(t) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                // The last star takes one byte more; earlier ones need never be tried again.
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope {
            allow: vec!["service_*".into(), "disk".into()],
            max_risk: Risk::Write,
            expires: Some(1000),
            hours: None,
            per_minute: None,
            at_once: None,
        }
    }

    #[test]
    fn a_scope_refuses_by_the_rule_that_is_broken() {
        assert_eq!(scope().permits("service_log", Risk::Read, 999), Ok(()));
        assert_eq!(scope().permits("disk", Risk::Write, 999), Ok(()));
        assert_eq!(scope().permits("diskette", Risk::Read, 999), Err(ScopeRefusal::Action));
        assert_eq!(scope().permits("disk", Risk::Dangerous, 999), Err(ScopeRefusal::Risk(Risk::Write)));
        assert_eq!(scope().permits("disk", Risk::Read, 1000), Err(ScopeRefusal::Expired));
    }

    #[test]
    fn hours_are_utc_and_may_cross_midnight() {
        let at = |hours: &str, now: u64| {
            Scope { hours: Some(hours.into()), expires: None, ..scope() }
                .permits("disk", Risk::Read, now)
                .is_ok()
        };
        assert!(at("08:00-18:00", 8 * 3600));
        assert!(!at("08:00-18:00", 18 * 3600));
        assert!(at("22:00-06:00", 23 * 3600));
        assert!(at("22:00-06:00", 5 * 3600));
        assert!(!at("22:00-06:00", 12 * 3600));
    }

    #[test]
    fn globs_match_whole_names() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "x", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("?", "", false),
            ("**a", "ba", true),
            ("a*b*c", "aXbXbXc", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_token_is_found_by_its_secret_alone() {
        let token = Token {
            name: "ci".into(),
            id: "1".into(),
            sha256: digest("gp_secret"),
            via: vec![Via::Header],
            scope: scope(),
        };
        let tokens = Tokens { tokens: vec![token], local_users: Vec::new() };
        assert_eq!(tokens.find("gp_secret").map(|t| t.name.as_str()), Some("ci"));
        assert_eq!(tokens.find("gp_secreT"), None);
        assert_eq!(tokens.find(""), None);
    }
}
