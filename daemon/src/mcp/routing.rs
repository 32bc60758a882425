#![forbid(unsafe_code)]
//! Which era a request belongs to, and whether its headers agree with its body.

use super::envelope::{Members, Message};
use super::errors::{HEADER_MISMATCH, RpcError};
use super::{LEGACY, META_CAPABILITIES, META_VERSION, MODERN};
use axum::http::{HeaderMap, HeaderName};
use serde_json::Value;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The two ways of speaking the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Each request stands alone.
    Modern,
    /// With `initialize`.
    Legacy,
}

/// Decides for one message.
///
/// # Errors
/// A version header that names nothing we know and nothing newer.
pub fn era(headers: &HeaderMap, message: &Message) -> Result<Era, RpcError> {
    if message.meta().is_some_and(|meta| meta.contains_key(META_VERSION))
        || message.method == "server/discover"
    {
        return Ok(Era::Modern);
    }
    // Negotiation is what `initialize` is for: a header that comes with it says nothing yet.
    if message.method == "initialize" {
        return Ok(Era::Legacy);
    }
    let mut versions = headers.get_all(&VERSION).iter();
    let version = match (versions.next(), versions.next()) {
        (None, _) => return Ok(Era::Legacy),
        (Some(version), None) => version.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => {
            return Err(RpcError::new(HEADER_MISMATCH, "MCP-Protocol-Version stands twice"));
        }
    };
    if LEGACY.contains(&version) {
        Ok(Era::Legacy)
    } else if version == MODERN || is_newer(version) {
        Ok(Era::Modern)
    } else {
        let all: Vec<&str> = LEGACY.into_iter().chain([MODERN]).collect();
        Err(RpcError::version(version, &all))
    }
}

/// Whether a text is a date after the newest revision. Only a date can be compared: "junk" is not newer.
fn is_newer(version: &str) -> bool {
    let shape = |(at, b): (usize, u8)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() };
    version.len() == MODERN.len() && version.bytes().enumerate().all(shape) && version > MODERN
}

/// The checks of a modern request up to its method, in the order that the protocol gives them.
///
/// # Errors
/// The first that fails.
pub fn ladder(headers: &HeaderMap, message: &Message) -> Result<(), RpcError> {
    let missing = |what: &str| RpcError::params(format!("_meta: {what}"));
    let meta = message.meta().ok_or_else(|| missing("an object is required"))?;
    let version = meta.get(META_VERSION).ok_or_else(|| missing(&format!("{META_VERSION} is required")))?;
    match meta.get(META_CAPABILITIES) {
        Some(Value::Object(_)) => {}
        Some(_) => return Err(missing(&format!("{META_CAPABILITIES} must be an object"))),
        None => return Err(missing(&format!("{META_CAPABILITIES} is required"))),
    }
    agrees(headers, &VERSION, version)?;
    agrees(headers, &METHOD, &Value::String(message.method.clone()))?;
    if let Some(name) = routed_name(&message.method, &message.params) {
        agrees(headers, &NAME, name)?;
    }
    match version.as_str() {
        Some(MODERN) => Ok(()),
        Some(other) => Err(RpcError::version(other, &[MODERN])),
        None => Err(missing(&format!("{META_VERSION} must be a text"))),
    }
}

/// The parameter that `Mcp-Name` repeats. Absent in the body, it is the method's business to say so.
fn routed_name<'m>(method: &str, params: &'m Members) -> Option<&'m Value> {
    match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    }
}

/// A header stands exactly once and says what the body says.
fn agrees(headers: &HeaderMap, name: &HeaderName, value: &Value) -> Result<(), RpcError> {
    let mismatch =
        |problem: &str| Err(RpcError::new(HEADER_MISMATCH, format!("the header {name} {problem}")));
    let mut values = headers.get_all(name).iter();
    let header = match (values.next(), values.next()) {
        (Some(header), None) => header,
        (None, _) => return mismatch("is required"),
        (Some(_), Some(_)) => return mismatch("stands twice"),
    };
    let said = header.to_str().ok().and_then(decoded);
    if said.is_some() && said.as_deref() == value.as_str() {
        Ok(())
    } else {
        mismatch("differs from the body")
    }
}

/// A header's value; one that could not be written as it is comes as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(base64(encoded)?).ok(),
        None => Some(value.to_owned()),
    }
}

