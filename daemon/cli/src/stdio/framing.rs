#![forbid(unsafe_code)]
//! How messages stand on stdin and stdout: one on a line, as the protocol says, or behind a
//! `Content-Length` header, as some clients write them. The first message decides; answers go in kind.

use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Longest message, bytes: as much as the daemon reads of one request.
pub const MESSAGE: usize = 4 * 1024 * 1024;
/// Longest header line, bytes.
const HEADER: u64 = 4096;

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One on a line.
    Lines,
    /// Behind a header with its length.
    Headers,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message.
    Message(Vec<u8>),
    /// A message longer than [`MESSAGE`]; it was passed over.
    TooLong,
    /// A header without a length.
    NoLength,
}

/// Messages from a stream.
pub struct Input<R> {
    reader: R,
    framing: Option<Framing>,
}

impl<R: BufRead> Input<R> {
    /// Messages from that stream, framed as the first one will be.
    pub fn new(reader: R) -> Self {
        Self { reader, framing: None }
    }

    /// The framing, known once a message has come.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let Some(line) = self.line(MESSAGE as u64)? else { return Ok(None) };
            let Some(line) = line else { return Ok(Some(Frame::TooLong)) };
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
            if line.is_empty() {
                continue;
            }
            let framing =
                *self.framing.get_or_insert(if is_header(line) { Framing::Headers } else { Framing::Lines });
            return match framing {
                Framing::Lines => Ok(Some(Frame::Message(line.to_vec()))),
                Framing::Headers => {
                    let first = line.to_vec();
                    self.behind_headers(&first)
                }
            };
        }
    }

    fn behind_headers(&mut self, first: &[u8]) -> io::Result<Option<Frame>> {
        let mut length = content_length(first);
        loop {
            match self.line(HEADER)? {
                None => return Ok(None),
                Some(None) => {}
                Some(Some(line)) if line.trim_ascii().is_empty() => break,
                Some(Some(line)) => length = length.or(content_length(&line)),
            }
        }
        let Some(length) = length else { return Ok(Some(Frame::NoLength)) };
        if length > MESSAGE as u64 {
            io::copy(&mut (&mut self.reader).take(length), &mut io::sink())?;
            return Ok(Some(Frame::TooLong));
        }
        let mut body = Vec::new();
        (&mut self.reader).take(length).read_to_end(&mut body)?;
        Ok((body.len() as u64 == length).then_some(Frame::Message(body)))
    }

    /// The next line without its end; `Some(None)` for one that is longer than `limit`, which is read to its
    /// end and kept nowhere. A last line without an end counts.
    fn line(&mut self, limit: u64) -> io::Result<Option<Option<Vec<u8>>>> {
        let mut line = Vec::new();
        if (&mut self.reader).take(limit + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.pop_if(|byte| *byte == b'\n').is_some() || line.len() as u64 <= limit {
            return Ok(Some(Some(line)));
        }
        self.reader.skip_until(b'\n')?;
        Ok(Some(None))
    }
}

fn is_header(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    [b"content-length".as_slice(), b"content-type"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn content_length(line: &[u8]) -> Option<u64> {
    let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    name.trim().eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
}

/// Messages to stdout, whole, from many threads.
#[derive(Default)]
pub struct Output {
    framing: OnceLock<Framing>,
    turn: Mutex<()>,
}

impl Output {
    /// Answers in kind from now on.
    pub fn answer_in(&self, framing: Framing) {
        // The first message decides; later ones cannot change it.
        let _ = self.framing.set(framing);
    }

    /// Writes a message.
    ///
    /// # Errors
    /// The client has gone away.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let framed = frame(message, self.framing.get().copied().unwrap_or(Framing::Lines));
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stdout = io::stdout().lock();
        stdout.write_all(&framed)?;
        stdout.flush()
    }

    /// Answers with an error.
    ///
    /// # Errors
    /// The client has gone away.
    pub fn refuse(&self, id: &Value, code: i64, text: &str) -> io::Result<()> {
        let reply = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}});
        self.send(reply.to_string().as_bytes())
    }
}

fn frame(message: &[u8], framing: Framing) -> Vec<u8> {
    match framing {
        Framing::Headers => {
            [format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes(), message].concat()
        }
        // A line break can stand between JSON's tokens only, where a space means the same.
        Framing::Lines => message
            .iter()
            .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte })
            .chain([b'\n'])
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8]) -> (Vec<Frame>, Option<Framing>) {
        let mut input = Input::new(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = input.next().unwrap() {
            frames.push(frame);
        }
        (frames, input.framing())
    }

    fn message(text: &str) -> Frame {
        Frame::Message(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_messages_and_empty_ones_are_not() {
        let (found, framing) = frames(b"\xef\xbb\xbf{\"a\":1}\r\n\n  \n[2]\n{\"last\":3}");
        assert_eq!(found, [message("{\"a\":1}"), message("[2]"), message("{\"last\":3}")]);
        assert_eq!(framing, Some(Framing::Lines));
    }

    #[test]
    fn a_client_that_frames_with_headers_is_understood() {
        let (found, framing) = frames(
            b"content-length: 3\r\nContent-Type: x\r\n\r\n{1}Content-Type: x\r\nContent-Length:4\r\n\r\n{22}Content-Length: 9\r\n\r\ncut",
        );
        assert_eq!(found, [message("{1}"), message("{22}")]);
        assert_eq!(framing, Some(Framing::Headers));
    }

    #[test]
    fn a_message_that_is_too_long_is_passed_over() {
        let long = vec![b'x'; MESSAGE + 1];
        let (found, _) = frames(&[&long, b"\n{}\n".as_slice()].concat());
        assert_eq!(found, [Frame::TooLong, message("{}")]);
        let head = format!("Content-Length: {}\r\n\r\n", long.len());
        let (found, _) = frames(&[head.as_bytes(), &long, b"Content-Length: 2\r\n\r\n{}"].concat());
        assert_eq!(found, [Frame::TooLong, message("{}")]);
    }

    #[test]
    fn a_header_without_a_length_is_told() {
        let (found, _) = frames(b"Content-Type: x\r\n\r\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(found, [Frame::NoLength, message("{}")]);
    }

    #[test]
    fn answers_are_framed_in_kind_and_a_line_stays_a_line() {
        assert_eq!(frame(b"{\n\"a\":1}", Framing::Lines), b"{ \"a\":1}\n");
        assert_eq!(frame(b"{}", Framing::Headers), b"Content-Length: 2\r\n\r\n{}");
    }
}
