//! A chain of five records, and what can be done to it.

use super::*;

/// A chain of `count` records as lines, and the receipt of each.
fn chain(count: u64) -> (Vec<String>, Vec<Receipt>) {
    let (mut lines, mut receipts) = (Vec::new(), Vec::<Receipt>::new());
    for seq in 1..=count {
        let prev = hex(&receipts.last().map_or([0; 32], |last| last.hash));
        let line = format!(r#"{{"seq":{seq},"prev":"{prev}","kind":"ended","exit":{seq}}}"#);
        receipts.push(Receipt { seq, hash: hmac_sha256::Hash::hash(line.as_bytes()) });
        lines.push(line);
    }
    (lines, receipts)
}

fn faults(lines: &[String], head: Option<&Receipt>, receipt: Option<&Receipt>) -> Vec<Fault> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    verify(&mut text.as_bytes(), head, receipt).unwrap().faults
}

#[test]
fn a_chain_that_nobody_touched_is_whole() {
    let (lines, receipts) = chain(5);
    assert_eq!(faults(&lines, Some(&receipts[4]), Some(&receipts[2])), []);
    assert_eq!(faults(&[], None, None), []);
    // The head may be behind: it is written after the record.
    assert_eq!(faults(&lines, Some(&receipts[3]), None), []);
}

#[test]
fn a_changed_record_is_named() {
    let (mut lines, receipts) = chain(5);
    lines[2] = lines[2].replace("\"exit\":3", "\"exit\":0");
    assert_eq!(faults(&lines, Some(&receipts[4]), None), [Fault::Changed { seq: 3 }]);
    let (mut lines, receipts) = chain(5);
    lines[4] = lines[4].replace("\"exit\":5", "\"exit\":0");
    assert_eq!(faults(&lines, Some(&receipts[4]), None), [Fault::Changed { seq: 5 }]);
}

#[test]
fn removed_records_are_named() {
    let (mut lines, receipts) = chain(5);
    lines.drain(1..3);
    assert_eq!(faults(&lines, Some(&receipts[4]), None), [Fault::Removed { seq: 2, last: 3 }]);
    let (mut lines, receipts) = chain(5);
    lines.remove(0);
    assert_eq!(faults(&lines, Some(&receipts[4]), None), [Fault::NotTheBeginning { seq: 2 }]);
}

#[test]
fn a_reordered_record_is_named_and_is_not_missing() {
    let (mut lines, receipts) = chain(5);
    lines.swap(1, 2);
    assert_eq!(faults(&lines, Some(&receipts[4]), None), [Fault::Reordered { seq: 2 }]);
}

#[test]
fn a_repeated_record_is_named() {
    let (mut lines, receipts) = chain(3);
    lines.insert(2, lines[1].clone());
    assert_eq!(faults(&lines, Some(&receipts[2]), None), [Fault::Repeated { seq: 2 }]);
}

#[test]
fn a_cut_tail_shows_by_the_head() {
    let (mut lines, receipts) = chain(5);
    lines.truncate(3);
    assert_eq!(faults(&lines, Some(&receipts[4]), None), [Fault::Cut { seq: 4, last: 5 }]);
    assert_eq!(faults(&[], Some(&receipts[4]), None), [Fault::Cut { seq: 1, last: 5 }]);
    assert_eq!(faults(&lines, None, None), [Fault::NoHead]);
}

#[test]
fn a_chain_written_anew_shows_by_a_receipt() {
    let (_, receipts) = chain(5);
    let (mut anew, mut last) = (Vec::new(), [0; 32]);
    for seq in 1..=5 {
        let line = format!(r#"{{"seq":{seq},"prev":"{}","kind":"ended","exit":0}}"#, hex(&last));
        last = hmac_sha256::Hash::hash(line.as_bytes());
        anew.push(line);
    }
    let head = Receipt { seq: 5, hash: last };
    assert_eq!(faults(&anew, Some(&head), None), []);
    assert_eq!(faults(&anew, Some(&head), Some(&receipts[2])), [Fault::ReceiptDiffers { seq: 3 }]);
    let unknown = Receipt { seq: 9, ..receipts[2] };
    assert_eq!(faults(&anew, Some(&head), Some(&unknown)), [Fault::ReceiptUnknown { seq: 9 }]);
}

#[test]
fn a_line_that_is_being_written_is_no_fault_and_rubbish_is() {
    let (lines, receipts) = chain(2);
    let text = format!("{}\n{}\n{{\"seq\":3,\"pr", lines[0], lines[1]);
    let report = verify(&mut text.as_bytes(), Some(&receipts[1]), None).unwrap();
    assert!(report.unfinished);
    assert_eq!((report.records, report.last, report.faults), (2, Some(receipts[1]), vec![]));
    let text = format!("{}\nrubbish\n{}\n", lines[0], lines[1]);
    let report = verify(&mut text.as_bytes(), Some(&receipts[1]), None).unwrap();
    assert_eq!(report.faults, [Fault::Unreadable { line: 2 }]);
}

#[test]
fn receipts_are_written_with_a_colon_and_the_head_with_a_space() {
    let digits = "ab".repeat(32);
    let receipt = Receipt { seq: 7, hash: [0xab; 32] };
    assert_eq!(parse_receipt(&format!("7:{digits}"), ':'), Some(receipt));
    assert_eq!(parse_receipt(&format!("7 {digits}\n"), ' '), Some(receipt));
    for wrong in ["", "7", "7:", "x:ab", "7:+b", &format!("7:{digits}0")] {
        assert_eq!(parse_receipt(wrong, ':'), None, "{wrong}");
    }
}
