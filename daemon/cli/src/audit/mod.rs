#![forbid(unsafe_code)]
//! `gloveport audit`: what happened on this host, and whether the record of it is whole.

mod chain;
mod tail;
mod volumes;

use crate::failure::{Failure, Outcome};
use crate::out::count;
use crate::{files, out};
use chain::{Part, Report, parse_receipt, verify};
use clap::Subcommand;
use gloveport_contract::catalog::hex;
use gloveport_contract::packet::Receipt;
use gloveportd::paths::Paths;
use serde_json::json;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// What happened on this host.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// The newest records
    Tail {
        /// How many
        #[arg(short = 'n', value_name = "N", default_value_t = 20)]
        count: usize,
        /// Go on with what is recorded from now on
        #[arg(short, long)]
        follow: bool,
        /// Print the records as they are, one line of JSON each
        #[arg(long)]
        json: bool,
    },
    /// Whether no record was changed, removed or moved
    ///
    /// Ends with 1 and names the record where one was.
    Verify {
        /// A receipt that a client kept (`audit` in a result): finds a chain that was written anew
        #[arg(long, value_name = "SEQ:HASH", value_parser = receipt)]
        receipt: Option<Receipt>,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// The chain cannot be read.
pub fn run(command: &AuditCommand, paths: &Paths) -> Outcome {
    match command {
        AuditCommand::Tail { count, follow, json } => tail::run(&paths.audit, *count, *follow, *json),
        AuditCommand::Verify { receipt, json } => {
            let report = examine(paths, receipt.as_ref())?;
            if *json {
                print_json(&report)
            } else {
                print(&report)
            }
            Ok(u8::from(!report.faults.is_empty()))
        }
    }
}

/// Verifies this host's chain.
///
/// # Errors
/// It, or its head, cannot be read.
pub fn examine(paths: &Paths, receipt: Option<&Receipt>) -> Result<Report, Failure> {
    // The head is read first: it is written after its record, so the record must be in a file by then.
    let head = head(&paths.audit_head)?;
    let unreadable = |error: std::io::Error| files::denied("read", &paths.audit, &error);
    let volumes = volumes::open(&paths.audit).map_err(unreadable)?;
    // A head without its chain is a chain that was cut to nothing.
    if volumes.is_empty() && head.is_none() {
        return Err(unreadable(ErrorKind::NotFound.into()));
    }
    verify(volumes.into_iter().map(Part::from), head.as_ref(), receipt).map_err(unreadable)
}

fn head(path: &Path) -> Result<Option<Receipt>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(files::denied("read", path, &error)),
    };
    parse_receipt(&text, ' ').map(Some).ok_or_else(|| {
        Failure::new(format!("{} is no head of a chain: it should be `SEQ HASH`", path.display()))
            .remedy("it was changed: a receipt that a client kept can show up to where the chain is true")
    })
}

fn receipt(text: &str) -> Result<Receipt, String> {
    parse_receipt(text, ':').ok_or_else(|| "write SEQ:HASH, the hash as 64 hexadecimal digits".to_owned())
}

fn print(report: &Report) {
    for fault in &report.faults {
        out::line(fault);
    }
    let records = count(usize::try_from(report.records).unwrap_or(usize::MAX), "record");
    match (&report.last, report.faults.len()) {
        (Some(last), 0) => out::line(format!("ok: {records}, the last is {}:{}", last.seq, hex(&last.hash))),
        (None, 0) => out::line(format!("ok: {records}")),
        (_, faults) => out::line(format!("not whole: {records}, {}", count(faults, "fault"))),
    }
    if report.unfinished {
        out::note("the last line is not finished: it is being written, or a crash cut it");
    }
}

fn print_json(report: &Report) {
    let faults: Vec<_> = report
        .faults
        .iter()
        .map(|fault| {
            let mut entry = json!(fault);
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("detail".into(), fault.to_string().into());
            }
            entry
        })
        .collect();
    let last = report.last.map(|last| json!({"seq": last.seq, "hash": hex(&last.hash)}));
    out::json(&json!({"ok": faults.is_empty(), "records": report.records, "last": last, "faults": faults,
                      "unfinished": report.unfinished}));
}
