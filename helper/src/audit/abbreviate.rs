#![forbid(unsafe_code)]
//! Makes texts and arguments fit a record, without hiding that something was left out.

use gloveport_contract::catalog::hex;

/// Bytes of one argument that are kept; a longer one is replaced by its length and digest.
const ARGUMENT: usize = 4096;
/// Bytes of all arguments that are kept. JSON may make six of one.
const ARGUMENTS: usize = 16 * 1024;

/// An argument as text. Bytes that are no UTF-8 are written `\xHH`, so that none is lost.
pub fn text(argument: &[u8]) -> String {
    match std::str::from_utf8(argument) {
        Ok(text) => text.to_owned(),
        Err(_) => argument.escape_ascii().to_string(),
    }
}

/// Cuts a text after so many bytes.
pub fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        while text.len() > most {
            text.pop();
        }
        text.push('…');
    }
}

/// Replaces arguments that are too long, and those that are too many, by their size and digest.
pub fn abbreviate(argv: &mut [Vec<String>]) {
    let mut left = ARGUMENTS;
    for step in argv {
        let mut kept = 0;
        for argument in &mut *step {
            if argument.len() > ARGUMENT {
                let digest = hex(&hmac_sha256::Hash::hash(argument.as_bytes()));
                *argument = format!("…({} bytes, sha256 {digest})", argument.len());
            }
            // An empty one costs its quotes and comma.
            let Some(rest) = left.checked_sub(argument.len() + 3) else { break };
            left = rest;
            kept += 1;
        }
        if kept < step.len() {
            let omitted = step.split_off(kept);
            let mut hash = hmac_sha256::Hash::new();
            for argument in &omitted {
                hash.update(argument.as_bytes());
                hash.update([0]);
            }
            step.push(format!("…({} arguments, sha256 {})", omitted.len(), hex(&hash.finalize())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_escaped_and_not_lost() {
        assert_eq!(text("größe".as_bytes()), "größe");
        assert_eq!(text(b"a\xff\n"), r"a\xff\n");
    }

    #[test]
    fn a_cut_text_shows_that_it_was_cut() {
        let mut text = "größe".to_owned();
        shorten(&mut text, 3);
        assert_eq!(text, "gr…");
    }
}