/// Canonical base64 with padding (RFC 4648, 4), and nothing else.
fn base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = (held << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    // Bits left over must be zero, and the padding the one that their number asks for.
    let padding = match digits.len() % 4 {
        0 => 0,
        2 => 2,
        3 => 1,
        _ => return None,
    };
    (held == 0 && text.len() - digits.len() == padding).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::errors::{INVALID_PARAMS, UNSUPPORTED_VERSION};
    use serde_json::json;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn message(method: &str, params: Value) -> Message {
        Message { id: Some(json!(1)), method: method.to_owned(), params: params.as_object().unwrap().clone() }
    }

    fn meta(version: Value) -> Value {
        json!({"io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}})
    }

    #[test]
    fn the_era_is_told_by_meta_header_or_method() {
        let version = |version| headers(&[("mcp-protocol-version", version)]);
        let list = message("tools/list", json!({}));
        assert_eq!(era(&headers(&[]), &list), Ok(Era::Legacy));
        assert_eq!(era(&version("2025-06-18"), &list), Ok(Era::Legacy));
        assert_eq!(era(&version("2026-07-28"), &list), Ok(Era::Modern));
        assert_eq!(era(&version("2030-01-01"), &list), Ok(Era::Modern));
        assert_eq!(era(&headers(&[]), &message("server/discover", json!({}))), Ok(Era::Modern));
        assert_eq!(era(&version("junk"), &message("initialize", json!({}))), Ok(Era::Legacy));
        let with_meta = message("initialize", json!({"_meta": meta(json!(MODERN))}));
        assert_eq!(era(&headers(&[]), &with_meta), Ok(Era::Modern));
        for unknown in ["1900-01-01", "not-a-version", "zzzz-zz-zz", "2026-01-01", ""] {
            assert_eq!(era(&version(unknown), &list).unwrap_err().code, UNSUPPORTED_VERSION, "{unknown}");
        }
    }

    #[test]
    fn the_first_rung_that_fails_decides() {
        let all = |version, method, name| {
            headers(&[("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name)])
        };
        let good = message("tools/call", json!({"_meta": meta(json!(MODERN)), "name": "disk"}));
        assert_eq!(ladder(&all(MODERN, "tools/call", "disk"), &good), Ok(()));
        assert_eq!(ladder(&all(MODERN, "tools/call", "=?base64?ZGlzaw==?="), &good), Ok(()));
        let code = |headers: &HeaderMap, message: &Message| ladder(headers, message).unwrap_err().code;
        let empty = message("tools/call", json!({}));
        assert_eq!(code(&all("x", "y", "z"), &empty), INVALID_PARAMS);
        assert_eq!(code(&headers(&[]), &good), HEADER_MISMATCH);
        assert_eq!(code(&all("2025-11-25", "tools/call", "disk"), &good), HEADER_MISMATCH);
        assert_eq!(code(&all(MODERN, "Tools/call", "disk"), &good), HEADER_MISMATCH);
        assert_eq!(code(&all(MODERN, "tools/call", "dis"), &good), HEADER_MISMATCH);
        assert_eq!(code(&all(MODERN, "tools/call", "=?base64?ZGlzaw=?="), &good), HEADER_MISMATCH);
        let newer = message("tools/call", json!({"_meta": meta(json!("2030-01-01")), "name": "disk"}));
        assert_eq!(code(&all("2030-01-01", "tools/call", "disk"), &newer), UNSUPPORTED_VERSION);
        assert_eq!(code(&all(MODERN, "tools/call", "disk"), &newer), HEADER_MISMATCH);
        let mut twice = all(MODERN, "tools/call", "disk");
        twice.append(METHOD, "tools/call".parse().unwrap());
        assert_eq!(code(&twice, &good), HEADER_MISMATCH);
        let number = message("tools/call", json!({"_meta": meta(json!(5)), "name": "disk"}));
        assert_eq!(code(&all("5", "tools/call", "disk"), &number), HEADER_MISMATCH);
    }

    #[test]
    fn base64_is_taken_in_its_canonical_form_only() {
        for (text, bytes) in
            [("", Some("")), ("Zg==", Some("f")), ("Zm8=", Some("fo")), ("Zm9v", Some("foo"))]
        {
            assert_eq!(base64(text).as_deref(), bytes.map(str::as_bytes), "{text}");
        }
        for text in ["Zh==", "Zm9=", "Zg=", "Zg", "Z===", "Zg==Zg==", "Zm9v====", "Zm-v", "Z g="] {
            assert_eq!(base64(text), None, "{text}");
        }
    }
}
