#![forbid(unsafe_code)]
//! Output as it will stand in a reply, within a budget.

use crate::run::report::StepReport;

/// Largest output of one reply as JSON encodes it, bytes. `max_output` (at most 16 MiB) bounds it already,
/// but a control character takes six bytes in JSON, and the text beside the structured content holds all of
/// it again. Ordinary text of the greatest `max_output` still fits.
pub const ENCODED_OUTPUT: usize = 18 * 1024 * 1024;

/// Cuts output until all of it, encoded, fits the budget; what is cut is marked as such.
pub fn within(steps: &mut [StepReport], mut budget: usize) {
    for step in steps {
        for (text, truncated) in
            [(&mut step.stdout, &mut step.stdout_truncated), (&mut step.stderr, &mut step.stderr_truncated)]
        {
            let mut encoded = 0;
            let end = text.char_indices().find_map(|(at, c)| {
                encoded += encoded_length(c);
                (encoded > budget).then_some(at)
            });
            if let Some(end) = end {
                text.truncate(end);
                *truncated = true;
                budget = 0;
            } else {
                budget -= encoded;
            }
        }
    }
}

/// Bytes of a character in JSON, as serde_json writes it.
fn encoded_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::fixtures::report;
    use serde_json::json;

    #[test]
    fn encoded_output_stays_within_its_budget() {
        let mut steps = report(&"\u{1}".repeat(100)).steps;
        steps[0].stderr = "日".repeat(100);
        within(&mut steps, 600);
        assert_eq!((steps[0].stdout.len(), steps[0].stdout_truncated), (100, false));
        assert_eq!((steps[0].stderr.len(), steps[0].stderr_truncated), (0, true));
        let mut steps = report(&"日".repeat(100)).steps;
        within(&mut steps, 100);
        assert_eq!(steps[0].stdout, "日".repeat(33));
    }

    #[test]
    fn the_encoded_length_is_what_serde_json_writes() {
        for c in ('\0'..='\u{2030}').chain(['\u{1f600}', '\u{ffff}']) {
            assert_eq!(encoded_length(c) + 2, json!(c.to_string()).to_string().len(), "{c:?}");
        }
    }
}
