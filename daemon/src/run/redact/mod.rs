#![forbid(unsafe_code)]
//! Secrets leave the output before anything else sees it.
//!
//! Output comes in chunks of any size; what is found does not depend on where they are cut. Whole lines are
//! looked at together. A line that is too long to be held is looked at in windows that overlap, and where
//! that cannot be sure (an action's own patterns, a value without an end) the rest of it is left out: when
//! in doubt a placeholder, never the text.

mod json;
mod key;
mod rules;
mod value;

pub use json::redact_json;

use gloveport_contract::catalog::Redact;
use regex::bytes::{Regex, RegexBuilder};
use rules::Rules;
use std::ops::Range;

/// What stands where a secret stood.
pub const PLACEHOLDER: &[u8] = b"[redacted]";

/// Most bytes that are held back; a longer line is looked at in windows of this size.
const WINDOW: usize = 64 * 1024;
/// The same where an action has patterns of its own, which may need a whole line.
const WINDOW_OF_PATTERNS: usize = 1024 * 1024;
/// Bytes at the end of a window that are looked at again with the next one. Every built-in rule is sure
/// after fewer (a JSON Web Token's header is the longest).
const HOLD: usize = 8 * 1024;
/// Bytes before a window that are looked at again: the key of a value.
const CONTEXT: usize = 256;
/// Longest private key; what follows an end that never comes is shown again.
const KEY: usize = 32 * 1024;
/// Longest line that ends a private key.
const KEY_END: usize = 80;
/// Compiled size of one pattern of an action, bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// What is being left out at the moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Swallow {
    Nothing,
    /// The rest of a value, up to white space or a quote.
    Word,
    /// The rest of the line.
    Line,
    /// A private key, at most this many bytes more.
    Key(usize),
}

/// What is to be redacted, compiled once for all streams of a run.
#[derive(Clone)]
pub struct Redaction {
    rules: Option<&'static Rules>,
    patterns: Vec<Regex>,
}

impl Redaction {
    /// Compiles what an action declares. `literals` are values that must not be shown either.
    ///
    /// # Errors
    /// A pattern of the action that does not compile: the action must not run then.
    pub fn new<'a>(redact: &Redact, literals: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let rules = if redact.builtin.is_empty() { None } else { Some(Rules::get()?) };
        let escaped = literals.filter(|text| !text.is_empty()).map(regex::escape);
        let compile = |pattern: String| {
            RegexBuilder::new(&pattern)
                .size_limit(PATTERN_SIZE)
                .build()
                .map_err(|error| format!("redact.patterns: {error}"))
        };
        let patterns =
            redact.patterns.iter().cloned().chain(escaped).map(compile).collect::<Result<_, _>>()?;
        Ok(Self { rules, patterns })
    }

    /// A redactor for one stream.
    pub fn start(&self) -> Redactor {
        Redactor {
            rules: self.rules,
            patterns: self.patterns.clone(),
            window: if self.patterns.is_empty() { WINDOW } else { WINDOW_OF_PATTERNS },
            buffer: Vec::new(),
            shown: 0,
            swallow: Swallow::Nothing,
            count: 0,
        }
    }
}

/// Removes secrets from one stream.
pub struct Redactor {
    rules: Option<&'static Rules>,
    patterns: Vec<Regex>,
    window: usize,
    buffer: Vec<u8>,
    /// Bytes at the start of `buffer` that are out already and only give context.
    shown: usize,
    swallow: Swallow,
    count: u64,
}

impl Redactor {
    /// Takes a chunk and appends what may be shown by now.
    pub fn push(&mut self, mut chunk: &[u8], out: &mut Vec<u8>) {
        if self.rules.is_none() && self.patterns.is_empty() {
            out.extend_from_slice(chunk);
            return;
        }
        while !chunk.is_empty() {
            let room = self.window.saturating_sub(self.buffer.len()).clamp(1, chunk.len());
            let (now, later) = chunk.split_at(room);
            self.buffer.extend_from_slice(now);
            chunk = later;
            // Looking only at what is new keeps a long line that comes byte by byte linear.
            if self.buffer.len() >= self.window || self.swallow != Swallow::Nothing || now.contains(&b'\n') {
                self.work(false, out);
            }
        }
    }

