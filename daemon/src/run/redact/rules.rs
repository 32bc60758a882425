#![forbid(unsafe_code)]
//! What `builtin: [secrets]` recognises.
//!
//! A rule finds where a secret begins by an expression of bounded length; where it ends is read off the
//! bytes. Whatever stands behind a rule's beginning is redacted to the end of the word, the quotes or the
//! line: too much rather than too little.

use super::{key, value};
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;
use std::sync::LazyLock;

/// From the end of a rule's expression to the secret itself.
enum Secret {
    /// The expression matches the secret.
    Match,
    /// The value behind it: quoted, or a word.
    Value,
    /// The same behind a key, if the key is one and what follows it could be a secret.
    Keyed,
    /// The value behind it, if it looks random.
    Random,
    /// The rest of the line, up to a quote.
    Line,
    /// The rest of a URL's authority, up to its `@`.
    UserInfo,
}

/// One rule, compiled.
struct Rule {
    expression: Regex,
    secret: Secret,
}

/// All rules.
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Whatever one of them begins with. Most lines hold nothing of the kind, and so are read once and not
    /// once for each rule.
    any: Regex,
    /// The line that begins a private key; its end is looked for by the stream.
    pub(super) key_begin: Regex,
    /// The line that ends it.
    pub(super) key_end: Regex,
}

/// How a key and its value are joined: `key=`, `"key": `, `\"key\":`, `key => `, `<key>`.
const JOIN: &str = r#"(?:\\{0,4}["']?[ \t]{0,8}(?:=>|:=|==|[:=])[ \t]{0,8}|>)"#;

/// Expressions with the kind of place they lead to, each with an example in the tests.
fn table() -> Vec<(String, Secret)> {
    vec![
        // Keys and tokens with a shape of their own.
        (r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}".into(), Secret::Match),
        (r"\b(?:AIza[\w-]{35,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})".into(), Secret::Match),
        (r"\b(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_\w{22,})".into(), Secret::Match),
        (r"\bgl(?:pat|ptt|dt|rt|cbt|ft|oas|soat|imt|agent|ffct)-[\w.=-]{20,}".into(), Secret::Match),
        (r"\b(?:xox[a-z][.-]|xapp-)[A-Za-z0-9.-]{10,}".into(), Secret::Match),
        (r"\b[0-9]{8,10}:AA[\w-]{33,}".into(), Secret::Match),
        (r"\b[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}".into(), Secret::Match),
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)*".into(), Secret::Match),
        (r"\b[\w~.-]{3}[78]Q~[\w~.-]{31,}".into(), Secret::Match),
        (
            r"\b(?:sk-[\w-]{20,}|[rs]k_(?:live|test)_\w{16,}|npm_\w{36,}|pypi-[\w-]{50,}|hf_\w{30,}|hv[sb]\.[\w-]{20,}|dop_v1_\w{32,}|SG\.[\w-]{16,}\.[\w-]{16,})"
                .into(),
            Secret::Match,
        ),
        (r"\bgp_[\w-]{43}".into(), Secret::Match),
        (r"\$(?:1|2[abxy]|5|6|7|y|gy|argon2(?:id|i|d))\$[\w./$,=+-]{20,}".into(), Secret::Match),
        (r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]+".into(), Secret::Match),
        (r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[\w/-]+".into(), Secret::Match),
        // Values that their key gives away. Only the end of the key counts: `max_tokens=` is none.
        (
            format!(
                r"(?i)(?:pass(?:word|wd|phrase|code)|[_;-] ?(?:pass|pwd)|secret|token|credentials?|(?:api|access|account|auth|private|secret|signing|encryption|master)[_-]?key(?:[_-]?base)?){JOIN}"
            ),
            Secret::Keyed,
        ),
        (r"(?i)--[\w-]{0,32}(?:pass(?:word|wd|phrase)?|secret|token|api-?key)[ \t]{1,8}".into(), Secret::Value),
        (r"\blogin[ \t]+\S{1,128}[ \t]+password[ \t]{1,8}".into(), Secret::Value),
        (
            format!(r"(?i)(?:key|auth|session|session[_-]?id|sid|sig|signature|cookie|jwt|otp){JOIN}"),
            Secret::Random,
        ),
        (
            r#"(?i)(?:authorization|cookie)\\{0,4}["']?[ \t]{0,8}[:=][ \t]{0,8}\\{0,4}["']?(?:(?:basic|bearer|negotiate|ntlm|token|apikey)[ \t]{1,8})?"#
                .into(),
            Secret::Line,
        ),
        (r"(?i)\bbearer[ \t]{1,8}[\w.~+/-]{16,}=*".into(), Secret::Match),
        (r"://[^\s/?#]".into(), Secret::UserInfo),
    ]
}

