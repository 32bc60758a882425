#![forbid(unsafe_code)]
//! RESP2, as far as one command and its reply need it. Sizes are checked against a budget before anything
//! of that size is read.

use crate::net::Broken;
use std::io::{self, BufRead, Read, Write};

/// Lists within lists.
const DEPTH: usize = 8;
/// Longest line that is no value: a status, an error, a number.
const LINE: u64 = 64 * 1024;
/// What each element of a list costs beside its content, bytes.
const ELEMENT: usize = 4;

/// A reply.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// `+OK`
    Status(String),
    /// `-ERR …`
    Error(String),
    /// `:1`
    Integer(i64),
    /// A key or a value that does not exist.
    Nothing,
    /// A value.
    Bytes(Vec<u8>),
    /// Several replies.
    List(Vec<Reply>),
}

/// Sends a command: a list of byte strings, each with its length, so that no argument can become another.
pub fn send(stream: &mut impl Write, words: &[&str]) -> Result<(), Broken> {
    let mut message = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        message.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    stream.write_all(&message)?;
    Ok(stream.flush()?)
}

/// Receives a reply of at most `budget` bytes.
pub fn receive(stream: &mut impl BufRead, budget: &mut usize) -> Result<Reply, Broken> {
    nested(stream, budget, DEPTH)
}

fn nested(stream: &mut impl BufRead, budget: &mut usize, depth: usize) -> Result<Reply, Broken> {
    let line = line(stream)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(Broken::Protocol)?;
    match kind {
        "+" => Ok(Reply::Status(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => rest.parse().map(Reply::Integer).map_err(|_| Broken::Protocol),
        "$" | "*" if rest == "-1" => Ok(Reply::Nothing),
        "$" => {
            let length = spend(rest, 1, budget)?;
            let mut value = vec![0; length + 2];
            stream.read_exact(&mut value)?;
            if !value.ends_with(b"\r\n") {
                return Err(Broken::Protocol);
            }
            value.truncate(length);
            Ok(Reply::Bytes(value))
        }
        "*" if depth > 0 => {
            let count = spend(rest, ELEMENT, budget)?;
            (0..count).map(|_| nested(stream, budget, depth - 1)).collect::<Result<_, _>>().map(Reply::List)
        }
        _ => Err(Broken::Protocol),
    }
}

/// Reads a count and takes it from the budget.
fn spend(count: &str, each: usize, budget: &mut usize) -> Result<usize, Broken> {
    let count: usize = count.parse().map_err(|_| Broken::Protocol)?;
    let cost = count.saturating_mul(each);
    *budget = budget.checked_sub(cost).ok_or(Broken::Large(cost))?;
    Ok(count)
}

fn line(stream: &mut impl BufRead) -> Result<String, Broken> {
    let mut line = Vec::new();
    stream.take(LINE).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
        None if line.len() as u64 == LINE => Err(Broken::Protocol),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], mut budget: usize) -> Result<Reply, Broken> {
        receive(&mut io::BufReader::new(text), &mut budget)
    }

    #[test]
    fn replies_of_each_kind_are_read() {
        assert_eq!(read(b"+OK\r\n", 9).unwrap(), Reply::Status("OK".into()));
        assert_eq!(read(b"-ERR no\r\n", 9).unwrap(), Reply::Error("ERR no".into()));
        assert_eq!(read(b":-2\r\n", 9).unwrap(), Reply::Integer(-2));
        assert_eq!(read(b"$-1\r\n", 9).unwrap(), Reply::Nothing);
        assert_eq!(read(b"$3\r\na\r\n\r\n", 9).unwrap(), Reply::Bytes(b"a\r\n".to_vec()));
        let list = read(b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n", 99).unwrap();
        assert_eq!(
            list,
            Reply::List(vec![Reply::Bytes(b"0".into()), Reply::List(vec![Reply::Bytes(b"k".into())])])
        );
    }

    #[test]
    fn sizes_are_believed_only_within_the_budget() {
        assert!(matches!(read(b"$10\r\n", 9), Err(Broken::Large(10))));
        assert!(matches!(read(b"$18446744073709551615\r\n", 9), Err(Broken::Large(_))));
        assert!(matches!(read(b"*9999999\r\n", 1000), Err(Broken::Large(_))));
        assert!(matches!(read(b"*2\r\n$5\r\nabcde\r\n$5\r\n", 14), Err(Broken::Large(5))));
    }

    #[test]
    fn what_is_no_resp_is_an_error() {
        assert!(read(&[b"*1\r\n".repeat(20).as_slice()].concat(), 1000).is_err());
        for text in [&b"HTTP/1.1 200 OK\r\n"[..], b"", b"$x\r\n", b"$1\r\nabc", b"+OK", b"\r\n", b"%1\r\n"] {
            assert!(read(text, 1000).is_err());
        }
    }

    #[test]
    fn an_argument_cannot_become_a_command() {
        let mut sent = Vec::new();
        send(&mut sent, &["GET", "k\r\nDEL x"]).unwrap();
        assert_eq!(sent, b"*2\r\n$3\r\nGET\r\n$8\r\nk\r\nDEL x\r\n");
    }
}
