#![forbid(unsafe_code)]
//! The daemon's program.

use gloveportd::options::{self, Command, HELP};
use gloveportd::serve;
use std::io::Write;
use std::process::ExitCode;

/// Exit code of a wrong command line (sysexits.h).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let answer = match options::parse(std::env::args_os().skip(1)) {
        Ok(Command::Serve(options)) => {
            return match serve::serve(&options) {
                Ok(()) => ExitCode::SUCCESS,
                Err(problem) => fail(&problem, 1),
            };
        }
        Ok(Command::Help) => HELP.to_owned(),
        Ok(Command::Version) => format!("gloveportd {}\n", env!("CARGO_PKG_VERSION")),
        Err(problem) => return fail(&problem, USAGE),
    };
    match std::io::stdout().write_all(answer.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(problem: &str, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "gloveportd: {problem}");
    code.into()
}
