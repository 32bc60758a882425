#![forbid(unsafe_code)]
//! A small blocking HTTP/1.1 client: one request per connection, over TCP or a Unix socket.
//!
//! It exists because a run is cancelled by closing its connection: the caller holds the socket itself and
//! can shut it down at any moment from another thread.

mod body;
mod endpoint;
pub mod sse;

pub use body::Body;
pub use endpoint::{Endpoint, Stream};

use std::io::{self, BufRead, BufReader, Read, Write};

/// Longest status line or header line of an answer, and most of the headers together, bytes.
const HEAD: u64 = 64 * 1024;
/// Longest answer that is read into memory, bytes: `max_output` goes up to 16 MiB, and JSON escapes
/// may double it.
pub const ANSWER: u64 = 64 * 1024 * 1024;

/// The head of an answer; its body is read from it.
pub struct Answer {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    body: Body<BufReader<Stream>>,
}

impl Answer {
    /// The first header of that name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
    /// Whether the body is a stream of events.
    pub fn is_event_stream(&self) -> bool {
        self.header("content-type").is_some_and(|value| value.starts_with("text/event-stream"))
    }
    /// The body.
    pub fn body(&mut self) -> &mut impl BufRead {
        &mut self.body
    }
    /// The whole body.
    ///
    /// # Errors
    /// The connection broke, or the body is longer than [`ANSWER`].
    pub fn read_whole(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.body).take(ANSWER + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > ANSWER {
            return Err(invalid(format!("the answer is longer than {ANSWER} bytes")));
        }
        Ok(bytes)
    }
}

/// Sends one request and reads the head of its answer.
///
/// # Errors
/// The connection broke, or what came back is not HTTP.
pub fn send(
    stream: Stream,
    endpoint: &Endpoint,
    method: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    let mut head = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: gloveport/{}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n",
        endpoint.path(),
        endpoint.authority(),
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    for (name, value) in headers {
        if value.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(invalid(format!("the header {name} cannot hold control characters")));
        }
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    let mut writer = stream.try_clone()?;
    // One write, so that a small request is one segment and never waits for an acknowledgement. A server may
    // answer and close before it has read a body that it refuses: then its answer is what counts.
    match writer.write_all(&[head.as_bytes(), body].concat()) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            Err(error)
        }
        _ => read_head(BufReader::new(stream)),
    }
}

fn read_head(mut reader: BufReader<Stream>) -> io::Result<Answer> {
    loop {
        let (status, headers) = head_of(&mut reader)?;
        // 1xx are announcements; the answer follows.
        if status >= 200 {
            let body = Body::new(reader, status, &headers)?;
            return Ok(Answer { status, headers, body });
        }
    }
}

fn head_of(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut limited = reader.take(HEAD);
    let status_line = line(&mut limited)?;
    let status = status_line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| invalid("what answers there does not speak HTTP/1.1".to_owned()))?;
    let mut headers = Vec::new();
    loop {
        let line = line(&mut limited)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

/// A line without its end. The end of the stream inside a head is an error.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the connection was closed before an answer",
        ));
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| invalid("the head of the answer is not text".to_owned()))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_with_its_names_in_lower_case() {
        let mut reader = &b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX: a:b\r\n\r\nrest"[..];
        let (status, headers) = head_of(&mut reader).unwrap();
        assert_eq!(status, 200);
        assert_eq!(headers[0], ("content-type".to_owned(), "application/json".to_owned()));
        assert_eq!(headers[1].1, "a:b");
        assert_eq!(reader, b"rest");
    }

    #[test]
    fn what_is_not_http_is_an_error_and_so_is_an_early_end() {
        assert!(head_of(&mut &b"SSH-2.0-OpenSSH\r\n"[..]).is_err());
        assert!(head_of(&mut &b"HTTP/1.1 200 OK\r\nContent-"[..]).is_err());
        assert!(head_of(&mut &b""[..]).is_err());
    }
}
