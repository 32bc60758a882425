#![forbid(unsafe_code)]
//! URLs as `http_get` takes them: a strict subset of RFC 3986 in which two readers cannot disagree about
//! host, port or path. What is outside of it is refused, not repaired.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A URL that was read, in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Url<'t> {
    /// `https`, or `http`.
    pub https: bool,
    /// A name, an IPv4 address in dotted form, or an IPv6 address without its brackets.
    pub host: &'t str,
    /// Given, or the scheme's own.
    pub port: u16,
    /// Begins with `/`.
    pub path: &'t str,
    /// What follows the question mark.
    pub query: Option<&'t str>,
}

impl<'t> Url<'t> {
    /// Reads a URL.
    ///
    /// # Errors
    /// Which part is not accepted, and what would be.
    pub fn parse(text: &'t str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("begins with neither http:// nor https://")?;
        let https = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err("only the schemes http and https are known, in lower case"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at_checked(end).ok_or("the host does not end")?;
        if tail.contains('#') {
            return Err("a fragment (`#…`) is never sent to a server: leave it out");
        }
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (tail, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        let (host, port) = authority_parts(authority, if https { 443 } else { 80 })?;
        check_path(path)?;
        check_characters(query.unwrap_or_default(), b"/?")?;
        Ok(Self { https, host, port, path, query })
    }

    /// Whether this URL lies under a prefix: the same scheme, host and port, and a path that is equal or
    /// goes on at a segment boundary.
    pub fn is_within(&self, prefix: &Url<'_>) -> bool {
        self.https == prefix.https
            && self.host.eq_ignore_ascii_case(prefix.host)
            && self.port == prefix.port
            && self
                .path
                .strip_prefix(prefix.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.path.ends_with('/'))
    }
}

fn authority_parts(authority: &str, default: u16) -> Result<(&str, u16), &'static str> {
    if authority.contains('@') {
        return Err("a user name or password in a URL is not accepted");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("`[` without `]`")?;
            host.parse::<Ipv6Addr>().map_err(|_| "what stands in brackets is no IPv6 address")?;
            (
                host,
                if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or("text after `]`")?) },
            )
        }
        None => {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            check_host(host)?;
            (host, port)
        }
    };
    let Some(port) = port else {
        return Ok((host, default));
    };
    let digits = port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0');
    match port.parse::<u16>() {
        Ok(port) if digits => Ok((host, port)),
        _ => Err("the port is no number from 1 to 65535"),
    }
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return Err("the host is no name of ASCII letters, digits, `-` and `.`");
    }
    // Resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses; here an address is a dotted quad.
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.starts_with(|c: char| c.is_ascii_digit()) && host.parse::<Ipv4Addr>().is_err() {
        return Err("an address is four decimal numbers, as in 192.0.2.1");
    }
    Ok(())
}

fn check_path(path: &str) -> Result<(), &'static str> {
    check_characters(path, b"/")?;
    let lower = path.to_ascii_lowercase();
    if ["%2f", "%5c", "%2e", "%25"].iter().any(|code| lower.contains(code)) {
        return Err(
            "an encoded slash, backslash, dot or percent sign in a path means different things to different servers",
        );
    }
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        // Some servers cut a segment at `;` before they resolve dots.
        let name = segment.split(';').next().unwrap_or_default();
        if name == "." || name == ".." {
            return Err("a path has no `.` and `..` segments");
        }
        if segment.is_empty() && index + 1 < segments.len() {
            return Err("a path has no empty segments (`//`)");
        }
    }
    Ok(())
}

/// Accepts what RFC 3986 allows in a segment, the given further bytes, and complete escapes of anything
/// but control characters.
fn check_characters(text: &str, further: &[u8]) -> Result<(), &'static str> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16));
            match (digit(), digit()) {
                (Some(high), Some(low)) if high * 16 + low >= 0x20 && high * 16 + low != 0x7f => {}
                (Some(_), Some(_)) => return Err("an encoded control character is not accepted"),
                _ => return Err("`%` is not followed by two hexadecimal digits"),
            }
        } else if !(byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=:@".contains(&byte)
            || further.contains(&byte))
        {
            return Err("a character that must be written as %XX");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_urls_come_apart() {
        let url = Url::parse("https://api.example.com:8443/v1/items;a=1/x%20y?q=%2Fa&b=../c").unwrap();
        assert_eq!((url.https, url.host, url.port), (true, "api.example.com", 8443));
        assert_eq!((url.path, url.query), ("/v1/items;a=1/x%20y", Some("q=%2Fa&b=../c")));
        assert_eq!(Url::parse("http://[::1]").unwrap().host, "::1");
        assert_eq!(Url::parse("http://127.0.0.1?x").unwrap().path, "/");
        assert_eq!(Url::parse("http://h/").unwrap().port, 80);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for url in [
            "file:///etc/passwd",
            "HTTP://h/",
            "http:/h/",
            "http:///x",
            "http://u@h/",
            "http://u:p@h/",
            "http://h:0/",
            "http://h:080/",
            "http://h:65536/",
            "http://h:+80/",
            "http://h./",
            "http://0x7f.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[v1.x]/",
            "http://h\\@evil/",
            "http://h/a/../b",
            "http://h/a/./b",
            "http://h/..",
            "http://h/a/..;x/b",
            "http://h/a//b",
            "http://h/a%2fb",
            "http://h/a%2E%2e/b",
            "http://h/a%5cb",
            "http://h/%252e",
            "http://h/%00",
            "http://h/?a=%0d%0aHost:x",
            "http://h/%zz",
            "http://h/%",
            "http://h/a b",
            "http://h/a\nb",
            "http://h/a#b",
            "http://hÿ/",
            "http://h/ä",
            "http://h/?[",
        ] {
            assert!(Url::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_prefix_ends_at_a_segment() {
        let within =
            |url: &str, prefix: &str| Url::parse(url).unwrap().is_within(&Url::parse(prefix).unwrap());
        assert!(within("http://h/api", "http://h/api"));
        assert!(within("http://H/api?x", "http://h:80/api"));
        assert!(within("http://h/api/x", "http://h/api"));
        assert!(within("http://h/api/x", "http://h/api/"));
        assert!(within("http://h/x", "http://h"));
        assert!(!within("http://h/apix", "http://h/api"));
        assert!(!within("http://h/api", "http://h/api/"));
        assert!(!within("https://h/api", "http://h/api"));
        assert!(!within("http://h:81/api", "http://h/api"));
        assert!(!within("http://h.evil/api", "http://h/api"));
    }
}