    /// Ends a text within the stream, a string of a JSON document: only a private key may go on.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.work(true, out);
        if matches!(self.swallow, Swallow::Word | Swallow::Line) {
            self.swallow = Swallow::Nothing;
        }
        self.buffer.clear();
        self.shown = 0;
    }

    /// Ends the stream.
    ///
    /// Returns how many places were redacted.
    pub fn finish(mut self, out: &mut Vec<u8>) -> u64 {
        self.flush(out);
        self.count
    }

    /// Shows, holds back or drops what is in the buffer.
    fn work(&mut self, at_end: bool, out: &mut Vec<u8>) {
        loop {
            if self.swallow != Swallow::Nothing {
                if !self.swallow_more(at_end) {
                    return;
                }
                continue;
            }
            let line_end = self.buffer.iter().rposition(|b| *b == b'\n').map(|at| at + 1);
            let (end, whole) = match line_end {
                _ if at_end => (self.buffer.len(), true),
                Some(end) if end > self.shown => (end, true),
                _ if self.buffer.len() >= self.window => (self.buffer.len(), false),
                _ => return,
            };
            if end <= self.shown {
                return;
            }
            if let Some(begin) = self.key_begin(end) {
                self.show(begin.start, begin.start, out);
                self.replace(out);
                self.forget(begin.end, 0);
                self.swallow = Swallow::Key(KEY);
            } else if whole {
                self.show(end, end, out);
                self.forget(end, 0);
            } else {
                self.window_done(out);
            }
        }
    }

    /// Drops what is being left out. Returns whether its end was found.
    fn swallow_more(&mut self, at_end: bool) -> bool {
        let drop = match self.swallow {
            Swallow::Nothing => Some(0),
            Swallow::Word => {
                self.buffer.iter().position(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\''))
            }
            Swallow::Line => self.buffer.iter().position(|b| *b == b'\n'),
            Swallow::Key(left) => {
                let end =
                    self.rules.and_then(|rules| rules.key_end.find(&self.buffer)).map(|found| found.end());
                // At the end of the buffer the last dash may still be missing.
                match end.filter(|end| at_end || *end < self.buffer.len()) {
                    Some(end) => Some(end.min(left)),
                    None if self.buffer.len() >= left => Some(left),
                    None => {
                        // The marker may have begun: that much stays.
                        let dropped = self.buffer.len().saturating_sub(KEY_END);
                        self.buffer.drain(..dropped);
                        self.swallow = Swallow::Key(left - dropped);
                        return false;
                    }
                }
            }
        };
        match drop {
            Some(end) => {
                self.buffer.drain(..end);
                self.swallow = Swallow::Nothing;
                true
            }
            None => {
                self.buffer.clear();
                false
            }
        }
    }

    fn key_begin(&self, end: usize) -> Option<Range<usize>> {
        let text = self.buffer.get(..end).unwrap_or_default();
        self.rules?.key_begin.find_at(text, self.shown).map(|found| found.range())
    }

    /// A line that does not fit: shows what is certain, and keeps what is not for the next window.
    fn window_done(&mut self, out: &mut Vec<u8>) {
        if !self.patterns.is_empty() {
            self.replace(out);
            self.forget(self.buffer.len(), 0);
            self.swallow = Swallow::Line;
            return;
        }
        let cut = self.buffer.len().saturating_sub(HOLD);
        let end = self.show(cut, self.buffer.len(), out);
        if end >= self.buffer.len() {
            // The secret reaches the end of the window: its rest is still to come.
            self.swallow = Swallow::Word;
            self.forget(end, 0);
        } else {
            self.forget(end, CONTEXT);
        }
    }

    /// Appends the text up to `cut` without the secrets that begin before it; those are looked for up to
    /// `horizon`. Returns where it stopped: `cut`, or the end of a secret that reaches over it.
    fn show(&mut self, cut: usize, horizon: usize, out: &mut Vec<u8>) -> usize {
        let text = self.buffer.get(..horizon).unwrap_or_default();
        let mut at = self.shown;
        let mut count = 0;
        for place in secrets(self.rules, &self.patterns, text) {
            if place.start >= cut || place.end <= at {
                continue;
            }
            // A place may begin in the context: then its rest is what has not been shown yet.
            out.extend_from_slice(text.get(at..place.start.max(at)).unwrap_or_default());
            out.extend_from_slice(PLACEHOLDER);
            count += 1;
            at = place.end;
        }
        out.extend_from_slice(text.get(at..cut).unwrap_or_default());
        self.count += count;
        at.max(cut)
    }

    fn replace(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PLACEHOLDER);
        self.count += 1;
    }

    /// Drops the buffer up to `end` but for so many bytes of context.
    fn forget(&mut self, end: usize, context: usize) {
        self.shown = context.min(end);
        self.buffer.drain(..end - self.shown);
    }
}

/// The places of all secrets in order, overlapping ones joined.
fn secrets(rules: Option<&Rules>, patterns: &[Regex], text: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    if let Some(rules) = rules {
        rules.find(text, &mut places);
    }
    if !patterns.is_empty() {
        let mut start = 0;
        for line in text.split(|b| *b == b'\n') {
            let found = patterns.iter().flat_map(|pattern| pattern.find_iter(line));
            places.extend(found.filter(|m| !m.is_empty()).map(|m| start + m.start()..start + m.end()));
            start += line.len() + 1;
        }
    }
    places.sort_unstable_by_key(|place| (place.start, place.end));
    places.dedup_by(|next, previous| {
        let joined = next.start < previous.end;
        if joined {
            previous.end = previous.end.max(next.end);
        }
        joined
    });
    places
}

#[cfg(test)]
mod tests;
