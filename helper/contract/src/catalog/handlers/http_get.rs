#![forbid(unsafe_code)]
//! What `http_get` takes.

use super::Form;
use super::Takes::{Text, Texts};
use super::{Problem, problem};
use crate::address::AddressClass;
use crate::catalog::BuiltinConfig;
use crate::url::Url;

/// Request headers that no configuration can hand to a caller: they decide about the connection, the
/// framing or the name of the server.
const FIXED_HEADERS: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) const FORM: Form = Form {
    required: &[("url", Text)],
    optional: &[("headers", Texts)],
    required_keys: &["url_prefixes"],
    optional_keys: &["addresses", "max_bytes", "headers"],
    check,
};

fn check(config: &BuiltinConfig) -> Result<(), Problem> {
    for (index, prefix) in config.url_prefixes.iter().enumerate() {
        let at = format!("builtin_config.url_prefixes.{index}");
        match Url::parse(prefix) {
            Err(reason) => return problem(at, format!("`{prefix}`: {reason}")),
            Ok(url) if url.query.is_some() => return problem(at, "a prefix has no query"),
            Ok(_) => {}
        }
    }
    for (index, rule) in config.addresses.iter().enumerate() {
        if AddressClass::parse(&rule.0).is_none() {
            return problem(
                format!("builtin_config.addresses.{index}"),
                format!(
                    "`{}` is none of public, private, loopback, link_local and no block such as 10.0.0.0/8",
                    rule.0
                ),
            );
        }
    }
    for (index, name) in config.headers.iter().enumerate() {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty()
            || !name.bytes().all(token)
            || FIXED_HEADERS.iter().any(|h| h.eq_ignore_ascii_case(name))
        {
            return problem(
                format!("builtin_config.headers.{index}"),
                format!("`{name}` is no header that a caller could choose"),
            );
        }
    }
    Ok(())
}
