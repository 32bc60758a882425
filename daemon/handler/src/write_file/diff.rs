#![forbid(unsafe_code)]
//! What a write would change.

use similar::TextDiff;
use std::time::Duration;

/// How long a minimal difference is looked for; a coarser one is taken after that.
const PATIENCE: Duration = Duration::from_secs(2);

/// A unified diff, or a sentence where one of the two is not text.
pub fn unified(path: &str, old: &[u8], new: &[u8]) -> String {
    let (Ok(before), Ok(after)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        return format!("binary content: {} bytes before, {} after\n", old.len(), new.len());
    };
    TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(path, path)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown_with_their_surroundings() {
        let diff = unified("/f", b"a\nb\nc\n", b"a\nB\nc\n");
        assert_eq!(diff, "--- /f\n+++ /f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(unified("/f", b"same\n", b"same\n"), "");
        assert!(unified("/f", b"\xff", b"a").starts_with("binary content: 1 bytes before, 1"));
    }
}
