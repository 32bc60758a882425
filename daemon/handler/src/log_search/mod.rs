#![forbid(unsafe_code)]
//! `log_search`: lines that match, out of plain and gzip files under signed roots.
//!
//! Every limit that was met, and every file or part that was not looked at, is named in the answer: an
//! empty result must mean that nothing is there.

mod candidates;
mod lines;
mod search;
mod source;

use crate::answer::{Answer, json_length};
use crate::call::Call;
use crate::failure::{Failure, refuse};
use crate::files::Roots;
use crate::stamp::{self, of_caller};
use candidates::Candidate;
use search::{Found, Wanted};
use serde_json::{Value, json};
use source::Opened;
use std::time::SystemTime;

/// Room for the fields beside the matches, bytes of JSON.
const FRAME: usize = 1024;
/// Share of the output that may go to naming what was not searched.
const NAMED_SHARE: usize = 4;

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let roots = Roots::new(&call.config.roots)?;
    let wanted = wanted(call)?;
    let newest_first = match call.text("order")? {
        None | Some("newest") => true,
        Some("oldest") => false,
        Some(other) => return refuse(format!("order: `{other}` is neither newest nor oldest")),
    };
    let mut report = Report::new(call);
    let mut files = candidates::find(&roots, &call.texts("paths")?, &mut report)?;
    files.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
    if newest_first {
        files.reverse();
    }
    report.files = files.len();

    let mut budget = call.config.max_scan();
    let most_files = usize::try_from(call.config.max_files()).unwrap_or(usize::MAX);
    for (index, file) in files.iter().enumerate() {
        if wanted.since.is_some_and(|since| file.modified < since) {
            report.older += 1;
            continue;
        }
        let left = wanted.max_matches.saturating_sub(report.matches.len());
        let limit = match () {
            () if report.full => Some("max_output"),
            () if left == 0 => Some("max_matches"),
            () if budget == 0 => Some("max_scan"),
            () if report.searched >= most_files => Some("max_files"),
            () => None,
        };
        if let Some(limit) = limit {
            report.limit(limit);
            report.not_reached = files.len() - index;
            break;
        }
        one(file, &wanted, left, newest_first, &mut budget, &mut report)?;
    }
    report.scanned = call.config.max_scan() - budget;
    Ok(report.answer())
}

/// Searches one file, and adds what was found.
fn one(
    file: &Candidate<'_>,
    wanted: &Wanted,
    left: usize,
    newest_first: bool,
    budget: &mut u64,
    report: &mut Report,
) -> Result<(), Failure> {
    // Of a plain file that is larger than what may still be read, the newest part is its end.
    let Opened { mut source, skipped } = match source::open(file, *budget, newest_first) {
        Ok(opened) => opened,
        Err(failure) => {
            report.not_searched(&file.path, failure.message());
            return Ok(());
        }
    };
    report.searched += 1;
    let keep = if newest_first { search::Keep::Last(left) } else { search::Keep::First(left) };
    let outcome = search::search(&mut source, wanted, keep, file.modified, skipped == 0)?;
    *budget = budget.saturating_sub(source.read_bytes());
    report.undated += outcome.undated;
    report.long_lines += source.folds().len();
    if outcome.more {
        report.limit("max_matches");
    }
    if skipped > 0 {
        report.limit("max_scan");
        report.not_searched(&file.path, &format!("its first {skipped} bytes: max_scan"));
    }
    if let Some(reason) = source.unread() {
        if source.is_spent() {
            report.limit("max_scan");
        }
        report.not_searched(&file.path, &reason);
    }
    let mut found = outcome.found;
    if newest_first {
        found.reverse();
    }
    for one in found {
        report.add(&file.path, one);
    }
    Ok(())
}

fn wanted(call: &Call) -> Result<Wanted, Failure> {
    let now = stamp::millis(SystemTime::now());
    let time = |name: &str| {
        match call.text(name)? {
        None => Ok(None),
        Some(text) => of_caller(text, now).map(Some).ok_or_else(|| {
            Failure::refused(format!(
                "{name}: `{text}` is no time; give 2026-01-02T03:04:05Z, 2026-01-02 03:04, or a span before now such as 15m, 2h, 3d"
            ))
        }),
    }
    };
    let most = call.config.max_matches();
    let context = call.number("context")?.unwrap_or(0);
    if context > call.config.max_context() {
        return refuse(format!(
            "context: {context} lines; this action gives at most {}",
            call.config.max_context()
        ));
    }
    Ok(Wanted {
        matcher: search::matcher(call.text("pattern")?.unwrap_or_default())?,
        context: usize::try_from(context).unwrap_or(usize::MAX),
        since: time("since")?,
        until: time("until")?,
        max_matches: usize::try_from(call.number("max_matches")?.unwrap_or(most).min(most))
            .unwrap_or(usize::MAX),
    })
}

/// What the answer will say.
pub struct Report {
    matches: Vec<Value>,
    files: usize,
    searched: usize,
    older: usize,
    not_reached: usize,
    scanned: u64,
    undated: u64,
    long_lines: usize,
    limits: Vec<&'static str>,
    unsearched: Vec<Value>,
    unsearched_more: usize,
    full: bool,
    room: usize,
    naming_room: usize,
}

impl Report {
    fn new(call: &Call) -> Self {
        let room = call.max_output.saturating_sub(FRAME);
        let naming_room = room / NAMED_SHARE;
        Self {
            matches: Vec::new(),
            files: 0,
            searched: 0,
            older: 0,
            not_reached: 0,
            scanned: 0,
            undated: 0,
            long_lines: 0,
            limits: Vec::new(),
            unsearched: Vec::new(),
            unsearched_more: 0,
            full: false,
            room: room - naming_room,
            naming_room,
        }
    }

    fn add(&mut self, path: &str, found: Found) {
        if self.full {
            return;
        }
        let value = json!({
            "file": path, "line": found.line, "time": found.time.map(stamp::rfc3339), "text": found.text,
            "before": found.before, "after": found.after,
        });
        let cost = json_length(&value) + 1;
        match self.room.checked_sub(cost) {
            Some(room) => {
                self.room = room;
                self.matches.push(value);
            }
            None => {
                self.full = true;
                self.limit("max_output");
            }
        }
    }

    /// Notes a limit that was met.
    pub fn limit(&mut self, name: &'static str) {
        if !self.limits.contains(&name) {
            self.limits.push(name);
        }
    }

    /// Notes a file, a part of one or a directory that was not searched.
    pub fn not_searched(&mut self, path: &str, reason: &str) {
        let value = json!({ "file": path, "reason": reason });
        match self.naming_room.checked_sub(json_length(&value) + 1) {
            Some(room) => {
                self.naming_room = room;
                self.unsearched.push(value);
            }
            None => self.unsearched_more += 1,
        }
    }

    fn answer(self) -> Answer {
        let complete = self.limits.is_empty()
            && self.unsearched.is_empty()
            && self.unsearched_more == 0
            && self.not_reached == 0;
        Answer::new(json!({
            "complete": complete,
            "count": self.matches.len(),
            "files": {
                "found": self.files, "searched": self.searched, "older_than_since": self.older,
                "not_reached": self.not_reached,
            },
            "scanned_bytes": self.scanned,
            "limits_reached": self.limits,
            "not_searched": self.unsearched,
            "not_searched_more": self.unsearched_more,
            "lines_without_time": self.undated,
            "long_lines_split": self.long_lines,
            "zone_assumed": "UTC",
            "matches": self.matches,
        }))
    }
}
