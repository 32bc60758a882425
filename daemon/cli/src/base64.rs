#![forbid(unsafe_code)]
//! Encoding bytes as base64 (RFC 4648); this command never decodes any.

/// The usual alphabet; padded.
pub const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The alphabet of URLs and file names; not padded.
pub const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The text of those bytes in that alphabet.
pub fn encode(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for place in 0..=group.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.push(alphabet.get(index as usize).copied().unwrap_or(b'=').into());
        }
        if alphabet == STANDARD {
            text.extend(std::iter::repeat_n('=', 3 - group.len()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_hold() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes(), STANDARD), encoded);
        }
        assert_eq!(encode(&[0xfb, 0xff], URL), "-_8");
    }

    #[test]
    fn thirty_two_bytes_are_forty_three_characters_of_a_url() {
        assert_eq!(encode(&[7; 32], URL).len(), 43);
    }
}
