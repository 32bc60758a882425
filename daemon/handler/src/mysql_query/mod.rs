#![forbid(unsafe_code)]
//! `mysql_query`: one reading statement in a read-only transaction, over a connection of its own.
//!
//! Three barriers stand one behind the other: the statement is parsed and allow-listed by kind and
//! function; the transaction is read-only; and the account should be allowed nothing but reading.

pub mod account;
mod cancel;
mod classify;
mod functions;
mod login;
mod rows;
mod statement;
mod value;
mod wire;

use crate::answer::{Answer, json_length};
use crate::call::Call;
use crate::credential::Credential;
use crate::failure::{Failure, refuse};
use login::Login;
use rows::Limits;
use serde_json::json;
use std::time::Duration;
use wire::Connection;

/// Time for the network, beside the time of the statement on the server.
const MARGIN: Duration = Duration::from_secs(5);
/// Server error: a name is no system variable.
const UNKNOWN_VARIABLE: u16 = 1193;
/// How the server reads a statement while it is ours: literals and identifiers are quoted as the
/// classifier believes.
const SQL_MODE: &str = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let sql = classify::check(call.required("sql")?)?;
    let values = value::parameters(call.list("values")?)?;
    let time = Duration::from_millis(call.config.statement_time().0);
    let login = Login {
        server: call.config.server.clone().unwrap_or_default(),
        database: call.config.database.clone(),
        credential: Credential::receive(call)?,
        patience: time + MARGIN,
    };
    let mut connection = login.connect()?;
    let id = connection.thread;
    let login = cancel::on_termination(login, id)?;
    prepare_session(&mut connection, time, call.config.max_rows())?;

    let limits = Limits { rows: call.config.max_rows(), bytes: call.budget().saturating_sub(512) };
    let result = statement::run(&mut connection, sql, &values, &limits)
        .map_err(|error| error.of(&format!("the statement on {}", login.server)))?;
    let answer = json!({
        "columns": result.columns.iter().map(|column| json!({"name": column.name, "type": column.kind_name()})).collect::<Vec<_>>(),
        "row_count": result.rows.len(),
        "truncated": result.limit.is_some(),
        "limits_reached": result.limit.into_iter().collect::<Vec<_>>(),
        "rows": result.rows,
    });
    // Dropping the connection is enough to end it: the transaction has nothing to commit, and rows that
    // were not asked for are not drained.
    Ok(Answer::new(answer))
}

/// A session in which nothing is written and no statement takes longer than it may.
fn prepare_session(connection: &mut Connection, time: Duration, rows: u64) -> Result<(), Failure> {
    let failed = |error: wire::Broken| error.of("preparing the session");
    // One more than wanted shows that there are more.
    let select_limit = rows.saturating_add(1);
    connection
        .command(&format!("SET SESSION sql_mode = '{SQL_MODE}', sql_select_limit = {select_limit}"))
        .map_err(failed)?;
    let maria = format!("SET SESSION max_statement_time = {}", time.as_secs_f64());
    let mysql = format!("SET SESSION max_execution_time = {}", time.as_millis());
    match connection.command(&maria) {
        Err(wire::Broken::Server { code: UNKNOWN_VARIABLE, .. }) => connection.command(&mysql),
        other => other,
    }
    .map_err(failed)?;
    connection.command("START TRANSACTION READ ONLY").map_err(failed)
}

/// Refuses what cannot be sent in one packet.
fn check_length(what: &str, length: usize) -> Result<(), Failure> {
    if length < wire::LARGEST_SENT {
        Ok(())
    } else {
        refuse(format!("{what}: {length} bytes; at most {}", wire::LARGEST_SENT))
    }
}

/// Bytes of a row as JSON, with its comma.
fn cost(row: &serde_json::Value) -> usize {
    json_length(row) + 1
}
