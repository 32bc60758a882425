#![forbid(unsafe_code)]
//! One parameter. One flat struct for all types: [`super::Catalog::check`] says which keys a type takes.

use super::action::is_default;
use serde::{Deserialize, Serialize};

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// UTF-8 text.
    String,
    /// A 64-bit integer.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One of the declared values.
    Enum,
    /// An absolute path under a declared root.
    Path,
    /// A list of one scalar type.
    List,
    /// Bytes that travel by stdin.
    Content,
}

impl ParamType {
    /// The word used in catalogues.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Enum => "enum",
            Self::Path => "path",
            Self::List => "list",
            Self::Content => "content",
        }
    }
}

/// A default as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `true` or `false`.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// Text.
    Text(String),
    /// A list of these.
    List(Vec<Literal>),
}

/// A parameter as declared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the keys are the language; the reference page describes them")]
pub struct Param {
    #[serde(rename = "type")]
    pub kind: ParamType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub optional: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Literal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub values: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub roots: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub must_exist: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_dash: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub secret: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Param>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
}

impl Param {
    /// Whether a call must give it.
    pub fn is_required(&self) -> bool {
        !self.optional && self.default.is_none()
    }
}
