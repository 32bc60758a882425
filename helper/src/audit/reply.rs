#![forbid(unsafe_code)]
//! What the writer answers, as bytes.

use gloveport_contract::packet::Receipt;
use nix::errno::Errno;

const WRITTEN: u8 = 0;
const FAILED: u8 = 1;

/// Length of the longest reply: a word, a number and a hash.
pub const LENGTH: usize = 1 + 8 + 32;

/// The answer to a record.
pub type Reply = Result<Receipt, Errno>;

/// The bytes of a reply.
pub fn encode(reply: Reply) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LENGTH);
    match reply {
        Ok(receipt) => {
            bytes.push(WRITTEN);
            bytes.extend(receipt.seq.to_le_bytes());
            bytes.extend(receipt.hash);
        }
        Err(errno) => {
            bytes.push(FAILED);
            bytes.extend((errno as i32).to_le_bytes());
        }
    }
    bytes
}

/// Reads a reply. `None` when it is none.
pub fn decode(bytes: &[u8]) -> Option<Reply> {
    match bytes.split_first()? {
        (&WRITTEN, rest) => {
            let (seq, hash) = rest.split_first_chunk()?;
            Some(Ok(Receipt { seq: u64::from_le_bytes(*seq), hash: hash.try_into().ok()? }))
        }
        (&FAILED, errno) => Some(Err(Errno::from_raw(i32::from_le_bytes(errno.try_into().ok()?)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_as_it_was_written_and_in_no_other_form() {
        for reply in [Ok(Receipt { seq: u64::MAX, hash: [7; 32] }), Err(Errno::ENOSPC)] {
            let bytes = encode(reply);
            assert!(bytes.len() <= LENGTH);
            assert_eq!(decode(&bytes), Some(reply));
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(decode(&[bytes, vec![0]].concat()), None);
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[9]), None);
    }
}
