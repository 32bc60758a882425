#![forbid(unsafe_code)]
//! Base64 as RFC 4648 has it: one text for one value.

/// Decodes padded standard base64. `None` for anything that an encoder would not have written: another
/// character, missing padding, bits left over.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let body = match text {
        [body @ .., b'=', b'='] | [body @ .., b'='] => body,
        body => body,
    };
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in body.chunks(4) {
        let mut bits = 0_u32;
        for character in group {
            bits = bits << 6 | value(*character)?;
        }
        let missing = 4_usize.checked_sub(group.len())?;
        bits <<= 6 * missing;
        let [_, decoded @ ..] = bits.to_be_bytes();
        let (whole, left_over) = decoded.split_at_checked(3_usize.checked_sub(missing)?)?;
        if left_over.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(whole);
    }
    Some(bytes)
}

fn value(character: u8) -> Option<u32> {
    let (first, base) = match character {
        b'A'..=b'Z' => (b'A', 0),
        b'a'..=b'z' => (b'a', 26),
        b'0'..=b'9' => (b'0', 52),
        b'+' => return Some(62),
        b'/' => return Some(63),
        _ => return None,
    };
    Some(u32::from(character - first) + base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_decode() {
        for (text, bytes) in
            [("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba")]
        {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(decode(b"+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
    }

    #[test]
    fn what_no_encoder_writes_is_refused() {
        for text in [
            "", "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zm9v=", "====", "Z===", "Zg==Zg==", "Zm 9", "Zm\n9",
            "-_-_",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text:?}");
        }
    }
}
