#![forbid(unsafe_code)]
//! The command `gloveport`: what people use to try, prepare, steer and examine the two daemons, and what an
//! MCP client starts to speak over stdin and stdout.

mod accounts;
mod address;
mod approval;
mod audit;
mod base64;
mod call;
mod catalog;
mod catalogs;
mod client_config;
mod clock;
#[cfg(test)]
mod completions;
mod doctor;
mod failure;
mod files;
mod handover;
mod health;
mod host_key;
mod http;
mod init;
mod mcp;
mod out;
mod status;
mod stdio;
mod token;
mod tools;
mod up;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use failure::{Outcome, USAGE};
use gloveportd::paths::Paths;
use handover::Handover;
use std::path::PathBuf;
use std::process::ExitCode;

/// A port through which an AI agent can work on this host, and touch only what is inside.
#[derive(Debug, Parser)]
#[command(name = "gloveport", version, max_term_width = 100)]
struct Cli {
    /// Use this one directory in place of /etc/gloveport, /run/gloveport and /var/log/gloveport
    /// [env: GLOVEPORT_STATE]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    Init(init::InitArgs),
    Call(call::CallArgs),
    Tools(tools::ToolsArgs),
    /// Write, review and sign catalogues
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    Stdio(stdio::StdioArgs),
    ClientConfig(client_config::ClientConfigArgs),
    Doctor(doctor::DoctorArgs),
    Status(status::StatusArgs),
    Pending(approval::PendingArgs),
    Approve(approval::ApproveArgs),
    Deny(approval::DenyArgs),
    /// What happened on this host
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Who may call what
    #[command(subcommand)]
    Token(token::TokenCommand),
}

fn main() -> ExitCode {
    if let Some(args) = Handover::asked(std::env::args_os().skip(1)) {
        return end(handover::run(&args));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    end(run(&cli))
}

fn end(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            out::note(format!("gloveport: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Outcome {
    let paths = Paths::from_env_or(cli.state.clone());
    match &cli.command {
        Command::Up(args) => up::run(args, cli.state.clone()),
        Command::Init(args) => init::run(args, &paths),
        Command::Call(args) => call::run(args, &paths),
        Command::Tools(args) => tools::run(args, &paths),
        Command::Catalog(command) => catalog::run(command, &paths),
        Command::Token(command) => token::run(command, &paths),
        Command::Stdio(args) => stdio::run(args, &paths),
        Command::ClientConfig(args) => client_config::run(args, &paths),
        Command::Doctor(args) => doctor::run(args, &paths),
        Command::Status(args) => status::run(args, &paths),
        Command::Pending(args) => approval::pending(args, &paths),
        Command::Approve(args) => approval::approve(args, &paths),
        Command::Deny(args) => approval::deny(args, &paths),
        Command::Audit(command) => audit::run(command, &paths),
    }
}

/// Help and version are answers, anything else is a wrong call.
fn explain(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            out::text(&error.render().to_string());
            ExitCode::SUCCESS
        }
        _ => {
            out::note(error.render().to_string().trim_end());
            ExitCode::from(USAGE)
        }
    }
}
