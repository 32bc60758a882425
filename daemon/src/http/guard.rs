#![forbid(unsafe_code)]
//! Which host a request names, and which page sent it. Checked before anything else is looked at: a page
//! that a browser was led to (DNS rebinding) must not reach a server on the loopback address.

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Uri;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names of this host that are always allowed, with any port.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// A request that may not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// No Host, or several: the request says nothing clear.
    BadHost,
    /// Another host than this one is meant.
    ForeignHost,
    /// A foreign page sent it.
    ForeignOrigin,
}

impl Rejection {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::BadHost => 400,
            Self::ForeignHost | Self::ForeignOrigin => 403,
        }
    }

    /// What is said to the client.
    pub fn message(self) -> &'static str {
        match self {
            Self::BadHost => "exactly one Host header is required",
            Self::ForeignHost => {
                "this host name is not served: use localhost, 127.0.0.1 or [::1], or add it to \
                 allowed_hosts in daemon.toml"
            }
            Self::ForeignOrigin => {
                "this origin is not allowed: a local one is, or add it to allowed_origins in daemon.toml"
            }
        }
    }
}

/// Checks the target, `Host` and `Origin`.
///
/// # Errors
/// Why the request may not come in.
pub fn check(uri: &Uri, headers: &HeaderMap, hosts: &[String], origins: &[String]) -> Result<(), Rejection> {
    let host = only(headers, &HOST).ok_or(Rejection::BadHost)?;
    let allowed = |authority: &str| is_loopback(authority) || is_listed(authority, hosts);
    if !host.to_str().is_ok_and(allowed) {
        return Err(Rejection::ForeignHost);
    }
    // An absolute-form target names a host of its own, and outranks the header (RFC 9112, 3.2.2).
    if uri.authority().is_some_and(|authority| !allowed(authority.as_str())) {
        return Err(Rejection::ForeignHost);
    }
    if headers.contains_key(ORIGIN) {
        let origin = only(headers, &ORIGIN).and_then(|origin| origin.to_str().ok());
        let allowed = origin.is_some_and(|origin| is_local_origin(origin) || is_exactly(origin, origins));
        return if allowed { Ok(()) } else { Err(Rejection::ForeignOrigin) };
    }
    match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Rejection::ForeignOrigin),
    }
}

/// The value of a header that stands exactly once.
pub fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// The host of `host[:port]`; `None` where that is not its form.
fn host_of(authority: &str) -> Option<&str> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, rest) = authority.split_at_checked(end)?;
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some(host),
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok() => Some(host),
        _ => None,
    }
}

fn is_loopback(authority: &str) -> bool {
    host_of(authority).is_some_and(|host| LOOPBACK.iter().any(|known| host.eq_ignore_ascii_case(known)))
}

/// Whether an authority is in the list: as it stands, or by its host where the entry has no port.
fn is_listed(authority: &str, hosts: &[String]) -> bool {
    is_exactly(authority, hosts) || host_of(authority).is_some_and(|host| is_exactly(host, hosts))
}

fn is_exactly(text: &str, list: &[String]) -> bool {
    list.iter().any(|entry| entry.eq_ignore_ascii_case(text))
}

fn is_local_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(target: &str, pairs: &[(&str, &str)]) -> Result<(), Rejection> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let hosts = ["box.example".to_owned(), "other.example:8010".to_owned()];
        check(&target.parse().unwrap(), &headers, &hosts, &["https://app.example".to_owned()])
    }

    #[test]
    fn loopback_names_pass_with_any_port_or_none() {
        for host in [
            "localhost",
            "LocalHost:8010",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8010",
            "box.example",
            "box.example:99",
            "other.example:8010",
        ] {
            assert_eq!(checked("/mcp", &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_foreign_or_malformed_host_is_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "evil@localhost",
            "localhost:",
            "localhost:99999",
            "localhost:+80",
            "localhost:80:80",
            "[::1",
            "[::1]x",
            "[::2]",
            "::1",
            "",
            "localhost.",
            "127.0.0.1@evil",
            "other.example",
            "other.example:80",
            "localhost/",
            "0.0.0.0",
        ] {
            assert_eq!(checked("/mcp", &[("host", host)]), Err(Rejection::ForeignHost), "{host}");
        }
    }

    #[test]
    fn exactly_one_host_is_required() {
        assert_eq!(checked("/mcp", &[]), Err(Rejection::BadHost));
        assert_eq!(checked("/mcp", &[("host", "localhost"), ("host", "localhost")]), Err(Rejection::BadHost));
    }

    #[test]
    fn the_authority_of_an_absolute_target_must_pass_too() {
        let local = [("host", "localhost")];
        assert_eq!(checked("http://localhost:8010/mcp", &local), Ok(()));
        assert_eq!(checked("http://evil.example/mcp", &local), Err(Rejection::ForeignHost));
        assert_eq!(checked("http://user@localhost/mcp", &local), Err(Rejection::ForeignHost));
    }

    #[test]
    fn an_origin_is_local_or_listed() {
        let with = |origin| checked("/mcp", &[("host", "localhost"), ("origin", origin)]);
        for origin in ["http://localhost:8010", "http://127.0.0.1", "https://[::1]:1", "https://app.example"]
        {
            assert_eq!(with(origin), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1@evil",
            "http://localhost:8010/",
            "https://app.example:444",
            "file://localhost",
            "localhost",
        ] {
            assert_eq!(with(origin), Err(Rejection::ForeignOrigin), "{origin}");
        }
        let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(checked("/mcp", &two), Err(Rejection::ForeignOrigin));
    }

    #[test]
    fn a_browser_that_says_it_comes_from_elsewhere_is_believed() {
        let with = |site| checked("/mcp", &[("host", "localhost"), ("sec-fetch-site", site)]);
        assert_eq!(with("none"), Ok(()));
        assert_eq!(with("same-origin"), Ok(()));
        assert_eq!(with("cross-site"), Err(Rejection::ForeignOrigin));
        assert_eq!(with("same-site"), Err(Rejection::ForeignOrigin));
    }
}
