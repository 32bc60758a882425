#![forbid(unsafe_code)]
//! The body of an answer: by length, in chunks, or up to the end of the connection (RFC 9112, 6.3).

use super::{invalid, line};
use std::io::{self, BufRead, Read};

/// What is left of a body.
enum Rest {
    /// So many bytes; of a chunk, where chunks follow each other.
    Bytes { left: u64, chunked: bool },
    /// Everything that comes.
    UntilClosed,
    /// Nothing.
    Over,
}

/// A body. Reads as the plain content.
pub struct Body<R> {
    reader: R,
    rest: Rest,
}

impl<R: BufRead> Body<R> {
    /// The body that follows the head with those headers, names in lower case.
    ///
    /// # Errors
    /// The headers contradict themselves.
    pub fn new(mut reader: R, status: u16, headers: &[(String, String)]) -> io::Result<Self> {
        let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let rest = if status == 204 || status == 304 {
            Rest::Over
        } else if let Some(coding) = header("transfer-encoding") {
            if !coding.eq_ignore_ascii_case("chunked") {
                return Err(invalid(format!("unknown transfer coding {coding}")));
            }
            next_chunk(&mut reader)?
        } else if let Some(length) = header("content-length") {
            let left = length.parse().map_err(|_| invalid("bad content-length".to_owned()))?;
            Rest::Bytes { left, chunked: false }
        } else {
            Rest::UntilClosed
        };
        Ok(Self { reader, rest })
    }
}

fn next_chunk(reader: &mut impl BufRead) -> io::Result<Rest> {
    let head = line(reader)?;
    let size = head.split(';').next().unwrap_or_default().trim();
    match u64::from_str_radix(size, 16) {
        // Trailers are not used; the connection ends with the answer.
        Ok(0) => Ok(Rest::Over),
        Ok(left) => Ok(Rest::Bytes { left, chunked: true }),
        Err(_) => Err(invalid("bad chunk in the answer".to_owned())),
    }
}

impl<R: BufRead> BufRead for Body<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Rest::Bytes { left: 0, chunked } = self.rest {
            self.rest = if chunked {
                line(&mut self.reader)?;
                next_chunk(&mut self.reader)?
            } else {
                Rest::Over
            };
        }
        let limit = match self.rest {
            Rest::Over => return Ok(&[]),
            Rest::UntilClosed => u64::MAX,
            Rest::Bytes { left, .. } => left,
        };
        let buffer = self.reader.fill_buf()?;
        if buffer.is_empty() && matches!(self.rest, Rest::Bytes { .. }) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection broke in an answer"));
        }
        let usable = buffer.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(buffer.get(..usable).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
        if let Rest::Bytes { left, .. } = &mut self.rest {
            *left = left.saturating_sub(amount as u64);
        }
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut buffer = self.fill_buf()?;
        let read = buffer.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], status: u16, header: Option<(&str, &str)>) -> io::Result<String> {
        let headers: Vec<_> = header.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let mut text = String::new();
        Body::new(bytes, status, &headers)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_length_bounds_the_body() {
        assert_eq!(read(b"hello, more", 200, Some(("content-length", "5"))).unwrap(), "hello");
        assert!(read(b"hel", 200, Some(("content-length", "5"))).is_err());
        assert!(read(b"hel", 200, Some(("content-length", "-5"))).is_err());
    }

    #[test]
    fn chunks_are_joined() {
        let chunked = Some(("transfer-encoding", "Chunked"));
        assert_eq!(read(b"5\r\nhello\r\n4;x=y\r\n you\r\n0\r\n\r\n", 200, chunked).unwrap(), "hello you");
        assert!(read(b"5\r\nhello\r\n", 200, chunked).is_err());
        assert!(read(b"zz\r\nhello\r\n", 200, chunked).is_err());
    }

    #[test]
    fn without_either_the_body_ends_with_the_connection() {
        assert_eq!(read(b"hello", 200, None).unwrap(), "hello");
        assert_eq!(read(b"ignored", 204, None).unwrap(), "");
    }
}
