#![forbid(unsafe_code)]
//! What the first bytes of an executable say: is it a `#!` file, and which loader does it name?
//!
//! Executing a dynamic program needs the EXECUTE right on its loader too, so the ruleset must know it.

/// What a file is, as the kernel would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// An ELF program, with the loader that it names (PT_INTERP); a static one names none.
    Elf(Option<String>),
    /// A text that names an interpreter.
    Script,
    /// Neither: execve(2) would say ENOEXEC.
    Unknown,
}

/// So many bytes of a file are enough: the headers and the loader's name stand near the beginning.
pub const HEAD: usize = 4096;

/// Judges the first [`HEAD`] bytes of a file.
pub fn image(head: &[u8]) -> Image {
    if head.starts_with(b"#!") {
        return Image::Script;
    }
    // 64-bit, little-endian, current version: what this helper itself is.
    if !head.starts_with(b"\x7fELF\x02\x01\x01") {
        return Image::Unknown;
    }
    Image::Elf(loader(head))
}

/// The path of PT_INTERP.
fn loader(head: &[u8]) -> Option<String> {
    const PT_INTERP: u64 = 3;
    let start = usize::try_from(number(head, 0x20, 8)?).ok()?;
    let size = usize::try_from(number(head, 0x36, 2)?).ok()?;
    let count = usize::try_from(number(head, 0x38, 2)?).ok()?;
    (0..count).find_map(|index| {
        let header = start.checked_add(size.checked_mul(index)?)?;
        if number(head, header, 4)? != PT_INTERP {
            return None;
        }
        let at = usize::try_from(number(head, header.checked_add(8)?, 8)?).ok()?;
        let length = usize::try_from(number(head, header.checked_add(32)?, 8)?).ok()?;
        let path = head.get(at..at.checked_add(length)?)?;
        Some(String::from_utf8_lossy(path.strip_suffix(b"\0")?).into_owned())
    })
}

/// A little-endian number of `width` bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str) -> Vec<u8> {
        let mut bytes = std::fs::read(path).unwrap();
        bytes.truncate(HEAD);
        bytes
    }

    #[test]
    fn a_dynamic_program_names_its_loader() {
        let Image::Elf(Some(loader)) = image(&head("/bin/cat")) else { panic!("cat names no loader") };
        assert!(std::path::Path::new(&loader).exists(), "{loader}");
    }

    #[test]
    fn a_script_is_known_by_its_first_two_bytes() {
        assert_eq!(image(b"#!/bin/sh\n"), Image::Script);
        assert_eq!(image(b"echo\n"), Image::Unknown);
        assert_eq!(image(b""), Image::Unknown);
    }

    #[test]
    fn a_cut_or_forged_header_names_no_loader_and_does_not_panic() {
        let whole = head("/bin/cat");
        for length in 0..whole.len() {
            image(&whole[..length]);
        }
        let mut forged = whole;
        forged[0x20..0x40].fill(0xff);
        assert_eq!(image(&forged), Image::Elf(None));
    }
}
