#![forbid(unsafe_code)]
//! One prepared statement: the server itself takes only a single statement in this form, and values are
//! sent beside it, never in it.

use super::rows::{self, Limits, ResultSet};
use super::value::Parameter;
use super::wire::{Broken, Connection, Fields, is_end};

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// Prepares and executes a statement, and reads its rows.
///
/// # Errors
/// The server refuses it, or takes another number of values.
pub fn run(
    connection: &mut Connection,
    sql: &str,
    values: &[Parameter],
    limits: &Limits,
) -> Result<ResultSet, Broken> {
    connection.begin(&[&[PREPARE], sql.as_bytes()].concat())?;
    let packet = connection.receive()?;
    let mut fields = Fields(packet.strip_prefix(&[0]).ok_or(Broken::PROTOCOL)?);
    let head = (fields.u32(), fields.u16(), fields.u16());
    let (Some(id), Some(columns), Some(parameters)) = head else {
        return Err(Broken::PROTOCOL);
    };
    for list in [parameters, columns] {
        if list > 0 {
            while !is_end(&connection.receive()?) {}
        }
    }
    if usize::from(parameters) != values.len() {
        return Err(Broken::Server {
            code: 1210,
            message: format!(
                "the statement has {parameters} places for values, and {} were given",
                values.len()
            ),
        });
    }
    connection.begin(&execution(id, values))?;
    rows::receive(connection, limits)
}

fn execution(id: u32, values: &[Parameter]) -> Vec<u8> {
    let mut packet = vec![EXECUTE];
    packet.extend_from_slice(&id.to_le_bytes());
    packet.push(0);
    packet.extend_from_slice(&1_u32.to_le_bytes());
    if values.is_empty() {
        return packet;
    }
    for eight in values.chunks(8) {
        let absent = eight.iter().enumerate().filter(|(_, value)| matches!(value, Parameter::Null));
        packet.push(absent.fold(0, |bits, (at, _)| bits | 1 << at));
    }
    packet.push(1);
    values.iter().for_each(|value| packet.extend_from_slice(&value.kind().to_le_bytes()));
    values.iter().for_each(|value| value.put(&mut packet));
    packet
}
