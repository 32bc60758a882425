#![forbid(unsafe_code)]
//! Values on their way in, as parameters, and out, as JSON with their types kept.

use super::wire::{Fields, put_string};
use crate::answer::{base64, text_or_base64};
use crate::failure::{Failure, refuse};
use serde_json::{Value, json};
use std::fmt::Write;

/// Largest integer that every JSON reader keeps exact.
const EXACT: i128 = (1 << 53) - 1;
/// The character set number of bytes that are no text.
const BINARY: u16 = 63;
/// Flags of a column.
const UNSIGNED: u16 = 0x20;

/// A bound parameter.
#[derive(Debug, PartialEq)]
pub enum Parameter {
    /// No value.
    Null,
    /// An integer or a boolean.
    Integer(i64),
    /// Text; the server converts it to what it is compared with.
    Text(String),
}

/// Takes the caller's values.
///
/// # Errors
/// One is neither text nor an integer, a boolean or null.
pub fn parameters(values: &[Value]) -> Result<Vec<Parameter>, Failure> {
    values
        .iter()
        .map(|value| match value {
            Value::Null => Ok(Parameter::Null),
            Value::Bool(on) => Ok(Parameter::Integer((*on).into())),
            Value::String(text) => {
                super::check_length("values", text.len())?;
                Ok(Parameter::Text(text.clone()))
            }
            other => match other.as_i64() {
                Some(number) => Ok(Parameter::Integer(number)),
                None => {
                    refuse("values: each is a string, an integer, a boolean or null; write 1.5 as \"1.5\"")
                }
            },
        })
        .collect()
}

impl Parameter {
    /// The protocol's number for its type.
    pub fn kind(&self) -> u16 {
        match self {
            Self::Null => kind::NULL.into(),
            Self::Integer(_) => kind::LONGLONG.into(),
            Self::Text(_) => kind::VAR_STRING.into(),
        }
    }

    /// Writes the value.
    pub fn put(&self, into: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Integer(number) => into.extend_from_slice(&number.to_le_bytes()),
            Self::Text(text) => put_string(into, text.as_bytes()),
        }
    }
}

mod kind {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const VAR_STRING: u8 = 253;
    pub const GEOMETRY: u8 = 255;
}

/// A column of a result.
pub struct Column {
    /// Its name, or its alias.
    pub name: String,
    kind: u8,
    charset: u16,
    flags: u16,
    decimals: u8,
}

impl Column {
    /// Reads a column's description.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let mut fields = Fields(packet);
        for _ in ["catalog", "schema", "table", "original table"] {
            fields.string()?;
        }
        let name = String::from_utf8_lossy(fields.string()?).into_owned();
        fields.string()?;
        fields.length()?;
        let charset = fields.u16()?;
        fields.u32()?;
        Some(Self { name, charset, kind: fields.u8()?, flags: fields.u16()?, decimals: fields.u8()? })
    }

    fn is_unsigned(&self) -> bool {
        self.flags & UNSIGNED != 0
    }

    fn is_binary(&self) -> bool {
        self.charset == BINARY
    }

    /// Its type in words.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            kind::DECIMAL | kind::NEWDECIMAL => "decimal",
            kind::TINY | kind::SHORT | kind::LONG | kind::LONGLONG | kind::INT24 => "integer",
            kind::FLOAT | kind::DOUBLE => "float",
            kind::NULL => "null",
            kind::TIMESTAMP => "timestamp",
            kind::DATE => "date",
            kind::TIME => "time",
            kind::DATETIME => "datetime",
            kind::YEAR => "year",
            kind::BIT => "bit",
            kind::JSON => "json",
            kind::GEOMETRY => "geometry",
            _ if self.is_binary() => "binary",
            _ => "text",
        }
    }

    /// Reads a value of this column out of a row.
    pub fn value(&self, row: &mut Fields<'_>) -> Option<Value> {
        let signed = |bits: u64, width: u32| {
            // The sign of a narrow integer is in its own highest bit.
            let shift = 64 - width;
            i128::from((bits << shift).cast_signed() >> shift)
        };
        let integer = |bits: u64, width: u32| {
            exact(if self.is_unsigned() { i128::from(bits) } else { signed(bits, width) })
        };
        Some(match self.kind {
            kind::TINY => integer(row.u8()?.into(), 8),
            kind::SHORT => integer(row.u16()?.into(), 16),
            kind::YEAR => row.u16()?.into(),
            kind::LONG | kind::INT24 => integer(row.u32()?.into(), 32),
            kind::LONGLONG => integer(row.u64()?, 64),
            // Shortest form of the four-byte number, not of its widening: 0.1, not 0.10000000149011612.
            kind::FLOAT => f32::from_bits(row.u32()?).to_string().parse::<f64>().ok()?.into(),
            kind::DOUBLE => f64::from_bits(row.u64()?).into(),
            kind::DATE | kind::DATETIME | kind::TIMESTAMP => self.date(row)?.into(),
            kind::TIME => self.time(row)?.into(),
            kind::NULL => Value::Null,
            kind::BIT | kind::GEOMETRY => json!({ "base64": base64(row.string()?) }),
            kind::DECIMAL | kind::NEWDECIMAL | kind::JSON => text_or_base64(row.string()?),
            _ if self.is_binary() => json!({ "base64": base64(row.string()?) }),
            _ => text_or_base64(row.string()?),
        })
    }

    fn date(&self, row: &mut Fields<'_>) -> Option<String> {
        let mut parts = Fields(row.string()?);
        let date = (parts.u16().unwrap_or(0), parts.u8().unwrap_or(0), parts.u8().unwrap_or(0));
        let mut text = format!("{:04}-{:02}-{:02}", date.0, date.1, date.2);
        if self.kind != kind::DATE {
            let clock = [parts.u8(), parts.u8(), parts.u8()].map(|part| part.unwrap_or(0));
            let [h, m, s] = clock;
            write!(text, " {h:02}:{m:02}:{s:02}{}", self.fraction(parts.u32())).ok()?;
        }
        Some(text)
    }

    fn time(&self, row: &mut Fields<'_>) -> Option<String> {
        let mut parts = Fields(row.string()?);
        let sign = if parts.u8().unwrap_or(0) == 1 { "-" } else { "" };
        let days = parts.u32().unwrap_or(0);
        let [h, m, s] = [parts.u8(), parts.u8(), parts.u8()].map(|part| part.unwrap_or(0));
        let hours = u64::from(days) * 24 + u64::from(h);
        Some(format!("{sign}{hours:02}:{m:02}:{s:02}{}", self.fraction(parts.u32())))
    }

    /// The digits that the column's type has behind the second.
    fn fraction(&self, micros: Option<u32>) -> String {
        let digits = usize::from(self.decimals).min(6);
        if digits == 0 {
            return String::new();
        }
        let all = format!(".{:06}", micros.unwrap_or(0));
        all.get(..=digits).unwrap_or(&all).to_owned()
    }
}

