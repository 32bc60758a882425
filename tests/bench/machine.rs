//! Where and with what was measured.

use std::fs;
use std::process::Command;

/// The beginning of docs/benchmarks.md.
pub fn preface() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = processors.lines().filter_map(|line| line.strip_prefix("model name")).collect();
    let model = models.first().map_or("unknown", |model| model.trim_start_matches([' ', '\t', ':']));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let lines = [
        ("Date", first_line("date", &["+%F"])),
        ("Processor", format!("{} × {model}", models.len())),
        ("Kernel", first_line("uname", &["-sr"])),
        ("Load when the last line was measured", load.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        ("gloveport", env!("CARGO_PKG_VERSION").to_owned()),
        ("grep", first_line("grep", &["--version"])),
        ("ripgrep", first_line("rg", &["--version"])),
        ("sudo", first_line("sudo", &["--version"])),
        ("bubblewrap", first_line("bwrap", &["--version"])),
        ("ssh", first_line("ssh", &["-V"])),
    ];
    let lines: Vec<String> = lines.iter().map(|(name, value)| format!("| {name} | {value} |")).collect();
    format!("{PREFACE}\n| | |\n| --- | --- |\n{}\n", lines.join("\n"))
}

const PREFACE: &str = "\
# Benchmarks

`make bench` wrote this page. Each line is a ratio of two sides that were measured in one run, in turn, on the machine below; the
absolute figures are that machine's. A call is a whole one: HTTP, token, signed catalogue checked on both sides, sandbox, two audit
records, redaction. What it is compared with does less: it starts the program, or finds the text, and nothing else.
";

/// The first line that a program prints about itself.
fn first_line(program: &str, words: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(words).output() else { return "not here".to_owned() };
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}
