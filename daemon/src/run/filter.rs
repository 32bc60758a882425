#![forbid(unsafe_code)]
//! `match`, `exclude`, `tail`, `head` and `count`: what a caller may ask of a step's output.
//!
//! Filters see lines after redaction. They need linear time and no more memory than is shown.

use super::report::Filters;
use gloveport_contract::catalog::{Action, Filter};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::Look;

/// Longest pattern of a caller, characters.
const PATTERN_LENGTH: usize = 200;
/// Compiled size of one pattern, bytes: `\w{1000}{1000}` is short and large.
const PATTERN_SIZE: usize = 1 << 20;
/// A longer line is judged by its first so many bytes.
const LINE: usize = 1 << 20;

/// A call's filters, checked and compiled.
#[derive(Debug, Clone, Default)]
pub struct FilterPlan {
    matching: Option<Regex>,
    /// Finds, in many lines at once, where one that matches may begin; none where a pattern speaks of the
    /// text's ends, which are a line's here.
    finding: Option<Regex>,
    exclude: Option<Regex>,
    cut: Cut,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Cut {
    #[default]
    None,
    Head(u64),
    Tail(u64),
    Count,
}

impl FilterPlan {
    /// Checks what a caller asks for against what the action declares.
    ///
    /// # Errors
    /// The filter, what is wrong with it and what would be right.
    pub fn new(action: &Action, filters: &Filters) -> Result<Self, String> {
        for (filter, given) in [
            (Filter::Match, filters.matching.is_some()),
            (Filter::Exclude, filters.exclude.is_some()),
            (Filter::Tail, filters.tail.is_some()),
            (Filter::Head, filters.head.is_some()),
            (Filter::Count, filters.count.is_some()),
        ] {
            if given && !action.filters.contains(&filter) {
                let declared: Vec<&str> = action.filters.iter().copied().map(name).collect();
                let declared = if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
                return Err(format!("{}: `{}` has these filters: {declared}", name(filter), action.name));
            }
        }
        let cuts = [filters.tail.is_some(), filters.head.is_some(), filters.count.is_some()];
        if cuts.into_iter().filter(|given| *given).count() > 1 {
            return Err("tail, head and count exclude each other: give one of them".into());
        }
        let lines = |name: &str, count: u64| match count {
            0 => Err(format!("{name}: a number of lines from 1")),
            count => Ok(count),
        };
        Ok(Self {
            matching: filters.matching.as_deref().map(|pattern| compile("match", pattern)).transpose()?,
            finding: filters.matching.as_deref().and_then(in_many_lines),
            exclude: filters.exclude.as_deref().map(|pattern| compile("exclude", pattern)).transpose()?,
            cut: match (filters.head, filters.tail, filters.count) {
                (Some(count), _, _) => Cut::Head(lines("head", count)?),
                (_, Some(count), _) => Cut::Tail(lines("tail", count)?),
                (_, _, Some(true)) => Cut::Count,
                _ => Cut::None,
            },
        })
    }

    /// Whether it shows the end of the output, so that a cut must take from its start.
    pub fn keeps_end(&self) -> bool {
        matches!(self.cut, Cut::Tail(_))
    }

    fn is_empty(&self) -> bool {
        self.matching.is_none() && self.exclude.is_none() && self.cut == Cut::None
    }

    fn keeps(&self, line: &[u8]) -> bool {
        self.matching.as_ref().is_none_or(|pattern| pattern.is_match(line))
            && !self.exclude.as_ref().is_some_and(|pattern| pattern.is_match(line))
    }
}

fn name(filter: Filter) -> &'static str {
    match filter {
        Filter::Match => "match",
        Filter::Exclude => "exclude",
        Filter::Tail => "tail",
        Filter::Head => "head",
        Filter::Count => "count",
    }
}

fn compile(name: &str, pattern: &str) -> Result<Regex, String> {
    let length = pattern.chars().count();
    if length > PATTERN_LENGTH {
        return Err(format!("{name}: {length} characters long; at most {PATTERN_LENGTH}"));
    }
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_SIZE)
        .dfa_size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(most) => format!(
                "{name}: compiles to more than {most} bytes, the most that a pattern may cost; repetitions within \
                 repetitions multiply"
            ),
            error => format!("{name}: no pattern in RE2 syntax: {error}"),
        })
}

