#![forbid(unsafe_code)]
//! `Content-Type` and `Accept` of a POST.

use super::guard::only;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

/// Whether the body is declared as JSON; parameters do not matter.
pub fn sends_json(headers: &HeaderMap) -> bool {
    let declared = only(headers, &CONTENT_TYPE).and_then(|value| value.to_str().ok());
    declared.is_some_and(|value| media_type(value).eq_ignore_ascii_case("application/json"))
}

/// Whether the client takes both forms of an answer, as the protocol demands of it.
pub fn accepts_both(headers: &HeaderMap) -> bool {
    accepts(headers, "application", "json") && accepts(headers, "text", "event-stream")
}

fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|range| {
        let matches = media_type(range).split_once('/').is_some_and(|(k, s)| {
            (k == "*" && s == "*")
                || (k.eq_ignore_ascii_case(kind) && (s == "*" || s.eq_ignore_ascii_case(subtype)))
        });
        matches && !is_excluded(range)
    })
}

fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// Whether a range has `q=0`: "not acceptable" (RFC 9110, 12.4.2).
fn is_excluded(range: &str) -> bool {
    range.split(';').skip(1).filter_map(|parameter| parameter.trim().split_once('=')).any(|(name, weight)| {
        name.trim().eq_ignore_ascii_case("q")
            && weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn json_is_declared_once_with_or_without_parameters() {
        for value in ["application/json", "Application/JSON; charset=utf-8"] {
            assert!(sends_json(&headers(CONTENT_TYPE, &[value])), "{value}");
        }
        for values in
            [&[][..], &["text/plain"], &["application/jsonp"], &["application/json", "application/json"]]
        {
            assert!(!sends_json(&headers(CONTENT_TYPE, values)), "{values:?}");
        }
    }

    #[test]
    fn both_forms_must_be_acceptable_in_any_order_and_spelling() {
        for values in [
            &["application/json, text/event-stream"][..],
            &["text/event-stream;q=0.5", "application/json;q=0.1"],
            &["*/*"],
            &["application/*, text/*;q=0.2"],
            &["TEXT/event-stream,Application/Json"],
        ] {
            assert!(accepts_both(&headers(ACCEPT, values)), "{values:?}");
        }
        for values in [
            &[][..],
            &["application/json"],
            &["text/event-stream"],
            &["application/json, text/event-stream;q=0"],
            &["*/*;q=0.0"],
            &["*/json"],
            &["text/html"],
        ] {
            assert!(!accepts_both(&headers(ACCEPT, values)), "{values:?}");
        }
    }
}
