//! HTTP as bytes: for exact statuses and headers, and for requests that no client library would send.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than anything a test waits for on purpose.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request, as it will stand on the wire.
#[derive(Debug, Clone)]
pub struct Request {
    start: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Without any transfer coding.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without a body: `GET /mcp`.
    pub fn new(method: &str, target: &str) -> Self {
        Self { start: format!("{method} {target} HTTP/1.1"), headers: Vec::new(), body: Vec::new() }
    }

    /// A POST with a body. Its length is declared unless another header says so.
    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST", target) }
    }

    /// With one more header line; a name may stand twice.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without the header lines of that name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Connects and sends; the answer is still to be read. Dropping the stream is a disconnect.
    pub fn open(&self, address: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut head = format!("{}\r\n", self.start);
        if !self.has("host") {
            head += &format!("Host: {address}\r\n");
        }
        if !self.has("connection") {
            head += "Connection: close\r\n";
        }
        if !self.body.is_empty() && !self.has("content-length") && !self.has("transfer-encoding") {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        // A server that refuses by the head alone may close before it has read the body.
        let _ = stream.write_all(&self.body);
        Ok(stream)
    }

    /// Sends it and reads the answer to its end.
    pub fn send(&self, address: &str) -> io::Result<Response> {
        read(&mut self.open(address)?)
    }
}

/// Reads an answer until the server closes.
pub fn read(stream: &mut TcpStream) -> io::Result<Response> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // What came before a reset is an answer too.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !bytes.is_empty() => {}
        other => {
            other?;
        }
    }
    parse(&bytes).ok_or_else(|| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP answer: {text:?}"))
    })
}

fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    let mut response = Response { status, headers: headers.collect(), body: bytes[end + 4..].to_vec() };
    if response.header("transfer-encoding") == Some("chunked") {
        response.body = dechunk(&response.body);
    }
    Some(response)
}

/// The content of a chunked body, as far as it came.
fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]);
        let Ok(size) = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16) else {
            break;
        };
        let (from, to) = (end + 2, end + 2 + size);
        if size == 0 || to > rest.len() {
            break;
        }
        content.extend_from_slice(&rest[from..to]);
        rest = rest.get(to + 2..).unwrap_or_default();
    }
    content
}

impl Response {
    /// The first header of that name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The JSON-RPC messages of the body: one of JSON, or each event of a stream.
    pub fn messages(&self) -> Vec<serde_json::Value> {
        let text = self.text();
        if self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            text.lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .filter_map(|data| serde_json::from_str(data.trim()).ok())
                .collect()
        } else {
            serde_json::from_str(&text).into_iter().collect()
        }
    }
}
