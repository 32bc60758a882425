#![forbid(unsafe_code)]
//! What the helper hands over: the signed configuration, the caller's input, and the content.

use crate::failure::{Failure, refuse};
use gloveport_contract::catalog::BuiltinConfig;
use gloveport_contract::limits;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Read;

/// Largest configuration or input, bytes: a packet of the helper, with every byte escaped.
const DOCUMENT: u64 = 6 * limits::PACKET as u64;

/// The descriptors that the helper prepares.
const CONFIGURATION: u32 = 3;
const INPUT: u32 = 4;
const CREDENTIAL: u32 = 5;

/// One call.
pub struct Call {
    /// The action's signed configuration.
    pub config: BuiltinConfig,
    /// Bytes of output that the action lets out.
    pub max_output: usize,
    input: Map<String, Value>,
}

/// Bytes of output that the action lets out, as the helper says.
pub fn max_output() -> usize {
    let told = std::env::var("GLOVEPORT_MAX_OUTPUT").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(limits::OUTPUT_DEFAULT).min(limits::OUTPUT_MAX).try_into().unwrap_or(usize::MAX)
}

impl Call {
    /// Reads configuration and input from their descriptors.
    ///
    /// # Errors
    /// A descriptor that is missing or holds something else.
    pub fn receive(max_output: usize) -> Result<Self, Failure> {
        let config = serde_json::from_slice(&document(CONFIGURATION, "the configuration")?)
            .map_err(|error| Failure::configuration(format!("the configuration: {error}")))?;
        let input = serde_json::from_slice(&document(INPUT, "the input")?)
            .map_err(|error| Failure::configuration(format!("the input: {error}")))?;
        Ok(Self { config, input, max_output })
    }

    /// The credential file's bytes.
    ///
    /// # Errors
    /// The descriptor is missing.
    pub fn credential(&self) -> Result<Vec<u8>, Failure> {
        document(CREDENTIAL, "the credential")
    }

    /// Bytes of JSON that an answer may have: the tighter of `max_bytes` and what the action lets out.
    pub fn budget(&self) -> usize {
        usize::try_from(self.config.max_bytes()).unwrap_or(usize::MAX).min(self.max_output)
    }

    fn given(&self, name: &str) -> Option<&Value> {
        self.input.get(name).filter(|value| !value.is_null())
    }

    /// A text parameter.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.given(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => refuse(format!("{name}: must be a string")),
        }
    }

    /// A text parameter that must be given.
    ///
    /// # Errors
    /// It is missing, or something else.
    pub fn required(&self, name: &str) -> Result<&str, Failure> {
        self.text(name)?.ok_or_else(|| Failure::refused(format!("{name}: required")))
    }

    /// A number that cannot be negative.
    ///
    /// # Errors
    /// It is something else.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.given(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => refuse(format!("{name}: must be an integer that is not negative")),
            },
        }
    }

    /// A switch, off when it is not given.
    ///
    /// # Errors
    /// It is no boolean.
    pub fn switch(&self, name: &str) -> Result<bool, Failure> {
        match self.given(name) {
            None => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => refuse(format!("{name}: must be true or false")),
        }
    }

    /// A list of scalars, empty when it is not given.
    ///
    /// # Errors
    /// It is no list.
    pub fn list(&self, name: &str) -> Result<&[Value], Failure> {
        match self.given(name) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => refuse(format!("{name}: must be a list")),
        }
    }

    /// A list of texts, empty when it is not given.
    ///
    /// # Errors
    /// It is no list, or holds something else.
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, Failure> {
        let texts: Option<Vec<&str>> = self.list(name)?.iter().map(Value::as_str).collect();
        texts.ok_or_else(|| Failure::refused(format!("{name}: must be a list of strings")))
    }

    /// Reads the content from stdin, at most `most` bytes, and verifies it against the length and the
    /// SHA-256 that were declared, approved and recorded.
    ///
    /// # Errors
    /// There is none, it is longer, or it is not what was declared.
    pub fn content(&self, most: u64) -> Result<Vec<u8>, Failure> {
        let declared = self.given("content").and_then(Value::as_object);
        let length = declared.and_then(|content| content.get("length")).and_then(Value::as_u64);
        let digest = declared.and_then(|content| content.get("sha256")).and_then(Value::as_str);
        let (Some(length), Some(digest)) = (length, digest) else {
            return refuse("content: required");
        };
        if length > most {
            return refuse(format!("content: {length} bytes; this action takes at most {most}"));
        }
        let mut content = Vec::new();
        std::io::stdin()
            .take(length + 1)
            .read_to_end(&mut content)
            .map_err(|error| Failure::system("content", error))?;
        if content.len() as u64 != length {
            return refuse(format!(
                "content: not the {length} bytes that were declared; nothing was changed"
            ));
        }
        if hex(&hmac_sha256::Hash::hash(&content)) != digest {
            return refuse("content: its SHA-256 is not the one that was declared; nothing was changed");
        }
        Ok(content)
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what a descriptor holds. It is reached by name, because taking an inherited descriptor by number
/// is unsafe code; the helper passes sealed memory files, which can be opened again.
fn document(descriptor: u32, what: &str) -> Result<Vec<u8>, Failure> {
    let failed = |error| {
        Failure::configuration(format!("{what} cannot be read from descriptor {descriptor}: {error}"))
    };
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/self/fd/{descriptor}")).map_err(failed)?;
    file.take(DOCUMENT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > DOCUMENT {
        return Err(Failure::configuration(format!("{what} is longer than {DOCUMENT} bytes")));
    }
    Ok(bytes)
}