/// The pattern for many lines at once: what it finds in one line it finds there too, and sometimes more.
fn in_many_lines(pattern: &str) -> Option<Regex> {
    let mut parser = regex_syntax::ParserBuilder::new().multi_line(true).utf8(false).build();
    let ends = parser.parse(pattern).ok()?.properties().look_set();
    if ends.contains(Look::Start) || ends.contains(Look::End) {
        return None;
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE).build().ok()
}

/// What is left of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its bytes, at most as many as were asked for.
    pub bytes: Vec<u8>,
    /// Whether something that belonged to the result did not fit.
    pub truncated: bool,
    /// The number of lines, where only that was asked for.
    pub count: Option<u64>,
}

/// The filters at work on one stream.
pub struct LineFilter {
    plan: FilterPlan,
    limit: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Set once a line is longer than [`LINE`]: whether the rest of it is kept.
    verdict: Option<bool>,
    lines: u64,
    kept: Kept,
}

impl LineFilter {
    /// A filter that keeps at most `limit` bytes.
    pub fn new(plan: FilterPlan, limit: usize) -> Self {
        Self { plan, limit, line: Vec::new(), verdict: None, lines: 0, kept: Kept::default() }
    }

    /// Whether nothing that follows can change the result any more.
    pub fn is_done(&self) -> bool {
        match self.plan.cut {
            Cut::None => self.kept.truncated,
            Cut::Head(count) => self.kept.truncated || (self.lines >= count && self.verdict.is_none()),
            Cut::Tail(_) | Cut::Count => false,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.plan.is_empty() {
            self.keep(bytes);
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_done() {
            if self.line.is_empty() && self.verdict.is_none() {
                rest = self.skip(rest);
                if rest.is_empty() {
                    return;
                }
            }
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let (part, later) = rest.split_at(end);
            rest = later;
            let ends = part.ends_with(b"\n");
            if let Some(kept) = self.verdict {
                if kept {
                    self.keep(part);
                }
            } else if !ends && self.line.len() + part.len() > LINE {
                self.line.extend_from_slice(part);
                let line = std::mem::take(&mut self.line);
                self.verdict = Some(self.judge(&line));
            } else if self.line.is_empty() && ends {
                self.judge(part);
            } else {
                self.line.extend_from_slice(part);
                if ends {
                    let line = std::mem::take(&mut self.line);
                    self.judge(&line);
                }
            }
            if ends {
                self.verdict = None;
            }
        }
    }

    /// Passes over whole lines that cannot match.
    fn skip<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let Some(finding) = &self.plan.finding else { return bytes };
        // A carriage return may belong to a line's end, which is no matter of the pattern's.
        if memchr::memchr(b'\r', bytes).is_some() {
            return bytes;
        }
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let (lines, _) = bytes.split_at(whole);
        let next = match finding.find(lines) {
            Some(found) => {
                let before = lines.get(..found.start()).unwrap_or_default();
                memchr::memrchr(b'\n', before).map_or(0, |end| end + 1)
            }
            None => whole,
        };
        bytes.get(next..).unwrap_or_default()
    }

    /// What is left.
    pub fn finish(mut self) -> Kept {
        if !self.line.is_empty() && !self.is_done() {
            let line = std::mem::take(&mut self.line);
            self.judge(&line);
        }
        match self.plan.cut {
            Cut::Tail(count) => self.trim_tail(count),
            Cut::Count => self.kept.count = Some(self.lines),
            Cut::None | Cut::Head(_) => {}
        }
        self.kept
    }

    /// Keeps or drops a line (or the start of a very long one). Returns which.
    fn judge(&mut self, line: &[u8]) -> bool {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let keeps = self.plan.keeps(text.strip_suffix(b"\r").unwrap_or(text));
        if keeps {
            self.lines += 1;
            self.keep(line);
        }
        keeps
    }

    fn keep(&mut self, bytes: &[u8]) {
        match self.plan.cut {
            Cut::Count => {}
            Cut::Tail(count) => {
                self.kept.bytes.extend_from_slice(bytes);
                // Trimmed now and then: twice the limit bounds memory, and each byte is moved once.
                if self.kept.bytes.len() > 2 * self.limit {
                    self.trim_tail(count);
                }
            }
            Cut::None | Cut::Head(_) => {
                let room = self.limit.saturating_sub(self.kept.bytes.len());
                self.kept.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
                self.kept.truncated |= bytes.len() > room;
            }
        }
    }

    /// Drops all but the last lines, and of those what is over the limit.
    fn trim_tail(&mut self, count: u64) {
        let bytes = &self.kept.bytes;
        let content = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let mut left = count;
        let start = content.iter().rposition(|b| {
            left -= u64::from(*b == b'\n');
            left == 0
        });
        let lines_start = start.map_or(0, |at| at + 1);
        let limit_start = bytes.len().saturating_sub(self.limit);
        if limit_start > lines_start {
            self.kept.truncated = true;
        } else if start.is_some() {
            // All the lines that are asked for are here: what was cut before them does not count.
            self.kept.truncated = false;
        }
        self.kept.bytes.drain(..lines_start.max(limit_start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(filters: &Filters) -> FilterPlan {
        FilterPlan::new(&action("[match, exclude, tail, head, count]"), filters).expect("valid")
    }

    fn action(filters: &str) -> Action {
        let filters = filters.replace('[', "[\"").replace(", ", "\", \"").replace(']', "\"]");
        serde_json::from_str(&format!(
            r#"{{"name": "a", "description": "d", "risk": "read", "exec": ["/bin/true"], "filters": {filters}}}"#
        ))
        .expect("action")
    }

    fn filtered(filters: &Filters, limit: usize, text: &str) -> (String, bool, Option<u64>) {
        let whole = run(filters, limit, &[text.as_bytes()]);
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(run(filters, limit, &single), whole, "chunks must not matter");
        (String::from_utf8_lossy(&whole.bytes).into_owned(), whole.truncated, whole.count)
    }

    fn run(filters: &Filters, limit: usize, chunks: &[&[u8]]) -> Kept {
        let mut filter = LineFilter::new(plan(filters), limit);
        chunks.iter().for_each(|chunk| filter.push(chunk));
        filter.finish()
    }

    const TEXT: &str = "one\ntwo\r\nthree\nfour";

    #[test]
    fn each_filter_does_what_it_says() {
        let none = Filters::default();
        let cases = [
            (none.clone(), TEXT, None),
            (Filters { matching: Some("^t".into()), ..none.clone() }, "two\r\nthree\n", None),
            (Filters { matching: Some("o$".into()), ..none.clone() }, "two\r\n", None),
            (Filters { exclude: Some("o".into()), ..none.clone() }, "three\n", None),
            (Filters { head: Some(1), ..none.clone() }, "one\n", None),
            (Filters { head: Some(9), ..none.clone() }, TEXT, None),
            (Filters { tail: Some(1), ..none.clone() }, "four", None),
            (Filters { tail: Some(2), ..none.clone() }, "three\nfour", None),
            (Filters { tail: Some(4), ..none.clone() }, TEXT, None),
            (Filters { tail: Some(u64::MAX), ..none.clone() }, TEXT, None),
            (Filters { count: Some(true), ..none.clone() }, "", Some(4)),
            (Filters { count: Some(false), ..none.clone() }, TEXT, None),
            (
                Filters {
                    matching: Some("o".into()),
                    exclude: Some("w".into()),
                    tail: Some(1),
                    ..none.clone()
                },
                "four",
                None,
            ),
            (Filters { matching: Some("o".into()), count: Some(true), ..none.clone() }, "", Some(3)),
        ];
        for (filters, expected, count) in cases {
            assert_eq!(filtered(&filters, 1000, TEXT), (expected.into(), false, count), "{filters:?}");
        }
    }

    #[test]
    fn what_is_passed_over_at_once_is_what_no_line_matches() {
        let patterns = [
            "a", "^b", "b$", "^$", r"a\s*b", "[^a]b", r"\bb\b", r"\Bb", r"\Aa", r"b\z", "(?-m)^a", "(?s)a.b",
            "(?i)A$", "^", "$", "", "b|^a", r"\s", r"\r", "a\n?b", "(?R)b$", "a.b",
        ];
        for text in ["a b\n\nb\nab\na\n b \n\nba\nend", "a b\r\n\r\nb\nab\r\na\rb\n\rb\r\nba\nend\r"] {
            for pattern in patterns {
                let by_line = compile("match", pattern).expect("a pattern");
                let end = |line: &str| line.strip_suffix('\n').unwrap_or(line).len();
                let content =
                    |line: &str| line.get(..end(line)).map(|l| l.strip_suffix('\r').unwrap_or(l).to_owned());
                let matches =
                    |line: &&str| content(line).is_some_and(|line| by_line.is_match(line.as_bytes()));
                let expected: String = text.split_inclusive('\n').filter(matches).collect();
                let filters = Filters { matching: Some(pattern.into()), ..Filters::default() };
                assert_eq!(filtered(&filters, 1000, text).0, expected, "{pattern:?} in {text:?}");
            }
        }
    }

    #[test]
    fn a_result_over_the_limit_is_cut_and_says_so() {
        let none = Filters::default();
        assert_eq!(filtered(&none, 5, TEXT), ("one\nt".into(), true, None));
        assert_eq!(filtered(&none, TEXT.len(), TEXT), (TEXT.into(), false, None));
        let head = Filters { head: Some(2), ..none.clone() };
        assert_eq!(filtered(&head, 5, TEXT), ("one\nt".into(), true, None));
        assert_eq!(filtered(&head, 9, TEXT), ("one\ntwo\r\n".into(), false, None));
        let tail = Filters { tail: Some(2), ..none.clone() };
        assert_eq!(filtered(&tail, 6, TEXT), ("e\nfour".into(), true, None));
        assert_eq!(filtered(&tail, 10, TEXT), ("three\nfour".into(), false, None));
    }

    #[test]
    fn a_tail_of_much_output_keeps_the_last_lines_only() {
        let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let tail = Filters { tail: Some(2), ..Filters::default() };
        assert_eq!(filtered(&tail, 100, &text), ("line 9998\nline 9999\n".into(), false, None));
    }

    #[test]
    fn a_very_long_line_is_judged_by_its_start() {
        let long = format!("hit{}\nmiss{}\nshort hit\n", "x".repeat(2 * LINE), "y".repeat(2 * LINE));
        let filters = Filters { matching: Some("hit".into()), ..Filters::default() };
        let kept = run(&filters, usize::MAX >> 1, &[long.as_bytes()]);
        assert_eq!(kept.bytes.len(), 3 + 2 * LINE + 1 + 10);
        let counted = Filters { matching: Some("hit".into()), count: Some(true), ..Filters::default() };
        assert_eq!(run(&counted, 0, &[long.as_bytes()]).count, Some(2));
    }

    #[test]
    fn only_declared_filters_are_accepted() {
        let filters = Filters { tail: Some(1), ..Filters::default() };
        let error = FilterPlan::new(&action("[match, head]"), &filters).expect_err("not declared");
        assert_eq!(error, "tail: `a` has these filters: match, head");
    }

    #[test]
    fn what_is_no_filter_is_refused_by_name() {
        let none = Filters::default();
        for (filters, expected) in [
            (Filters { tail: Some(0), ..none.clone() }, "tail: a number"),
            (Filters { head: Some(0), ..none.clone() }, "head: a number"),
            (Filters { tail: Some(1), count: Some(false), ..none.clone() }, "exclude each other"),
            (Filters { tail: Some(1), head: Some(1), ..none.clone() }, "exclude each other"),
            (Filters { matching: Some("(".into()), ..none.clone() }, "match: no pattern"),
            (Filters { matching: Some("(?=a)".into()), ..none.clone() }, "match: no pattern"),
            (Filters { exclude: Some(r"(a)\1".into()), ..none.clone() }, "exclude: no pattern"),
            (
                Filters { matching: Some(r"\w{1000}{1000}".into()), ..none.clone() },
                "match: compiles to more than 1048576",
            ),
            (Filters { matching: Some("a".repeat(201)), ..none.clone() }, "match: 201 characters"),
        ] {
            let error = FilterPlan::new(&action("[match, exclude, tail, head, count]"), &filters)
                .expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
        let longest = Filters { matching: Some("é".repeat(200)), ..none };
        assert!(FilterPlan::new(&action("[match]"), &longest).is_ok());
    }
}
