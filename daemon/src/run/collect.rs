#![forbid(unsafe_code)]
//! The pipes of one step: read to the end, bounded at every turn.

use super::filter::LineFilter;
use super::live::{Live, Source};
use super::present::{Keep, Text, present};
use super::redact::{Redaction, Redactor, redact_json};
use gloveport_contract::catalog::Escapes;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;

/// The size of a pipe's buffer, and so of the largest read.
const CHUNK: usize = 64 * 1024;
/// What is read and thrown away after `max_scan`, so that exit codes stay true. A program that writes on
/// loses its reader.
const DISCARD: u64 = 1 << 30;

/// Our ends of a step's pipes.
pub struct Pipes {
    /// Read end.
    pub stdout: OwnedFd,
    /// Read end.
    pub stderr: OwnedFd,
    /// Write end, where content was declared.
    pub stdin: Option<OwnedFd>,
}

/// How the output of a step is to be treated.
#[derive(Clone)]
pub struct Treatment {
    /// What is redacted.
    pub redaction: Redaction,
    /// Which lines of stdout are wanted; of stderr all are.
    pub filter: super::filter::FilterPlan,
    /// What becomes of escapes.
    pub escapes: Escapes,
    /// Bytes of each stream that are kept at most.
    pub limit: usize,
    /// Raw bytes of each stream that are looked at.
    pub max_scan: u64,
    /// stdout is one JSON document of a handler: it is redacted inside its strings and never cut.
    pub document: bool,
}

/// One stream, read.
#[derive(Debug, Default)]
pub struct Stream {
    /// What may be shown of it.
    pub text: Text,
    /// Which side gives way if it must be cut further; `None` where a cut would destroy it.
    pub keep: Option<Keep>,
    /// Number of lines, where only that was asked for.
    pub count: Option<u64>,
    /// Raw bytes read.
    pub bytes: u64,
    /// `max_scan` was reached.
    pub scan_limit_reached: bool,
    /// We closed the pipe before its writers did.
    pub closed_early: bool,
    /// How many places were redacted.
    pub redactions: u64,
}

/// Reads both streams and writes the content, all at once. When `stop` turns true it returns what it has:
/// somebody outside the step's tree may hold a pipe open.
///
/// # Errors
/// A descriptor that is no pipe.
pub async fn step(
    pipes: Pipes,
    treatment: Treatment,
    content: Option<Arc<[u8]>>,
    live: Arc<Live>,
    stop: watch::Receiver<bool>,
) -> io::Result<(Stream, Stream)> {
    let feeding = async {
        match (pipes.stdin, content) {
            (Some(stdin), Some(content)) => feed(stdin, &content, stop.clone()).await,
            _ => Ok(()),
        }
    };
    let stderr = Treatment { filter: Default::default(), document: false, ..treatment.clone() };
    let (stdout, stderr, fed) = tokio::join!(
        stream(pipes.stdout, treatment, (&live, Source::Stdout), stop.clone()),
        stream(pipes.stderr, stderr, (&live, Source::Stderr), stop.clone()),
        feeding
    );
    fed?;
    Ok((stdout?, stderr?))
}

