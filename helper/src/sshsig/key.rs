#![forbid(unsafe_code)]
//! Public keys, and the fields that SSH's binary forms are made of (RFC 4251, section 5).

use std::fmt;

/// A key in a file.
pub(super) const ED25519: &str = "ssh-ed25519";
/// A key in a security key.
pub(super) const SK_ED25519: &str = "sk-ssh-ed25519@openssh.com";

/// An Ed25519 public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    point: ed25519_compact::PublicKey,
    /// Of a security key: what it was made for, usually `ssh:`.
    application: Option<Vec<u8>>,
}

/// Why bytes are no key that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// Of another kind.
    Kind,
    /// A field is missing, too long or followed by something.
    Form,
    /// Not a point of the curve in canonical form, or one that would accept signatures nobody made.
    Weak,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind => "it is of another kind than ed25519",
            Self::Form => "it is not well-formed",
            Self::Weak => "it is no point of the curve or a weak one",
        })
    }
}

impl std::error::Error for KeyError {}

impl PublicKey {
    /// Whether keys of that kind count.
    pub fn is_known(kind: &str) -> bool {
        kind == ED25519 || kind == SK_ED25519
    }

    /// Reads a key as SSH encodes it.
    ///
    /// # Errors
    /// It is of another kind, malformed or weak.
    pub fn from_blob(blob: &[u8]) -> Result<Self, KeyError> {
        let mut fields = Fields::new(blob);
        let kind = fields.string().ok_or(KeyError::Form)?;
        if kind != ED25519.as_bytes() && kind != SK_ED25519.as_bytes() {
            return Err(KeyError::Kind);
        }
        let bytes = fields.string().ok_or(KeyError::Form)?;
        let point = ed25519_compact::PublicKey::from_slice(bytes).map_err(|_| KeyError::Form)?;
        let application = if kind == ED25519.as_bytes() {
            None
        } else {
            Some(fields.string().ok_or(KeyError::Form)?.to_vec())
        };
        if !fields.at_end() {
            return Err(KeyError::Form);
        }
        point.validate().map_err(|_| KeyError::Weak)?;
        Ok(Self { point, application })
    }

    /// The word for its kind, which is also that of its signatures.
    pub fn kind(&self) -> &'static str {
        if self.application.is_some() { SK_ED25519 } else { ED25519 }
    }

    pub(super) fn application(&self) -> Option<&[u8]> {
        self.application.as_deref()
    }

    pub(super) fn point(&self) -> &ed25519_compact::PublicKey {
        &self.point
    }
}

/// Reads fields from the front of some bytes.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub(super) fn new(rest: &'b [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    pub(super) fn string(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Appends a string field. What we encode is short; a length that does not fit cannot be verified by anybody.
pub(super) fn string(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend_from_slice(bytes);
}
