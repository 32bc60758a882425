#![forbid(unsafe_code)]
//! `gloveport-handler NAME`: one call of one built-in handler.
//!
//! The helper starts it like any program, as `run_as` and inside the sandbox that its signed configuration
//! needs. Descriptors: 0 content, 3 configuration, 4 input, 5 credential. It prints one JSON value and exits
//! with 0, with 1 and `{"error": …}` for what it refused or could not do, or with 64 for a configuration
//! that it cannot work with. `gloveport-handler --check NAME CONFIGURATION` looks at a credential ([`check`]).

mod answer;
mod call;
mod check;
mod credential;
mod failure;
mod files;
mod http_get;
mod log_search;
mod mysql_query;
mod net;
mod read_file;
mod redis_command;
mod stamp;
mod write_file;

use answer::Answer;
use call::Call;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let max_output = call::max_output();
    match run(max_output) {
        Ok(answer) => answer.print(max_output),
        Err(failure) => failure.print(max_output),
    }
}

fn run(max_output: usize) -> Result<Answer, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = match words.as_slice() {
        ["--check", name, configuration] => return check::run(name, configuration),
        words => words.first().copied().unwrap_or_default(),
    };
    let handler = match name {
        "log_search" => log_search::run,
        "mysql_query" => mysql_query::run,
        "redis_command" => redis_command::run,
        "http_get" => http_get::run,
        "read_file" => read_file::run,
        "write_file" => write_file::run,
        other => {
            return Err(Failure::configuration(format!("`{other}` is not a handler of this program")));
        }
    };
    handler(&Call::receive(max_output)?)
}
