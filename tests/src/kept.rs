//! A connection that is kept for many requests.

use crate::mcp::Endpoint;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A connection that is kept for many requests.
#[derive(Debug)]
pub struct Kept {
    stream: BufReader<TcpStream>,
    head: String,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status line.
    pub status: String,
    /// The content type.
    pub kind: String,
    /// The session that it belongs to or begins.
    pub session: Option<String>,
    /// The body: one document, or the chunks of a stream.
    pub body: String,
}

impl Kept {
    /// Connects.
    ///
    /// # Panics
    /// Where nobody listens.
    pub fn open(endpoint: &Endpoint) -> Self {
        let stream = TcpStream::connect(&endpoint.address).expect("a connection");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let token = endpoint.token.as_deref().unwrap_or_default();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            endpoint.path
        );
        Self { stream: BufReader::new(stream), head }
    }

    /// Sends one more header with each request from now on.
    pub fn add_header(&mut self, name: &str, value: &str) {
        self.head += &format!("{name}: {value}\r\n");
    }

    /// Sends a request; its answer, which is read to its end.
    ///
    /// # Panics
    /// Where none comes.
    pub fn ask(&mut self, body: &str) -> Answer {
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).expect("sending a request");
        let (mut status, mut kind, mut session, mut length) = (String::new(), String::new(), None, None);
        loop {
            let line = self.line();
            match line.split_once(": ") {
                None if line.is_empty() => break,
                None => status = line,
                Some((name, value)) if name.eq_ignore_ascii_case("content-type") => kind = value.to_owned(),
                Some((name, value)) if name.eq_ignore_ascii_case("mcp-session-id") => {
                    session = Some(value.to_owned());
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().ok();
                }
                Some(_) => {}
            }
        }
        let mut body = Vec::new();
        match length {
            Some(length) => self.read(length, &mut body),
            None => loop {
                let size = u64::from_str_radix(&self.line(), 16).expect("the size of a chunk");
                self.read(size, &mut body);
                self.line();
                if size == 0 {
                    break;
                }
            },
        }
        Answer { status, kind, session, body: String::from_utf8_lossy(&body).into_owned() }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("reading an answer");
        line.trim_end().to_owned()
    }

    fn read(&mut self, bytes: u64, into: &mut Vec<u8>) {
        io::copy(&mut self.stream.by_ref().take(bytes), into).expect("reading a body");
    }
}
