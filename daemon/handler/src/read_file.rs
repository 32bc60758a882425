#![forbid(unsafe_code)]
//! `read_file`: a part of a regular file, by lines or by bytes.

use crate::answer::{Answer, Fitted, fit, json_length};
use crate::call::Call;
use crate::failure::{Failure, refuse};
use crate::files::{self, Roots};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

/// Most bytes that are passed over to reach a line.
const SKIP: u64 = 1 << 30;

/// What of the file was asked for.
enum Range {
    Lines { start: u64, count: Option<u64> },
    Bytes { offset: u64, count: Option<u64> },
}

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let path = call.required("path")?;
    let range = range(call)?;
    let roots = Roots::new(&call.config.read)?;
    let (mut file, stat) = files::regular(roots.covering(path)?, path)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let mut answer = json!({ "path": path, "size": size, "version": files::version(&stat) });

    let failed = |error| Failure::system(path, error);
    let start = match range {
        Range::Lines { start, .. } => line_start(&mut file, start).map_err(failed)?,
        Range::Bytes { offset, .. } => Some(offset),
    };
    let Some(start) = start else {
        return refuse(format!(
            "{path}: that line begins more than {SKIP} bytes into the file: ask by offset and bytes"
        ));
    };
    file.seek(SeekFrom::Start(start)).map_err(failed)?;

    // The frame: what every answer has beside the content.
    let room = call.budget().saturating_sub(json_length(&answer) + 400);
    let part = read(&mut file, &range, room).map_err(failed)?;
    // A file of /proc has no size, and yet content.
    let end = start + part.content.length as u64;
    let remaining = if part.at_end { 0 } else { size.saturating_sub(end) };
    let fields = [
        ("encoding", Value::from(part.content.encoding)),
        ("offset", start.into()),
        ("next_offset", end.into()),
        ("remaining_bytes", remaining.into()),
        ("truncated", part.truncated.into()),
    ];
    if let Some(object) = answer.as_object_mut() {
        object.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        if let Range::Lines { start, .. } = range {
            object.insert("start_line".into(), start.into());
            object.insert("lines".into(), part.lines.into());
        }
        if part.truncated {
            object.insert("note".into(), note(&range, &part, end, remaining).into());
        }
        object.insert("content".into(), part.content.text.into());
    }
    Ok(Answer::new(answer))
}

fn range(call: &Call) -> Result<Range, Failure> {
    let (start, lines) = (call.number("start_line")?, call.number("lines")?);
    let (offset, bytes) = (call.number("offset")?, call.number("bytes")?);
    match (start.or(lines), offset.or(bytes)) {
        (Some(_), Some(_)) => refuse("give start_line and lines, or offset and bytes, not both"),
        (_, Some(_)) => Ok(Range::Bytes { offset: offset.unwrap_or(0), count: bytes }),
        _ if start == Some(0) => refuse("start_line: lines are counted from 1"),
        _ => Ok(Range::Lines { start: start.unwrap_or(1), count: lines }),
    }
}

/// Where a line begins; the end of the file where it has fewer lines; nothing where it is too far in.
fn line_start(file: &mut File, line: u64) -> std::io::Result<Option<u64>> {
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(SKIP));
    let mut at = 0;
    for _ in 1..line {
        let skipped = reader.skip_until(b'\n')? as u64;
        at += skipped;
        if skipped == 0 || at >= SKIP {
            break;
        }
    }
    Ok((at < SKIP).then_some(at))
}

/// What was read of a range.
struct Part {
    content: Fitted,
    /// Lines in it, an unfinished last one counted.
    lines: u64,
    /// It ends where the file ended.
    at_end: bool,
    /// It is less than what was asked for.
    truncated: bool,
}

fn read(file: &mut File, range: &Range, room: usize) -> std::io::Result<Part> {
    let wanted = match range {
        Range::Lines { .. } => u64::MAX,
        Range::Bytes { count, .. } => count.unwrap_or(u64::MAX),
    };
    let mut bytes = Vec::new();
    // One more than fits shows whether something follows.
    let window = wanted.min(room as u64);
    file.take(window + 1).read_to_end(&mut bytes)?;
    let at_end = bytes.len() as u64 <= window;
    bytes.truncate(usize::try_from(window).unwrap_or(usize::MAX));

    let mut whole = bytes.as_slice();
    if let Range::Lines { count: Some(count), .. } = range {
        whole = first_lines(whole, *count);
    }
    let mut asked_for_less = whole.len() < bytes.len();
    let mut content = fit(whole, room, at_end || asked_for_less);
    asked_for_less &= content.length == whole.len();
    let at_end = at_end && content.length == bytes.len();
    let truncated = !at_end && !asked_for_less && (content.length as u64) < wanted;
    if truncated && matches!(range, Range::Lines { .. }) && content.encoding == "utf-8" {
        end_at_line(&mut content);
    }
    let given = whole.get(..content.length).unwrap_or_default();
    let lines = given.split_inclusive(|byte| *byte == b'\n').count() as u64;
    Ok(Part { content, lines, at_end, truncated })
}

/// The first `count` lines, with their ends.
fn first_lines(bytes: &[u8], count: u64) -> &[u8] {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let length = bytes.split_inclusive(|byte| *byte == b'\n').take(count).map(<[u8]>::len).sum();
    bytes.get(..length).unwrap_or(bytes)
}

/// Cuts after the last whole line, if there is one, so that the rest can be asked for by lines.
fn end_at_line(content: &mut Fitted) {
    if let Some(end) = content.text.rfind('\n') {
        content.text.truncate(end + 1);
        content.length = end + 1;
    }
}

/// What was left out and how to ask for it.
fn note(range: &Range, part: &Part, end: u64, remaining: u64) -> String {
    match range {
        Range::Lines { start, .. } if part.content.text.ends_with('\n') => {
            format!("{remaining} bytes follow: ask again with start_line {}", start + part.lines)
        }
        _ => format!("{remaining} bytes follow: ask again with offset {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_they_end() {
        assert_eq!(first_lines(b"a\nb\nc", 2), b"a\nb\n");
        assert_eq!(first_lines(b"a\nb\nc", 9), b"a\nb\nc");
        assert_eq!(first_lines(b"a\n", 0), b"");
        let mut content = fit("eins\nzw".as_bytes(), 100, false);
        end_at_line(&mut content);
        assert_eq!((content.text.as_str(), content.length), ("eins\n", 5));
    }
}