static RULES: LazyLock<Result<Rules, String>> = LazyLock::new(|| {
    // Bytes, not characters: output may be in any encoding, and the secrets are all ASCII.
    let compile = |expression: &str| {
        RegexBuilder::new(expression).unicode(false).build().map_err(|error| error.to_string())
    };
    let rule = |(expression, secret): (String, Secret)| {
        compile(&expression).map(|expression| Rule { expression, secret })
    };
    let any: Vec<String> = table().into_iter().map(|(expression, _)| format!("(?:{expression})")).collect();
    Ok(Rules {
        any: compile(&any.join("|"))?,
        rules: table().into_iter().map(rule).collect::<Result<_, _>>()?,
        key_begin: compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")?,
        key_end: compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")?,
    })
});

impl Rules {
    /// The rules, compiled once.
    ///
    /// # Errors
    /// An expression that does not compile: then nothing may be shown.
    pub(super) fn get() -> Result<&'static Self, String> {
        RULES.as_ref().map_err(Clone::clone)
    }

    /// Adds the place of every secret, in no order. No rule reaches over the end of a line, so that only
    /// lines in which one of them begins are looked at closely.
    pub(super) fn find(&self, text: &[u8], places: &mut Vec<Range<usize>>) {
        let mut at = 0;
        while let Some(found) = self.any.find_at(text, at) {
            let before = text.get(at..found.start()).unwrap_or_default();
            let start = memchr::memrchr(b'\n', before).map_or(at, |end| at + end + 1);
            let rest = text.get(found.start()..).unwrap_or_default();
            let end = memchr::memchr(b'\n', rest).map_or(text.len(), |length| found.start() + length + 1);
            self.find_in(text.get(..end).unwrap_or_default(), start, places);
            at = end;
        }
    }

    /// The same from `start` on, by each rule for itself.
    fn find_in(&self, text: &[u8], start: usize, places: &mut Vec<Range<usize>>) {
        for rule in &self.rules {
            let mut at = start;
            while let Some(found) = rule.expression.find_at(text, at) {
                let (place, next) = match rule.secret {
                    Secret::Match => (Some(found.range()), found.end()),
                    Secret::Value => value::word(text, found.end()),
                    Secret::Keyed => key::value(text, found.range()),
                    Secret::Random => value::random(text, found.end()),
                    Secret::Line => value::line(text, found.end()),
                    Secret::UserInfo => value::user_info(text, found.start() + "://".len()),
                };
                places.extend(place);
                // Never again over what was looked at, so that the whole stays linear.
                at = next.max(found.end());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_by_line_is_found_what_is_found_in_the_whole() {
        let lines = [
            "GET https://user:hunter2@host/path",
            "password: hunter22 and more",
            "nothing here",
            "login root password",
            "secret",
            "=value of no key",
            "authorization: Bearer abcdefghijklmnopqrstuvwxyz",
            "key=\"0123456789abcdefABCDEF",
            "\"token=abc",
            "",
            "AKIAABCDEFGHIJKLMNOP --token x",
            "a://b",
            "cookie:",
            "sid=1",
        ];
        let rules = Rules::get().expect("rules");
        let mut seed = 7_usize;
        for _ in 0..2000 {
            let mut text = String::new();
            for _ in 0..seed % 9 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += lines.get((seed >> 33) % lines.len()).copied().unwrap_or_default();
                text.push(if seed >> 40 & 7 == 0 { '\r' } else { '\n' });
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let (mut by_line, mut whole) = (Vec::new(), Vec::new());
            rules.find(text.as_bytes(), &mut by_line);
            rules.find_in(text.as_bytes(), 0, &mut whole);
            let sorted = |places: &mut Vec<Range<usize>>| places.sort_unstable_by_key(|p| (p.start, p.end));
            sorted(&mut by_line);
            sorted(&mut whole);
            assert_eq!(by_line, whole, "{text:?}");
        }
    }
}
