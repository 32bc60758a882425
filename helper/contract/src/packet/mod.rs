#![forbid(unsafe_code)]
//! The packets between daemon and helper, and the only place that names their codec.
//!
//! bincode is unmaintained (RUSTSEC-2025-0141). It is contained: the types are flat, every decoding has a
//! byte limit, a packet must be consumed whole, and what was decoded must encode to the same bytes again
//! (bincode also reads non-canonical numbers). Another codec would touch this module and nothing else.

mod event;
mod request;
#[cfg(test)]
mod tests;
mod value;

pub use event::{Enforcement, Event, Layer, Outcome, Receipt, RefusalCode, Unsupported, Usage};
pub use request::{Caller, Note, Request, Run, VERSION};
pub use value::{Argument, Content, Scalar, Value};

use crate::limits;
use bincode::{Decode, Encode};
use std::fmt;

/// Why bytes are no packet, or a packet has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketError {
    /// Longer than [`limits::PACKET`].
    TooLarge,
    /// Not the encoding of any packet.
    Malformed,
    /// A packet with bytes left over.
    Trailing,
    /// The encoding of a packet, but not the one that we would write.
    NotCanonical,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "the packet is larger than {} bytes", limits::PACKET),
            Self::Malformed => f.write_str("the packet cannot be decoded"),
            Self::Trailing => f.write_str("the packet has bytes left over"),
            Self::NotCanonical => f.write_str("the packet is not in canonical form"),
        }
    }
}

impl std::error::Error for PacketError {}

const CONFIG: bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<{ limits::DECODED }>,
> = bincode::config::standard().with_limit::<{ limits::DECODED }>();

fn encode<T: Encode>(packet: &T) -> Result<Vec<u8>, PacketError> {
    // The limit of the configuration counts memory, and binds decoding only; the length is checked here.
    let bytes = bincode::encode_to_vec(packet, CONFIG).map_err(|_| PacketError::TooLarge)?;
    if bytes.len() > limits::PACKET { Err(PacketError::TooLarge) } else { Ok(bytes) }
}

fn decode<T: Encode + Decode<()>>(bytes: &[u8]) -> Result<T, PacketError> {
    if bytes.len() > limits::PACKET {
        return Err(PacketError::TooLarge);
    }
    let (packet, used) =
        bincode::decode_from_slice::<T, _>(bytes, CONFIG).map_err(|_| PacketError::Malformed)?;
    if used != bytes.len() {
        return Err(PacketError::Trailing);
    }
    if encode(&packet)? != bytes {
        return Err(PacketError::NotCanonical);
    }
    Ok(packet)
}

impl Request {
    /// The packet's bytes.
    ///
    /// # Errors
    /// [`PacketError::TooLarge`].
    pub fn encode(&self) -> Result<Vec<u8>, PacketError> {
        encode(self)
    }
    /// Reads one packet, whole and canonical.
    ///
    /// # Errors
    /// Everything else.
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        decode(bytes)
    }
}

impl Event {
    /// The packet's bytes.
    ///
    /// # Errors
    /// [`PacketError::TooLarge`].
    pub fn encode(&self) -> Result<Vec<u8>, PacketError> {
        encode(self)
    }
    /// Reads one packet, whole and canonical.
    ///
    /// # Errors
    /// Everything else.
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        decode(bytes)
    }
}
