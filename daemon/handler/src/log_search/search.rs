#![forbid(unsafe_code)]
//! The search of one stream, by ripgrep's engine: linear in the text, whatever the pattern is.

use super::lines::shown;
use super::source::{LINE, Source};
use crate::failure::Failure;
use crate::stamp;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use std::collections::VecDeque;
use std::io;

/// Largest compiled pattern, and largest cache of its automaton, bytes: `\w{1000}{1000}` is refused.
const PATTERN: usize = 10 << 20;
/// Memory for the lines around a match, bytes: the most context there can be, in the longest lines.
const HEAP: usize = 210 * LINE;

/// What is looked for.
pub struct Wanted {
    /// The pattern.
    pub matcher: RegexMatcher,
    /// Lines before and after each match.
    pub context: usize,
    /// Earliest time of a line, milliseconds since 1970.
    pub since: Option<i64>,
    /// Latest time of a line.
    pub until: Option<i64>,
    /// Most matches of all files together.
    pub max_matches: usize,
}

/// Which matches of a file are kept where there are more than wanted.
#[derive(Clone, Copy)]
pub enum Keep {
    /// The search ends after so many.
    First(usize),
    /// The whole file is searched.
    Last(usize),
}

/// A matching line. Where matches are close together, a line between them stands with only one of them.
#[derive(Default)]
pub struct Found {
    /// Counted from 1; unknown where the beginning of the file was left out.
    pub line: Option<u64>,
    /// Its time, where it carries one that is known.
    pub time: Option<i64>,
    /// The line.
    pub text: String,
    /// Lines before it.
    pub before: Vec<String>,
    /// Lines after it.
    pub after: Vec<String>,
}

/// What the search of one file gave.
pub struct Outcome {
    /// In the order of the file.
    pub found: Vec<Found>,
    /// There are more matches than were kept.
    pub more: bool,
    /// Matching lines without a time that is known, while a time was asked for.
    pub undated: u64,
}

/// Compiles a pattern in RE2-like syntax; an empty one matches every line.
///
/// # Errors
/// It is none, or compiles too large.
pub fn matcher(pattern: &str) -> Result<RegexMatcher, Failure> {
    RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN)
        .dfa_size_limit(PATTERN)
        .nest_limit(100)
        .build(pattern)
        .map_err(|error| Failure::refused(format!("pattern: {error}")))
}

/// Searches a stream to its end, or until enough was found. `counted` says that it begins with line 1.
pub fn search(
    source: &mut Source,
    wanted: &Wanted,
    keep: Keep,
    written: i64,
    counted: bool,
) -> Result<Outcome, Failure> {
    let mut searcher = SearcherBuilder::new()
        .line_number(counted)
        .before_context(wanted.context)
        .after_context(wanted.context)
        .heap_limit(Some(HEAP))
        // Others write these files: a mapping that is cut short ends the process.
        .memory_map(MmapChoice::never())
        .binary_detection(BinaryDetection::none())
        .bom_sniffing(false)
        .build();
    let mut sink = Collect {
        wanted,
        keep,
        written,
        found: VecDeque::new(),
        offsets: VecDeque::new(),
        before: Vec::new(),
        open: false,
        more: false,
        undated: 0,
    };
    searcher
        .search_reader(&wanted.matcher, &mut *source, &mut sink)
        .map_err(|error| Failure::system("searching", error))?;
    let mut found: Vec<Found> = sink.found.into();
    for (one, offset) in found.iter_mut().zip(sink.offsets) {
        // Line ends that were put into long lines are not the file's.
        let put_in = source.folds().partition_point(|fold| *fold < offset) as u64;
        one.line = one.line.map(|line| line.saturating_sub(put_in));
    }
    Ok(Outcome { found, more: sink.more, undated: sink.undated })
}

struct Collect<'w> {
    wanted: &'w Wanted,
    keep: Keep,
    written: i64,
    found: VecDeque<Found>,
    /// Where each match begins in the stream.
    offsets: VecDeque<u64>,
    before: Vec<String>,
    /// The last match was kept, so that lines after it belong to it.
    open: bool,
    more: bool,
    undated: u64,
}

impl Collect<'_> {
    fn is_in_time(&mut self, time: Option<i64>) -> bool {
        let (since, until) = (self.wanted.since, self.wanted.until);
        match time {
            _ if since.is_none() && until.is_none() => true,
            Some(time) => since.is_none_or(|since| time >= since) && until.is_none_or(|until| time <= until),
            None => {
                self.undated += 1;
                true
            }
        }
    }
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let before = std::mem::take(&mut self.before);
        let time = stamp::of_line(line.bytes(), self.written);
        if !self.is_in_time(time) {
            self.open = false;
            return Ok(true);
        }
        match self.keep {
            Keep::First(most) if self.found.len() >= most => {
                self.more = true;
                return Ok(false);
            }
            Keep::Last(most) if self.found.len() >= most => {
                self.more = true;
                self.found.pop_front();
                self.offsets.pop_front();
            }
            _ => {}
        }
        self.open = true;
        self.offsets.push_back(line.absolute_byte_offset());
        self.found.push_back(Found {
            line: line.line_number(),
            time,
            text: shown(line.bytes()),
            before,
            after: Vec::new(),
        });
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        match (line.kind(), self.found.back_mut()) {
            (SinkContextKind::After, Some(last)) if self.open => last.after.push(shown(line.bytes())),
            (SinkContextKind::Before, _) => self.before.push(shown(line.bytes())),
            _ => {}
        }
        Ok(true)
    }
}
