#![forbid(unsafe_code)]
//! Times and sizes as an operator writes them: `20s`, `256KB`. They stay readable in `catalog.json`.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A time in milliseconds, written `250ms`, `20s`, `5m` or `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

/// A size in bytes, written `512`, `256KB` (1000) or `256KiB` (1024), up to `GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
const SIZES: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("KB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

fn print(value: u64, units: &[(&str, u64)]) -> String {
    let best = units.iter().filter(|(_, f)| value != 0 && value.is_multiple_of(*f)).max_by_key(|(_, f)| *f);
    let (unit, factor) = best.copied().unwrap_or(units.first().copied().unwrap_or(("", 1)));
    format!("{}{unit}", value / factor)
}

macro_rules! unit {
    ($type:ident, $table:expr, $expects:literal) => {
        impl $type {
            /// Reads the written form; `None` when it is not one or does not fit into 64 bits.
            pub fn parse(text: &str) -> Option<Self> {
                parse(text, &$table).map(Self)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&print(self.0, &$table))
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expects)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        $type::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
                    }
                }
                d.deserialize_str(Text)
            }
        }
    };
}

unit!(Millis, TIMES, "a time such as 500ms, 20s, 5m or 1h");
unit!(Bytes, SIZES, "a size such as 512B, 256KB (1000) or 256KiB (1024)");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back_to_the_same_value() {
        for value in [0, 1, 999, 1000, 1024, 1500, 60_000, 90_000, 3_600_000, 1 << 30] {
            assert_eq!(Millis::parse(&Millis(value).to_string()), Some(Millis(value)));
            assert_eq!(Bytes::parse(&Bytes(value).to_string()), Some(Bytes(value)));
        }
    }

    #[test]
    fn nonsense_is_no_unit() {
        for text in
            ["", "s", "5", "5 s", "-5s", "1.5s", "5S", "99999999999999999999s", "18446744073709551615h"]
        {
            assert_eq!(Millis::parse(text), None, "{text}");
        }
        assert_eq!(Bytes::parse("512"), Some(Bytes(512)));
        for text in ["", "KB", "5kb", "5 KB", "18446744073709551615KiB"] {
            assert_eq!(Bytes::parse(text), None, "{text}");
        }
    }
}
