#![forbid(unsafe_code)]
//! JSON as this server accepts it: one document, no key twice, bounded in depth and in number of values.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Most values of one document. A value takes about thirty times the memory of its shortest text (`0,`), so
/// the size of the body alone would bound the memory badly. The largest call that the contract accepts (128
/// arguments, each a list of 1024) still fits.
const MAX_VALUES: u32 = 200_000;

/// Why a body is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// Not JSON, not UTF-8, or nested deeper than 127 levels.
    Syntax(String),
    /// JSON that this server does not take: a key that stands twice, too many values.
    Refused(String),
}

/// Reads one document.
///
/// The depth is bounded by serde_json itself (128 levels), whatever the document's length.
///
/// # Errors
/// Where the text stops being a document.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let left = Cell::new(MAX_VALUES);
    Strict(&left).deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value)).map_err(
        |error| match error.classify() {
            serde_json::error::Category::Data => JsonError::Refused(error.to_string()),
            _ => JsonError::Syntax(error.to_string()),
        },
    )
}

/// Reads any value and counts down what is left of [`MAX_VALUES`].
#[derive(Clone, Copy)]
struct Strict<'a>(&'a Cell<u32>);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.0.get().checked_sub(1).ok_or_else(|| {
            D::Error::custom(format_args!("the document holds more than {MAX_VALUES} values"))
        })?;
        self.0.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                let shown: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!("the key {shown:?} stands twice in one object")));
            }
            let value = map.next_value_seed(self)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

/// What a value is, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        // An integer beyond 64 bits is read as one, too.
        Value::Number(number) if number.is_f64() => {
            "a number with a fraction, an exponent or more than 64 bits"
        }
        Value::Number(_) => "an integer",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plain_document_is_read_as_it_stands() {
        let text = r#"{"a":[1,-2,2.5,null,true,"x\u00e9"],"A":{"b":{}}}"#;
        assert_eq!(parse(text.as_bytes()), Ok(json!({"a": [1, -2, 2.5, null, true, "xé"], "A": {"b": {}}})));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"x":[{"b":1,"b":2}]}"#,
            r#"{"\u0061":1,"a":2}"#,
            r#"{"p":{"arguments":{"k":1,"k":1}}}"#,
        ] {
            assert!(matches!(parse(text.as_bytes()), Err(JsonError::Refused(_))), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_a_syntax_error() {
        let deep = "[".repeat(100_000);
        let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for bytes in [
            b"".as_slice(),
            b"{",
            b"{} {}",
            b"\xef\xbb\xbf{}",
            b"\"\x97\"",
            b"\"\\ud800\"",
            b"\"\\udc00 \"",
            b"{'a':1}",
            b"[1,]",
            b"NaN",
            b"01",
            deep.as_bytes(),
            nested.as_bytes(),
        ] {
            assert!(matches!(parse(bytes), Err(JsonError::Syntax(_))), "{bytes:?}");
        }
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        let many = format!("[{}0]", "0,".repeat(300_000));
        assert!(matches!(parse(many.as_bytes()), Err(JsonError::Refused(_))));
        let enough = format!("[{}0]", "0,".repeat(150_000));
        assert!(parse(enough.as_bytes()).is_ok());
    }
}
