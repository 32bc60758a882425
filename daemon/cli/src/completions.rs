#![forbid(unsafe_code)]
//! The completions of the shells, made from the command line as it is defined. They are committed, for the
//! packages and for whoever reads; this test compares them, and writes them anew with
//! `GLOVEPORT_GOLDEN=write`.

use crate::Cli;
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use std::fs;
use std::path::Path;

#[test]
fn the_completions_are_those_of_this_command_line() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/completions");
    let write = std::env::var_os("GLOVEPORT_GOLDEN").is_some_and(|mode| mode == "write");
    for (shell, name) in
        [(Shell::Bash, "gloveport"), (Shell::Zsh, "_gloveport"), (Shell::Fish, "gloveport.fish")]
    {
        let file = directory.join(name);
        let mut made = Vec::new();
        generate(shell, &mut Cli::command(), "gloveport", &mut made);
        if write {
            fs::write(&file, &made).expect("writing a completion");
        }
        let committed = fs::read(&file).unwrap_or_default();
        assert!(
            committed == made,
            "{name} is not up to date: GLOVEPORT_GOLDEN=write cargo test -p gloveport-cli completions"
        );
    }
}
