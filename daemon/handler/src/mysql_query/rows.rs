#![forbid(unsafe_code)]
//! The rows of a result, as far as the limits go.

use super::value::Column;
use super::wire::{Broken, Connection, Fields, is_end, server_error};
use crate::net;
use serde_json::Value;

/// Most columns of a result; MariaDB's own limit is 4096.
const COLUMNS: u64 = 4096;
/// Bytes that a packet of a row has beside the values that are shown.
const ROW_FRAME: usize = 16 * 1024;

/// How far a result is read.
pub struct Limits {
    /// Rows.
    pub rows: u64,
    /// Bytes of JSON of all rows together.
    pub bytes: usize,
}

/// What was read.
pub struct ResultSet {
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Its rows, each a list in the order of the columns.
    pub rows: Vec<Value>,
    /// The limit that ended it, by the key of the configuration or the action.
    pub limit: Option<&'static str>,
}

/// Receives a result.
pub fn receive(connection: &mut Connection, limits: &Limits) -> Result<ResultSet, Broken> {
    let packet = connection.receive()?;
    let mut set = ResultSet { columns: Vec::new(), rows: Vec::new(), limit: None };
    // A packet that begins with 0 says that there are no columns at all.
    let count = Fields(&packet).length().filter(|count| *count <= COLUMNS).ok_or(Broken::PROTOCOL)?;
    if count == 0 {
        return Ok(set);
    }
    for _ in 0..count {
        let column = Column::read(&connection.receive()?).ok_or(Broken::PROTOCOL)?;
        set.columns.push(column);
    }
    if !is_end(&connection.receive()?) {
        return Err(Broken::PROTOCOL);
    }
    let names: usize = set.columns.iter().map(|column| column.name.len() * 2 + 48).sum();
    let mut room = limits.bytes.saturating_sub(names);
    loop {
        // A row that is longer than everything that may be shown is not read.
        let packet = match connection.receive_within(limits.bytes + ROW_FRAME) {
            Err(Broken::Wire(net::Broken::Large(_))) => {
                set.limit = Some("max_bytes");
                return Ok(set);
            }
            other => other?,
        };
        if is_end(&packet) {
            return Ok(set);
        }
        if let Some(error) = server_error(&packet) {
            return Err(error);
        }
        if set.rows.len() as u64 >= limits.rows {
            set.limit = Some("max_rows");
            return Ok(set);
        }
        let row = row(&set.columns, &packet).ok_or(Broken::PROTOCOL)?;
        match room.checked_sub(super::cost(&row)) {
            Some(rest) => room = rest,
            None => {
                set.limit = Some("max_bytes");
                return Ok(set);
            }
        }
        set.rows.push(row);
    }
}

/// Reads a row of the binary protocol: a bit for each column says whether it is NULL.
fn row(columns: &[Column], packet: &[u8]) -> Option<Value> {
    let mut fields = Fields(packet.strip_prefix(&[0])?);
    let nulls = fields.bytes((columns.len() + 9) / 8)?;
    let values = columns.iter().enumerate().map(|(index, column)| {
        let bit = index + 2;
        if nulls.get(bit / 8)? & (1 << (bit % 8)) == 0 {
            column.value(&mut fields)
        } else {
            Some(Value::Null)
        }
    });
    values.collect::<Option<Vec<_>>>().map(Value::Array)
}
