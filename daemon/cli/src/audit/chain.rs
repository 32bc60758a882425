#![forbid(unsafe_code)]
//! The audit chain, verified: each record holds the hash of the line before it.
//!
//! A chain is a row of files, see [`super::volumes`]. What a changed one can show is said record by record. A record that was changed shows in the next
//! one's `prev`; the last one, and a cut tail, show by the head file; a chain that root wrote anew as a whole
//! shows by a receipt that a client kept.

use gloveport_contract::catalog::hex;
use gloveport_contract::packet::Receipt;
use gloveport_contract::volume;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

/// Longest line that is read, bytes: a record holds at most the arguments of one packet, escaped.
pub(super) const LINE: u64 = 4 * 1024 * 1024;
/// Missing records that are remembered one by one, so that one that comes later is told apart from one that
/// never comes.
const GAP: u64 = 100_000;

/// What is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// A line that is no record.
    Unreadable {
        /// Its number in the file, from 1.
        line: u64,
    },
    /// The record's bytes are not those that the next record, the head or a receipt was made of.
    Changed {
        /// The record.
        seq: u64,
    },
    /// A full file that begins with another record than its name says.
    Misnamed {
        /// The record.
        seq: u64,
    },
    /// Records that are nowhere.
    Removed {
        /// The first of them.
        seq: u64,
        /// The last of them.
        last: u64,
    },
    /// A record that stands behind a later one.
    Reordered {
        /// The record.
        seq: u64,
    },
    /// A record whose number stands twice.
    Repeated {
        /// The record.
        seq: u64,
    },
    /// The first record does not say that it is the first.
    NotTheBeginning {
        /// The record.
        seq: u64,
    },
    /// The head names records that the file does not have.
    Cut {
        /// The first of them.
        seq: u64,
        /// The last of them.
        last: u64,
    },
    /// There is no head, so that a cut tail would not show.
    NoHead,
    /// The record of a receipt is not in the chain.
    ReceiptUnknown {
        /// The record.
        seq: u64,
    },
    /// The record of a receipt is another one: the chain was written anew.
    ReceiptDiffers {
        /// The record.
        seq: u64,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = |seq: &u64, last: &u64| {
            if seq == last { format!("record {seq} is") } else { format!("records {seq} to {last} are") }
        };
        match self {
            Self::Unreadable { line } => write!(f, "line {line} is no record"),
            Self::Changed { seq } => {
                write!(f, "record {seq} was changed: its hash is not the one that is kept of it")
            }
            Self::Misnamed { seq } => {
                write!(
                    f,
                    "the file begins with record {seq} and not with the one of its name: it was renamed"
                )
            }
            Self::Removed { seq, last } => write!(f, "{} missing", range(seq, last)),
            Self::Reordered { seq } => write!(f, "record {seq} stands behind a later one"),
            Self::Repeated { seq } => write!(f, "record {seq} stands twice"),
            Self::NotTheBeginning { seq: 1 } => f.write_str("record 1 does not begin a chain"),
            Self::NotTheBeginning { seq } => write!(
                f,
                "record {seq} stands first and does not begin the chain: {} missing, from {} on",
                range(&1, &(seq - 1)),
                volume::name(1)
            ),
            Self::Cut { seq, last } => {
                write!(f, "the tail was cut: {} missing, by audit.head", range(seq, last))
            }
            Self::NoHead => f.write_str("there is no audit.head: a cut tail would not show"),
            Self::ReceiptUnknown { seq } => write!(f, "record {seq} of the receipt is not in the chain"),
            Self::ReceiptDiffers { seq } => {
                write!(f, "record {seq} is not the one of the receipt: the chain was written anew")
            }
        }
    }
}

/// A fault, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The full file that it is in, or that is missing; `None`: `audit.jsonl`, or the chain as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What is wrong.
    #[serde(flatten)]
    pub fault: Fault,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}: {}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

/// Where a line says that it stands.
#[derive(Deserialize)]
pub(super) struct Links {
    /// Its number.
    pub seq: u64,
    prev: String,
}

impl Links {
    /// Reads a line; `None`: it is no record.
    pub fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// One file of a chain, to be read.
pub struct Part<R> {
    /// Its name, where it is a full one.
    pub full: Option<String>,
    /// Its lines.
    pub reader: R,
}

/// What a chain looks like.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records that were read.
    pub records: u64,
    /// The last of them, as a receipt.
    pub last: Option<Receipt>,
    /// What is wrong, in the order of the files.
    pub faults: Vec<Finding>,
    /// Whether the last file ends in the middle of a line, as it does while one is being written.
    pub unfinished: bool,
}

