//! The table: each line says what was measured, on both sides, and what was aimed at.

use std::time::Duration;

/// The lines so far. Each is also printed as soon as it is known.
#[derive(Debug, Default)]
pub struct Table(Vec<Line>);

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// What is measured.
    pub what: String,
    /// gloveport's figure.
    pub own: String,
    /// Beside what.
    pub against: String,
    /// The figure of the other side.
    pub other: String,
    /// The one by the other.
    pub ratio: String,
    /// The aim.
    pub aim: &'static str,
    /// Whether it was reached; `None` where nothing was measured or aimed at.
    pub reached: Option<bool>,
}

impl Table {
    /// Adds a line.
    pub fn add(&mut self, line: Line) {
        println!("{}", line.row());
        self.0.push(line);
    }

    /// Says why something was not measured.
    pub fn skip(&mut self, what: &str, against: &str, why: &str) {
        self.add(Line {
            what: what.to_owned(),
            own: "–".to_owned(),
            against: against.to_owned(),
            other: format!("not measured: {why}"),
            ratio: "–".to_owned(),
            aim: "",
            reached: None,
        });
    }

    /// All of it, in Markdown.
    pub fn markdown(&self) -> String {
        let rows: Vec<String> = self.0.iter().map(Line::row).collect();
        format!("{HEAD}\n{}\n", rows.join("\n"))
    }
}

/// The head of the table.
pub const HEAD: &str =
    "| what | gloveport | beside | | ratio | aim | |\n| --- | --- | --- | --- | --- | --- | --- |";

impl Line {
    fn row(&self) -> String {
        let Self { what, own, against, other, ratio, aim, .. } = self;
        let reached = match self.reached {
            Some(true) => "reached",
            Some(false) => "**missed**",
            None => "",
        };
        format!("| {what} | {own} | {against} | {other} | {ratio} | {aim} | {reached} |")
    }
}

/// A time, in a unit that suits it.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.2} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// KiB, in a unit that suits it.
pub fn memory(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// How many times.
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2}×")
}
