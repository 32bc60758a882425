#![forbid(unsafe_code)]
//! The daemon's program.

use gloveportd::log::{self, Level};
use gloveportd::options::{self, Command, HELP};
use gloveportd::serve::{self, End};
use std::io::Write;
use std::process::ExitCode;

/// Exit code of a wrong command line (sysexits.h).
const USAGE: u8 = 64;
/// Exit code of a daemon that wants to be started again, which is no failure (EX_TEMPFAIL; the unit names it).
const AGAIN: u8 = 75;

fn main() -> ExitCode {
    log::begin();
    let answer = match options::parse(std::env::args_os().skip(1)) {
        Ok(Command::Serve(options)) => {
            return match serve::serve(&options) {
                Ok(End::Told) => ExitCode::SUCCESS,
                Ok(End::FirstToken) => AGAIN.into(),
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
    // A mistake in the settings comes with the lines that it is in.
    problem.lines().for_each(|line| log::write(Level::Error, line));
    code.into()
}