/// Verifies a chain, given as its files in their order, against its head and, where a client kept one, a receipt.
///
/// # Errors
/// A file cannot be read.
pub fn verify<R: BufRead>(
    parts: impl IntoIterator<Item = Part<R>>,
    head: Option<&Receipt>,
    receipt: Option<&Receipt>,
) -> io::Result<Report> {
    let mut walk = Walk { head, receipt, ..Walk::default() };
    let mut line = Vec::new();
    for Part { full, mut reader } in parts {
        walk.open(full);
        for number in 1.. {
            line.clear();
            if reader.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let is_whole = line.pop_if(|byte| *byte == b'\n').is_some() || line.len() as u64 == LINE;
            // Nobody writes to a full file any more: an end without its line feed is no record there.
            if !is_whole && walk.file.is_none() {
                walk.report.unfinished = true;
                break;
            }
            walk.line(number, &line);
        }
    }
    Ok(walk.end())
}

#[derive(Default)]
struct Walk<'a> {
    head: Option<&'a Receipt>,
    receipt: Option<&'a Receipt>,
    report: Report,
    /// The full file that is being read.
    file: Option<String>,
    /// No record of this file was read yet.
    at_start: bool,
    /// The line before, where it was a record, and its file.
    before: Option<(Receipt, Option<String>)>,
    highest: u64,
    missing: BTreeSet<u64>,
    /// Missing records with which a file would have begun.
    missing_starts: BTreeSet<u64>,
    head_seen: bool,
    receipt_seen: bool,
}

impl Walk<'_> {
    fn fault(&mut self, fault: Fault) {
        let file = self.file.clone();
        self.report.faults.push(Finding { file, fault });
    }

    fn open(&mut self, file: Option<String>) {
        self.file = file;
        self.at_start = true;
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        let Some(Links { seq, prev }) = Links::read(line) else {
            self.before = None;
            return self.fault(Fault::Unreadable { line: number });
        };
        let record = Receipt { seq, hash: hmac_sha256::Hash::hash(line) };
        self.report.records += 1;
        let at_start = std::mem::take(&mut self.at_start);
        if at_start && self.file.as_deref().and_then(volume::first).is_some_and(|named| named != seq) {
            self.fault(Fault::Misnamed { seq });
        }
        self.place(seq, at_start);
        match self.before.take() {
            Some((before, file)) if before.seq + 1 == seq && prev != hex(&before.hash) => {
                self.report.faults.push(Finding { file, fault: Fault::Changed { seq: before.seq } });
            }
            None if self.report.records == 1 && (seq != 1 || prev != hex(&[0; 32])) => {
                self.fault(Fault::NotTheBeginning { seq });
            }
            _ => {}
        }
        self.compare(record);
        self.before = Some((record, self.file.clone()));
        self.report.last = Some(record);
    }

    /// Whether the number is the next one.
    fn place(&mut self, seq: u64, at_start: bool) {
        if seq <= self.highest {
            let fault =
                if self.missing.remove(&seq) { Fault::Reordered { seq } } else { Fault::Repeated { seq } };
            return self.fault(fault);
        }
        // A chain that begins later says so by itself.
        let first = if self.report.records == 1 { seq } else { self.highest + 1 };
        if seq - first > GAP {
            let file = at_start.then(|| volume::name(first));
            self.report.faults.push(Finding { file, fault: Fault::Removed { seq: first, last: seq - 1 } });
        } else {
            self.missing.extend(first..seq);
            self.missing_starts.extend((at_start && first < seq).then_some(first));
        }
        self.highest = seq;
    }

    fn compare(&mut self, record: Receipt) {
        if let Some(head) = self.head.filter(|head| head.seq == record.seq) {
            self.head_seen = true;
            if head.hash != record.hash {
                self.fault(Fault::Changed { seq: record.seq });
            }
        }
        if let Some(receipt) = self.receipt.filter(|receipt| receipt.seq == record.seq) {
            self.receipt_seen = true;
            if receipt.hash != record.hash {
                self.fault(Fault::ReceiptDiffers { seq: record.seq });
            }
        }
    }

    fn end(mut self) -> Report {
        self.file = None;
        let mut missing = std::mem::take(&mut self.missing).into_iter().peekable();
        while let Some(seq) = missing.next() {
            let mut last = seq;
            while let Some(next) = missing.next_if(|next| *next == last + 1) {
                last = next;
            }
            let file = self.missing_starts.contains(&seq).then(|| volume::name(seq));
            self.report.faults.push(Finding { file, fault: Fault::Removed { seq, last } });
        }
        match self.head {
            Some(head) if !self.head_seen && head.seq > self.highest => {
                self.fault(Fault::Cut { seq: self.highest + 1, last: head.seq });
            }
            None if self.report.records > 0 => self.fault(Fault::NoHead),
            _ => {}
        }
        if let Some(receipt) = self.receipt.filter(|_| !self.receipt_seen) {
            self.fault(Fault::ReceiptUnknown { seq: receipt.seq });
        }
        self.report
    }
}

/// Reads a receipt, its two parts apart by `separator`.
pub fn parse_receipt(text: &str, separator: char) -> Option<Receipt> {
    let (seq, digits) = text.trim().split_once(separator)?;
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Receipt { seq: seq.parse().ok()?, hash })
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
