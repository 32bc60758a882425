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
    report(&text, head, receipt).faults.into_iter().map(|finding| finding.fault).collect()
}

/// Verifies a chain in one file.
fn report(text: &str, head: Option<&Receipt>, receipt: Option<&Receipt>) -> Report {
    verify([Part { full: None, reader: text.as_bytes() }], head, receipt).unwrap()
}

/// Verifies a chain of two full files and the one that is written, each as its name and its lines.
fn findings(files: &[(Option<u64>, &[String])], head: &Receipt) -> Vec<(Option<String>, Fault)> {
    let texts: Vec<String> =
        files.iter().map(|(_, lines)| lines.iter().map(|line| format!("{line}\n")).collect()).collect();
    let parts = files
        .iter()
        .zip(&texts)
        .map(|((first, _), text)| Part { full: first.map(volume::name), reader: text.as_bytes() });
    let report = verify(parts, Some(head), None).unwrap();
    report.faults.into_iter().map(|Finding { file, fault }| (file, fault)).collect()
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
    let unfinished = report(&text, Some(&receipts[1]), None);
    assert!(unfinished.unfinished);
    assert_eq!((unfinished.records, unfinished.last, unfinished.faults), (2, Some(receipts[1]), vec![]));
    let text = format!("{}\nrubbish\n{}\n", lines[0], lines[1]);
    let found = report(&text, Some(&receipts[1]), None).faults;
    assert_eq!(found, [Finding { file: None, fault: Fault::Unreadable { line: 2 } }]);
}

#[test]
fn a_chain_in_several_files_is_one_chain() {
    let (lines, receipts) = chain(6);
    let files = [(Some(1), &lines[..2]), (Some(3), &lines[2..4]), (None, &lines[4..])];
    assert_eq!(findings(&files, &receipts[5]), []);
    // Just after a file was full there is nothing in the next one.
    assert_eq!(findings(&[(Some(1), &lines[..]), (None, &[])], &receipts[5]), []);
}

#[test]
fn a_full_file_that_is_gone_is_named() {
    let (lines, receipts) = chain(6);
    let gone = |first, last| vec![(Some(volume::name(first)), Fault::Removed { seq: first, last })];
    let files = [(Some(1), &lines[..2]), (None, &lines[4..])];
    assert_eq!(findings(&files, &receipts[5]), gone(3, 4));
    let files = [(Some(3), &lines[2..4]), (None, &lines[4..])];
    let name = volume::name(3);
    let found = findings(&files, &receipts[5]);
    assert_eq!(found, [(Some(name), Fault::NotTheBeginning { seq: 3 })]);
    assert!(found[0].1.to_string().contains("records 1 to 2 are missing, from audit-000000000001.jsonl on"));
}

#[test]
fn a_record_that_was_changed_in_a_full_file_is_named_with_it() {
    let (mut lines, receipts) = chain(6);
    // The last of its file, which only the next file tells.
    lines[1] = lines[1].replace("\"exit\":2", "\"exit\":0");
    let files = [(Some(1), &lines[..2]), (Some(3), &lines[2..4]), (None, &lines[4..])];
    assert_eq!(findings(&files, &receipts[5]), [(Some(volume::name(1)), Fault::Changed { seq: 2 })]);
    let (mut lines, _) = chain(6);
    lines[3].truncate(20);
    let files = [(Some(1), &lines[..2]), (Some(3), &lines[2..4]), (None, &lines[4..])];
    let found = findings(&files, &receipts[5]);
    assert_eq!(found[0], (Some(volume::name(3)), Fault::Unreadable { line: 2 }));
}

#[test]
fn a_full_file_under_another_name_is_named() {
    let (lines, receipts) = chain(6);
    let files = [(Some(3), &lines[..2]), (Some(1), &lines[2..4]), (None, &lines[4..])];
    let misnamed = |name, seq| (Some(volume::name(name)), Fault::Misnamed { seq });
    assert_eq!(findings(&files, &receipts[5]), [misnamed(3, 1), misnamed(1, 3)]);
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