/// Writes the content. A program that does not read it has its reasons: no failure of ours.
async fn feed(stdin: OwnedFd, content: &[u8], mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let mut pipe = Sender::from_owned_fd(stdin)?;
    tokio::select! {
        _ = pipe.write_all(content) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    Ok(())
}

async fn stream(
    fd: OwnedFd,
    treatment: Treatment,
    (live, source): (&Live, Source),
    mut stop: watch::Receiver<bool>,
) -> io::Result<Stream> {
    let mut pipe = Receiver::from_owned_fd(fd)?;
    let mut stage = Stage::new(&treatment);
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0_u64;
    let closed_early = loop {
        let length = tokio::select! {
            result = pipe.read(&mut chunk) => result?,
            _ = stop.wait_for(|stop| *stop) => break true,
        };
        if length == 0 {
            break false;
        }
        let scan = usize::try_from(treatment.max_scan.saturating_sub(bytes)).unwrap_or(usize::MAX);
        let shown = stage.push(chunk.get(..length.min(scan)).unwrap_or_default(), &treatment);
        live.show(source, shown);
        bytes += length as u64;
        live.count(length);
        if bytes >= treatment.max_scan.saturating_add(DISCARD) {
            break true;
        }
    };
    let scan_limit_reached = bytes > treatment.max_scan;
    Ok(Stream { bytes, closed_early, scan_limit_reached, ..stage.finish(&treatment) })
}

/// What is done with the bytes of a stream.
enum Stage {
    Lines(Box<Lines>),
    Document(Vec<u8>),
}

/// Any output: redacted, then filtered.
struct Lines {
    redactor: Redactor,
    filter: LineFilter,
    redacted: Vec<u8>,
}

impl Stage {
    fn new(treatment: &Treatment) -> Self {
        if treatment.document { Self::Document(Vec::new()) } else { Self::Lines(Lines::new(treatment)) }
    }

    /// Takes a chunk. Yields what it adds to what may be shown already: of a document nothing, it is redacted as
    /// a whole.
    fn push(&mut self, chunk: &[u8], treatment: &Treatment) -> &[u8] {
        match self {
            Self::Lines(lines) => lines.push(chunk),
            // One byte more than fits shows that it is no document of a handler that keeps its bounds.
            Self::Document(bytes) => {
                let room = treatment.limit.saturating_add(1).saturating_sub(bytes.len());
                bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
                &[]
            }
        }
    }

    fn finish(self, treatment: &Treatment) -> Stream {
        match self {
            Self::Lines(lines) => lines.finish(treatment),
            Self::Document(bytes) => {
                let show =
                    |text: &[u8]| present(text, false, Keep::Start, usize::MAX, treatment.escapes).text;
                if let Some((text, redactions)) = redact_json(&bytes, treatment.redaction.start(), show) {
                    let text = Text { text, ..Text::default() };
                    return Stream { text, redactions, ..Stream::default() };
                }
                let mut lines = Lines::new(treatment);
                lines.push(&bytes);
                lines.finish(treatment)
            }
        }
    }
}

impl Lines {
    fn new(treatment: &Treatment) -> Box<Self> {
        Box::new(Self {
            redactor: treatment.redaction.start(),
            filter: LineFilter::new(treatment.filter.clone(), treatment.limit),
            redacted: Vec::new(),
        })
    }

    /// Takes a chunk and yields what it makes, redacted and not yet filtered.
    fn push(&mut self, chunk: &[u8]) -> &[u8] {
        self.redacted.clear();
        if !self.filter.is_done() {
            self.redactor.push(chunk, &mut self.redacted);
            self.filter.push(&self.redacted);
        }
        &self.redacted
    }

    fn finish(mut self, treatment: &Treatment) -> Stream {
        self.redacted.clear();
        let redactions = self.redactor.finish(&mut self.redacted);
        self.filter.push(&self.redacted);
        let kept = self.filter.finish();
        let keep = if treatment.filter.keeps_end() { Keep::End } else { Keep::Start };
        let text = present(&kept.bytes, kept.truncated, keep, treatment.limit, treatment.escapes);
        Stream { text, keep: Some(keep), count: kept.count, redactions, ..Stream::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gloveport_contract::catalog::Redact;
    use std::io::Write;

    fn treatment() -> Treatment {
        let redaction = Redaction::new(&Redact::default(), [].into_iter()).expect("rules");
        Treatment {
            redaction,
            filter: Default::default(),
            escapes: Escapes::Visible,
            limit: 1000,
            max_scan: 1_000_000,
            document: false,
        }
    }

    /// Runs a step whose program is `write`, on a thread of its own.
    async fn collect(
        treatment: Treatment,
        write: impl FnOnce(io::PipeWriter, io::PipeWriter) + Send + 'static,
    ) -> (Stream, Stream) {
        let (stdout, out) = io::pipe().expect("pipe");
        let (stderr, err) = io::pipe().expect("pipe");
        let pipes = Pipes { stdout: stdout.into(), stderr: stderr.into(), stdin: None };
        let program = std::thread::spawn(|| write(out, err));
        let (_keep, stop) = watch::channel(false);
        let streams = step(pipes, treatment, None, Arc::default(), stop).await.expect("pipes");
        program.join().expect("program");
        streams
    }

    #[tokio::test]
    async fn both_streams_are_read_and_redacted() {
        let (out, err) = collect(treatment(), |mut out, mut err| {
            out.write_all(b"pass").expect("write");
            err.write_all(b"\x1b[1mtoken: abc\n").expect("write");
            out.write_all(b"word=x y\n").expect("write");
        })
        .await;
        assert_eq!((out.text.text.as_str(), out.redactions, out.bytes), ("password=[redacted] y\n", 1, 13));
        assert_eq!(err.text.text, "\\x1b[1mtoken: [redacted]\n");
        assert!(!out.closed_early && !out.text.truncated && !out.scan_limit_reached);
    }

    #[tokio::test]
    async fn reaching_the_scan_limit_and_cutting_the_output_are_two_things() {
        let flood = |mut out: io::PipeWriter, _: io::PipeWriter| {
            out.write_all(&b"y\n".repeat(50_000)).expect("write");
        };
        let (out, _) = collect(treatment(), flood).await;
        assert_eq!((out.text.text.len(), out.text.truncated, out.scan_limit_reached), (1000, true, false));
        let short = Treatment { max_scan: 100, ..treatment() };
        let (out, _) = collect(short, flood).await;
        assert_eq!((out.text.text.len(), out.text.truncated, out.scan_limit_reached), (100, false, true));
        assert_eq!(out.bytes, 100_000);
        let exact = Treatment { max_scan: 100_000, ..treatment() };
        assert!(!collect(exact, flood).await.0.scan_limit_reached);
    }

    #[tokio::test]
    async fn a_document_stays_whole_and_a_broken_one_is_a_text() {
        let document = Treatment { document: true, ..treatment() };
        let (out, _) = collect(document.clone(), |mut out, _| {
            out.write_all(b"{\"a\": \"token=x\x5cu001b\"}").expect("write");
        })
        .await;
        assert_eq!((out.text.text.as_str(), out.keep), (r#"{"a": "token=[redacted]"}"#, None));
        let (out, _) = collect(document, |mut out, _| out.write_all(b"token=x {").expect("write")).await;
        assert_eq!((out.text.text.as_str(), out.keep), ("token=[redacted] {", Some(Keep::Start)));
    }

    #[tokio::test]
    async fn a_pipe_that_somebody_keeps_open_does_not_hold_the_result() {
        let (stdout, mut out) = io::pipe().expect("pipe");
        let (stderr, _err) = io::pipe().expect("pipe");
        out.write_all(b"a").expect("write");
        let pipes = Pipes { stdout: stdout.into(), stderr: stderr.into(), stdin: None };
        let (stopper, stop) = watch::channel(false);
        let task = tokio::spawn(step(pipes, treatment(), None, Arc::default(), stop));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stopper.send_replace(true);
        let (out, _) = task.await.expect("task").expect("pipes");
        assert!(out.text.text == "a" && out.closed_early);
    }

    #[tokio::test]
    async fn content_is_written_while_output_is_read() {
        let (stdin, feed) = io::pipe().expect("pipe");
        let (stdout, out) = io::pipe().expect("pipe");
        let (stderr, _) = io::pipe().expect("pipe");
        let pipes = Pipes { stdout: stdout.into(), stderr: stderr.into(), stdin: Some(feed.into()) };
        let copy = std::thread::spawn(move || io::copy(&mut &stdin, &mut &out).expect("copy"));
        let (_keep, stop) = watch::channel(false);
        let content: Arc<[u8]> = b"line\n".repeat(100_000).into();
        let (out, _) = step(pipes, treatment(), Some(content), Arc::default(), stop).await.expect("pipes");
        assert_eq!((out.bytes, copy.join().expect("copy")), (500_000, 500_000));
    }
}
