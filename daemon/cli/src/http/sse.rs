#![forbid(unsafe_code)]
//! A stream of server-sent events, as far as MCP uses it: the data of each event.

use super::{ANSWER, invalid};
use std::io::{self, BufRead, Read};

/// The data of the next event; `None` at the end of the stream. Comments and events without data (a
/// keep-alive, a priming event) are passed over.
///
/// # Errors
/// The connection broke, or one event is longer than an answer may be.
pub fn next_event(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut data: Option<String> = None;
    let mut limited = reader.take(ANSWER);
    loop {
        let mut line = Vec::new();
        if limited.read_until(b'\n', &mut line)? == 0 {
            // An event that no empty line ended was cut off, and is none.
            return if limited.limit() == 0 {
                Err(invalid("an event is too long".to_owned()))
            } else {
                Ok(None)
            };
        }
        let line = String::from_utf8(line).map_err(|_| invalid("an event is not UTF-8".to_owned()))?;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            if data.is_some() {
                return Ok(data);
            }
        } else if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None if !value.is_empty() => data = Some(value.to_owned()),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_and_comments_passed_over() {
        let mut stream = &b": hi\n\nevent: message\ndata: {\"a\":1}\n\nid: 1\ndata:\n\ndata: x\r\ndata: y\r\n\r\ndata: cut"[..];
        assert_eq!(next_event(&mut stream).unwrap().as_deref(), Some("{\"a\":1}"));
        assert_eq!(next_event(&mut stream).unwrap().as_deref(), Some("x\ny"));
        assert_eq!(next_event(&mut stream).unwrap(), None);
    }
}
