#![forbid(unsafe_code)]
//! The packets of the MySQL protocol. A packet's length is checked before it is read.

use crate::failure::Failure;
use crate::net::{self, Stream};
use std::io::{self, BufReader, Read, Write};

/// Longest packet that is sent; longer ones would have to be split.
pub const LARGEST_SENT: usize = 0xff_ffff;
/// Longest packet of the server outside of rows, bytes: names of columns, messages.
const LARGEST_META: usize = 64 * 1024;

/// Why there is no result.
#[derive(Debug)]
pub enum Broken {
    /// There is no answer.
    Wire(net::Broken),
    /// The server refused.
    Server {
        /// Its number for the reason.
        code: u16,
        /// Its words.
        message: String,
    },
}

impl From<net::Broken> for Broken {
    fn from(broken: net::Broken) -> Self {
        Self::Wire(broken)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Wire(error.into())
    }
}

impl Broken {
    /// Not what the protocol has in that place.
    pub const PROTOCOL: Self = Self::Wire(net::Broken::Protocol);

    /// Says it of a step.
    pub fn of(self, what: &str) -> Failure {
        match self {
            Self::Wire(broken) => broken.of(what),
            Self::Server { code: 1969 | 3024, .. } => Failure::refused(format!(
                "{what} was ended by the server: it took longer than the action's builtin_config.timeout"
            )),
            Self::Server { code, message } => Failure::refused(format!("{what}: error {code}: {message}")),
        }
    }
}

/// A connection after its greeting.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    sequence: u8,
    /// The server's number for it, which `KILL` takes.
    pub thread: u32,
}

impl Connection {
    /// Begins with a fresh stream.
    pub fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream: BufReader::new(stream), sequence: 0, thread: 0 }
    }

    /// Goes on over another stream that was made of this one's.
    pub fn over(
        self,
        wrap: impl FnOnce(Box<dyn Stream>) -> Result<Box<dyn Stream>, Failure>,
    ) -> Result<Self, Failure> {
        let stream = BufReader::new(wrap(self.stream.into_inner())?);
        Ok(Self { stream, ..self })
    }

    /// Receives one packet of at most `most` bytes.
    pub fn receive_within(&mut self, most: usize) -> Result<Vec<u8>, Broken> {
        let mut packet = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let [a, b, c, sequence] = header;
            if sequence != self.sequence {
                return Err(Broken::PROTOCOL);
            }
            self.sequence = self.sequence.wrapping_add(1);
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            if packet.len() + length > most {
                return Err(net::Broken::Large(packet.len() + length).into());
            }
            let start = packet.len();
            packet.resize(start + length, 0);
            self.stream.read_exact(packet.get_mut(start..).unwrap_or_default())?;
            if length < LARGEST_SENT {
                return Ok(packet);
            }
        }
    }

    /// Receives one packet that is no row; an error of the server is an error.
    pub fn receive(&mut self) -> Result<Vec<u8>, Broken> {
        let packet = self.receive_within(LARGEST_META)?;
        match server_error(&packet) {
            Some(error) => Err(error),
            None => Ok(packet),
        }
    }

    /// Sends one packet in the exchange that is going on.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), Broken> {
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() < LARGEST_SENT);
        let [a, b, c, _] = length.ok_or(net::Broken::Large(payload.len()))?.to_le_bytes();
        let mut packet = vec![a, b, c, self.sequence];
        packet.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        let stream = self.stream.get_mut();
        stream.write_all(&packet)?;
        Ok(stream.flush()?)
    }

    /// Begins a new exchange.
    pub fn begin(&mut self, payload: &[u8]) -> Result<(), Broken> {
        self.sequence = 0;
        self.send(payload)
    }

    /// Runs a statement of our own that gives no rows.
    pub fn command(&mut self, sql: &str) -> Result<(), Broken> {
        self.begin(&[&[0x03], sql.as_bytes()].concat())?;
        self.receive().map(|_| ())
    }
}

/// The error that a packet is, if it is one.
pub fn server_error(packet: &[u8]) -> Option<Broken> {
    let mut fields = Fields(packet.strip_prefix(&[0xff])?);
    let code = fields.u16()?;
    let message = match fields.0.strip_prefix(b"#") {
        Some(rest) => rest.get(5..).unwrap_or_default(),
        None => fields.0,
    };
    Some(Broken::Server { code, message: String::from_utf8_lossy(message).into_owned() })
}

/// Whether a packet ends a list of columns or rows.
pub fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

/// A reader over the fields of a packet.
pub struct Fields<'p>(pub &'p [u8]);

impl<'p> Fields<'p> {
    /// So many bytes.
    pub fn bytes(&mut self, length: usize) -> Option<&'p [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }
    /// An unsigned byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }
    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    /// Bytes up to a NUL.
    pub fn until_nul(&mut self) -> Option<&'p [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let bytes = self.bytes(end)?;
        self.bytes(1)?;
        Some(bytes)
    }
    /// A number of the protocol's own variable form.
    pub fn length(&mut self) -> Option<u64> {
        match self.u8()? {
            small @ 0..=0xfa => Some(small.into()),
            0xfc => self.u16().map(u64::from),
            0xfd => {
                let [a, b, c] = self.array()?;
                Some(u32::from_le_bytes([a, b, c, 0]).into())
            }
            0xfe => self.u64(),
            _ => None,
        }
    }
    /// Bytes behind their length.
    pub fn string(&mut self) -> Option<&'p [u8]> {
        let length = self.length()?;
        self.bytes(usize::try_from(length).ok()?)
    }
}

/// Writes bytes behind their length.
pub fn put_string(into: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len() as u64;
    match length {
        0..=0xfa => into.push(length.to_le_bytes()[0]),
        _ => {
            into.push(0xfe);
            into.extend_from_slice(&length.to_le_bytes());
        }
    }
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_back() {
        for length in [0, 1, 250, 251, 252, 70_000] {
            let mut packet = Vec::new();
            put_string(&mut packet, &vec![7; length]);
            let mut fields = Fields(&packet);
            assert_eq!(fields.string().unwrap().len(), length);
            assert!(fields.0.is_empty());
        }
    }

    #[test]
    fn a_field_that_ends_early_is_none() {
        for packet in [&b""[..], b"\x05abc", b"\xfc\x01", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff", b"\xff"] {
            assert_eq!(Fields(packet).string(), None);
        }
        assert_eq!(Fields(b"abc").until_nul(), None);
    }

    #[test]
    fn an_error_packet_is_read() {
        let error = server_error(b"\xff\x15\x04#28000Access denied").unwrap();
        assert!(matches!(error, Broken::Server { code: 1045, message } if message == "Access denied"));
        assert!(server_error(b"\x00").is_none());
    }
}
