#![forbid(unsafe_code)]
//! Argument values as they cross the boundary: flat, bounded, without a text that could be a number.

use bincode::{Decode, Encode};

/// One value of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Value {
    /// Given as `null`: counts as not given.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// UTF-8 text; bytes on the wire, so that a bad one is refused by name and not by the codec.
    Text(Vec<u8>),
    /// A list of scalars.
    List(Vec<Scalar>),
}

/// One element of a list.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Scalar {
    /// `true` or `false`.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// UTF-8 text.
    Text(Vec<u8>),
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Boolean(b) => Self::Boolean(b),
            Scalar::Integer(i) => Self::Integer(i),
            Scalar::Text(t) => Self::Text(t),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }
}

impl Value {
    /// What a reader would call it, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
        }
    }
}

/// A named argument of a call.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// Its value.
    pub value: Value,
}

// Arguments may be secret; what is printed by accident is the name and the kind.
impl std::fmt::Debug for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.value.kind())
    }
}

/// Content that travels by stdin: declared ahead, so that it can be approved, recorded and verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Content {
    /// Its length in bytes.
    pub length: u64,
    /// Its SHA-256 (FIPS 180-4).
    pub sha256: [u8; 32],
}
