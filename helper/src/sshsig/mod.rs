#![forbid(unsafe_code)]
//! Verifies SSHSIG signatures, as `ssh-keygen -Y sign` makes them (PROTOCOL.sshsig and PROTOCOL.u2f of OpenSSH).
//!
//! Only Ed25519 counts, from a file or from a security key. Every field has exactly one accepted form, and
//! nothing may follow at any level: a signature is either the one that was made or none.

pub mod base64;
mod key;

pub use key::{KeyError, PublicKey};

use crate::signers::Signer;
use ed25519_compact::Signature;
use key::{Fields, string};
use std::fmt;

/// The namespace of catalogues: a signature made for anything else does not count.
pub const NAMESPACE: &str = "gloveport-catalog";
/// Largest signature file, bytes: one of ours has about 300, a security key's application may be long.
pub const LIMIT: usize = 8 * 1024;

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;
/// Bit of a security key's flags: somebody touched it.
const USER_PRESENT: u8 = 0x01;

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigError {
    /// Not an armoured SSH signature, or more than one.
    Armour,
    /// A field is missing, too long, of another value than it must have, or followed by something.
    Form,
    /// Made for another purpose.
    Namespace,
    /// The hash is neither `sha512` nor `sha256`.
    Hash,
    /// A kind of key that does not count, or a signature of another kind than its key.
    Algorithm,
    /// The key is none.
    Key(KeyError),
    /// The key is not among the trusted signers.
    Unknown,
    /// Nobody touched the security key.
    NotPresent,
    /// The signature is not of these bytes.
    Mismatch,
}

impl fmt::Display for SigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Armour => {
                f.write_str("it is not one armoured SSH signature (ssh-keygen -Y sign makes one)")
            }
            Self::Form => f.write_str("it is not well-formed"),
            Self::Namespace => {
                write!(f, "it was made for another purpose: sign with ssh-keygen -Y sign -n {NAMESPACE}")
            }
            Self::Hash => f.write_str("its hash is neither sha512 nor sha256"),
            Self::Algorithm => f.write_str("only ed25519 and sk-ed25519 keys count"),
            Self::Key(error) => write!(f, "its key is not valid: {error}"),
            Self::Unknown => f.write_str("its key is not in trusted_signers"),
            Self::NotPresent => f.write_str("the security key signed without being touched"),
            Self::Mismatch => f.write_str("it is not the signature of these bytes"),
        }
    }
}

impl std::error::Error for SigError {}

/// Verifies that one of the signers signed exactly these bytes for the namespace, and says which.
///
/// # Errors
/// The first thing that is not so.
pub fn verify<'s>(
    message: &[u8],
    armoured: &[u8],
    namespace: &str,
    signers: &'s [Signer],
) -> Result<&'s Signer, SigError> {
    let blob = unarmour(armoured).ok_or(SigError::Armour)?;
    let claim = Claim::read(&blob)?;
    if claim.namespace != namespace.as_bytes() {
        return Err(SigError::Namespace);
    }
    let key = PublicKey::from_blob(claim.key).map_err(|error| match error {
        KeyError::Kind => SigError::Algorithm,
        error => SigError::Key(error),
    })?;
    let signer = signers.iter().find(|signer| signer.key == key).ok_or(SigError::Unknown)?;
    let hash = match claim.hash {
        b"sha512" => hmac_sha512::Hash::hash(message).to_vec(),
        b"sha256" => hmac_sha256::Hash::hash(message).to_vec(),
        _ => return Err(SigError::Hash),
    };
    let mut signed = MAGIC.to_vec();
    for field in [claim.namespace, b"", claim.hash, &hash] {
        string(&mut signed, field);
    }
    verify_with(&signer.key, claim.signature, signed)?;
    Ok(signer)
}

/// The fields of a signature, in their order.
struct Claim<'b> {
    key: &'b [u8],
    namespace: &'b [u8],
    hash: &'b [u8],
    signature: &'b [u8],
}

impl<'b> Claim<'b> {
    fn read(blob: &'b [u8]) -> Result<Self, SigError> {
        let body = blob.strip_prefix(MAGIC).ok_or(SigError::Form)?;
        let mut fields = Fields::new(body);
        if fields.number() != Some(VERSION) {
            return Err(SigError::Form);
        }
        let mut next = || fields.string().ok_or(SigError::Form);
        let (key, namespace, reserved) = (next()?, next()?, next()?);
        let (hash, signature) = (next()?, next()?);
        // What is reserved must be ignored, says the protocol; what ssh-keygen writes there is nothing,
        // and nothing else is needed.
        if !reserved.is_empty() || !fields.at_end() {
            return Err(SigError::Form);
        }
        Ok(Self { key, namespace, hash, signature })
    }
}

/// Verifies the innermost signature over `signed`.
fn verify_with(key: &PublicKey, signature: &[u8], signed: Vec<u8>) -> Result<(), SigError> {
    let mut fields = Fields::new(signature);
    if fields.string().ok_or(SigError::Form)? != key.kind().as_bytes() {
        return Err(SigError::Algorithm);
    }
    let bytes = fields.string().ok_or(SigError::Form)?;
    let signature = Signature::from_slice(bytes).map_err(|_| SigError::Form)?;
    let signed = match key.application() {
        None => signed,
        Some(application) => {
            let flags = fields.byte().ok_or(SigError::Form)?;
            let counter = fields.number().ok_or(SigError::Form)?;
            if flags & USER_PRESENT == 0 {
                return Err(SigError::NotPresent);
            }
            let mut by_device = hmac_sha256::Hash::hash(application).to_vec();
            by_device.push(flags);
            by_device.extend(counter.to_be_bytes());
            by_device.extend(hmac_sha256::Hash::hash(&signed));
            by_device
        }
    };
    if !fields.at_end() {
        return Err(SigError::Form);
    }
    key.point().verify(signed, &signature).map_err(|_| SigError::Mismatch)
}

/// The bytes within the armour: full lines of base64 and nothing before or after.
fn unarmour(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= LIMIT)?;
    let body = text.strip_prefix(BEGIN)?.strip_prefix('\n')?;
    let body = body.strip_suffix('\n').unwrap_or(body).strip_suffix(END)?.strip_suffix('\n')?;
    let lines: Vec<&str> = body.split('\n').collect();
    if lines.iter().any(|line| line.is_empty() || line.len() > 76) {
        return None;
    }
    base64::decode(lines.concat().as_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
