#![forbid(unsafe_code)]
//! `gloveport audit tail`: the newest records, for a reader or for a program.

use super::volumes;
use crate::failure::{Failure, Outcome};
use crate::{files, out};
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The file is read backwards in pieces of this size to find where the wanted lines begin.
const PIECE: u64 = 64 * 1024;
/// Pause between two looks at a file that is followed.
const PAUSE: Duration = Duration::from_millis(200);
/// Keys that stand in front of a line, or say nothing to a reader.
const LEADING: [&str; 4] = ["seq", "prev", "time", "kind"];
/// Longest value that is shown to a reader, characters.
const SHOWN: usize = 200;

/// Prints the last `count` records and, where asked, those that follow.
///
/// # Errors
/// A file cannot be read.
pub fn run(path: &Path, count: usize, follow: bool, json: bool) -> Outcome {
    let unreadable = |error: io::Error| files::denied("read", path, &error);
    let mut volumes = volumes::open(path).map_err(unreadable)?;
    let last = volumes.pop().ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))?;
    let mut reader = BufReader::new(last.file);
    let mut unfinished = Vec::new();
    let mut newest = last_lines(&mut reader, count, &mut unfinished).map_err(unreadable)?;
    while newest.len() < count
        && let Some(before) = volumes.pop()
    {
        let mut reader = BufReader::new(before.file);
        let older = last_lines(&mut reader, count - newest.len(), &mut Vec::new()).map_err(unreadable)?;
        older.into_iter().rev().for_each(|line| newest.push_front(line));
    }
    newest.iter().for_each(|line| show(line, json));
    if !follow {
        return Ok(0);
    }
    loop {
        std::thread::sleep(PAUSE);
        // Looked at before the lines are read: what is replaced after that, is so in the next round.
        let replaced = was_replaced(path, reader.get_ref());
        while let Some(line) = next_line(&mut reader, &mut unfinished).map_err(unreadable)? {
            show(&line, json);
        }
        if !replaced {
            continue;
        }
        let Some(later) = volumes::after(path, reader.get_ref()).map_err(unreadable)? else {
            return Err(Failure::new(format!("{} was replaced by another file", path.display())).remedy(
                "whatever did that, did it to a chain that must only grow: `gloveport audit verify`",
            ));
        };
        for volume in later {
            reader = BufReader::new(volume.file);
            unfinished.clear();
            while let Some(line) = next_line(&mut reader, &mut unfinished).map_err(unreadable)? {
                show(&line, json);
            }
        }
    }
}

/// The last lines of a file, at most `count`; the part of one that is being written waits in `unfinished`.
fn last_lines(
    reader: &mut BufReader<File>,
    count: usize,
    unfinished: &mut Vec<u8>,
) -> io::Result<VecDeque<String>> {
    let start = start_of_last(reader.get_mut(), count)?;
    reader.seek(SeekFrom::Start(start))?;
    // The file may have grown meanwhile: the last ones count.
    let mut newest = VecDeque::new();
    while let Some(line) = next_line(reader, unfinished)? {
        if newest.len() == count {
            newest.pop_front();
        }
        newest.push_back(line);
    }
    Ok(newest)
}

/// The offset at which the last `count` lines begin.
fn start_of_last(file: &mut File, count: usize) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    // The line feed that ends the last line begins no other.
    let mut wanted = count.saturating_add(1);
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        piece.clear();
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut piece)?;
        for (at, _) in piece.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            wanted -= 1;
            if wanted == 0 {
                return Ok(start + at as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}

/// The next whole line; the part of one that is being written waits in `unfinished`.
fn next_line(reader: &mut impl BufRead, unfinished: &mut Vec<u8>) -> io::Result<Option<String>> {
    reader.read_until(b'\n', unfinished)?;
    if unfinished.pop_if(|byte| *byte == b'\n').is_none() {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&std::mem::take(unfinished)).into_owned()))
}

fn was_replaced(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) != (open.dev(), open.ino()),
        _ => true,
    }
}

fn show(line: &str, json: bool) {
    if json { out::line(line) } else { out::line(for_reader(line)) }
}

/// A record as `TIME SEQ KIND key=value …`.
fn for_reader(line: &str) -> String {
    let Ok(Value::Object(record)) = serde_json::from_str::<Value>(line) else {
        return format!("(no record) {}", out::printable(line));
    };
    let text = |key: &str| match record.get(key) {
        Some(Value::String(text)) => out::printable(text),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    let mut shown = format!("{} {:>6} {:<9}", text("time"), text("seq"), text("kind"));
    for (key, value) in
        record.iter().filter(|(key, value)| !LEADING.contains(&key.as_str()) && !value.is_null())
    {
        let value = match value {
            Value::String(text) => out::printable(text),
            other => out::printable(&other.to_string()),
        };
        let short: String = value.chars().take(SHOWN).collect();
        let cut = if short.len() < value.len() { "…" } else { "" };
        shown.push_str(&format!(" {}={short}{cut}", out::printable(key)));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_for_a_reader() {
        let line = r#"{"seq":7,"prev":"00","time":"2026-01-02T03:04:05.678Z","kind":"ended","action":"a\u001b[1m","exit":0,"x":null}"#;
        assert_eq!(for_reader(line), "2026-01-02T03:04:05.678Z      7 ended     action=a\\u{1b}[1m exit=0");
        assert_eq!(for_reader("no json"), "(no record) no json");
    }

    #[test]
    fn the_last_lines_are_found_across_pieces() {
        let path = std::env::temp_dir().join(format!("gloveport-tail-{}", std::process::id()));
        let long = "x".repeat(50_000);
        fs::write(&path, format!("a\n{long}\n{long}\nb\n")).unwrap();
        let mut file = File::open(&path).unwrap();
        assert_eq!(start_of_last(&mut file, 1).unwrap(), 2 + 2 * 50_001);
        assert_eq!(start_of_last(&mut file, 3).unwrap(), 2);
        assert_eq!(start_of_last(&mut file, 4).unwrap(), 0);
        assert_eq!(start_of_last(&mut file, 400).unwrap(), 0);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_line_that_is_being_written_waits_for_its_end() {
        let mut unfinished = Vec::new();
        assert_eq!(next_line(&mut &b"{\"a\""[..], &mut unfinished).unwrap(), None);
        assert_eq!(next_line(&mut &b":1}\nrest"[..], &mut unfinished).unwrap().as_deref(), Some("{\"a\":1}"));
        assert_eq!(unfinished, b"");
    }
}