/// A number while every reader keeps it exact, else its digits as text.
fn exact(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(small) if (-EXACT..=EXACT).contains(&number) => small.into(),
        _ => number.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: u8, flags: u16, decimals: u8) -> Column {
        Column { name: String::new(), kind, charset: 45, flags, decimals }
    }

    #[test]
    fn integers_keep_sign_and_digits() {
        let read = |kind, flags, bytes: &[u8]| column(kind, flags, 0).value(&mut Fields(bytes)).unwrap();
        assert_eq!(read(kind::TINY, 0, &[0xff]), json!(-1));
        assert_eq!(read(kind::TINY, UNSIGNED, &[0xff]), json!(255));
        assert_eq!(read(kind::LONG, 0, &[0, 0, 0, 0x80]), json!(-2_147_483_648));
        assert_eq!(read(kind::LONGLONG, UNSIGNED, &[0xff; 8]), json!("18446744073709551615"));
        assert_eq!(read(kind::LONGLONG, 0, &[0xff; 8]), json!(-1));
        assert_eq!(read(kind::FLOAT, 0, &0.1_f32.to_le_bytes()), json!(0.1));
    }

    #[test]
    fn times_are_written_as_the_server_writes_them() {
        let read =
            |kind, decimals, bytes: &[u8]| column(kind, 0, decimals).value(&mut Fields(bytes)).unwrap();
        assert_eq!(read(kind::DATE, 0, b"\x04\xea\x07\x01\x02"), json!("2026-01-02"));
        assert_eq!(
            read(kind::DATETIME, 0, b"\x07\xea\x07\x01\x02\x03\x04\x05"),
            json!("2026-01-02 03:04:05")
        );
        assert_eq!(
            read(kind::DATETIME, 3, b"\x0b\xea\x07\x01\x02\x03\x04\x05\x20\xa1\x07\x00"),
            json!("2026-01-02 03:04:05.500")
        );
        assert_eq!(read(kind::DATETIME, 0, b"\x00"), json!("0000-00-00 00:00:00"));
        assert_eq!(read(kind::TIME, 0, b"\x08\x01\x01\x00\x00\x00\x02\x03\x04"), json!("-26:03:04"));
        assert_eq!(read(kind::TIME, 0, b"\x00"), json!("00:00:00"));
    }

    #[test]
    fn parameters_are_scalars() {
        let taken = parameters(&[json!("x"), json!(-1), json!(true), json!(null)]).unwrap();
        assert_eq!(
            taken,
            [Parameter::Text("x".into()), Parameter::Integer(-1), Parameter::Integer(1), Parameter::Null]
        );
        assert!(parameters(&[json!(1.5)]).is_err() && parameters(&[json!([1])]).is_err());
    }
}
