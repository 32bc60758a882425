#![forbid(unsafe_code)]
//! Loads the catalogue: one reading, verified before it is parsed.

use crate::actions::Actions;
use crate::paths::Paths;
use crate::signers::{self, SignersError};
use crate::sshsig::{self, NAMESPACE, SigError};
use crate::trusted_file::{self, TrustedFileError};
use gloveport_contract::catalog::{Catalog, CatalogError};
use gloveport_contract::limits;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

/// Largest `trusted_signers`, bytes: some thousand keys.
pub const SIGNERS_LIMIT: usize = 1024 * 1024;

/// A catalogue that somebody trusted has signed and that means something.
#[derive(Debug)]
pub struct Loaded {
    /// The catalogue.
    pub catalog: Catalog,
    /// Its actions, unread.
    pub actions: Actions,
    /// SHA-256 of its file's bytes.
    pub digest: [u8; 32],
    /// Who signed it.
    pub signer: String,
}

/// Why there is no catalogue.
#[derive(Debug)]
pub enum LoadError {
    /// A file cannot be read, or is not trusted.
    File(TrustedFileError),
    /// The same, for a file that was named on the command line.
    Named(PathBuf, std::io::Error),
    /// A file that was named on the command line is too large; the limit in bytes.
    TooLarge(PathBuf, usize),
    /// The signers are no text.
    SignersText(PathBuf, Utf8Error),
    /// The signers are not understood.
    Signers(PathBuf, SignersError),
    /// There is no signer.
    NoSigner(PathBuf),
    /// The signature does not count.
    Signature(PathBuf, SigError),
    /// It is signed, and no JSON of the right shape; the message names line and column.
    Malformed(PathBuf, serde_json::Error),
    /// It is signed, and means nothing.
    Meaning(PathBuf, CatalogError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Named(path, error) => write!(f, "{}: {error}", path.display()),
            Self::TooLarge(path, limit) => write!(f, "{} is larger than {limit} bytes", path.display()),
            Self::SignersText(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Signers(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoSigner(path) => {
                write!(f, "{} holds no key: put the public keys of your reviewers there", path.display())
            }
            Self::Signature(path, error) => {
                write!(f, "the signature {} does not count: {error}", path.display())
            }
            Self::Malformed(path, error) => {
                write!(f, "{}: {error}; build it with gloveport catalog build", path.display())
            }
            Self::Meaning(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for LoadError {}

/// The bytes that a catalogue is made of, each read once.
pub struct Bytes<'a> {
    /// Its paths, for messages.
    pub catalog_path: &'a Path,
    /// The path of the signature.
    pub signature_path: &'a Path,
    /// The path of the signers.
    pub signers_path: &'a Path,
    /// The catalogue.
    pub catalog: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
    /// The signers.
    pub signers: Vec<u8>,
}

/// Loads the catalogue in force.
///
/// # Errors
/// A file is not trusted, nobody trusted has signed it, or it means nothing.
pub fn load(paths: &Paths, same_user: bool) -> Result<Loaded, LoadError> {
    let read = |path, limit| trusted_file::read(path, limit, same_user).map_err(LoadError::File);
    verify(&Bytes {
        catalog_path: &paths.catalog,
        signature_path: &paths.signature,
        signers_path: &paths.trusted_signers,
        signers: read(&paths.trusted_signers, SIGNERS_LIMIT)?,
        signature: read(&paths.signature, sshsig::LIMIT)?,
        catalog: read(&paths.catalog, limits::CATALOG)?,
    })
}

/// Verifies the signature over exactly these bytes, and only then looks into them.
///
/// # Errors
/// Nobody trusted has signed them, or they mean nothing.
pub fn verify(bytes: &Bytes<'_>) -> Result<Loaded, LoadError> {
    let signers_path = || bytes.signers_path.to_owned();
    let catalog_path = || bytes.catalog_path.to_owned();
    let text =
        std::str::from_utf8(&bytes.signers).map_err(|error| LoadError::SignersText(signers_path(), error))?;
    let signers = signers::parse(text).map_err(|error| LoadError::Signers(signers_path(), error))?;
    if signers.is_empty() {
        return Err(LoadError::NoSigner(signers_path()));
    }
    let signer = sshsig::verify(&bytes.catalog, &bytes.signature, NAMESPACE, &signers)
        .map_err(|error| LoadError::Signature(bytes.signature_path.to_owned(), error))?;
    let catalog: Catalog = serde_json::from_slice(&bytes.catalog)
        .map_err(|error| LoadError::Malformed(catalog_path(), error))?;
    catalog.check().map_err(|error| LoadError::Meaning(catalog_path(), error))?;
    let actions = Actions::keep(&bytes.catalog, &catalog)
        .map_err(|error| LoadError::Malformed(catalog_path(), error))?;
    let digest = hmac_sha256::Hash::hash(&bytes.catalog);
    Ok(Loaded { catalog, actions, digest, signer: signer.principal.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sshsig::tests::{SIGNERS, sign};

    const EMPTY: &str = "{\"format\":1,\"actions\":[]}\n";

    fn verify_text(catalog: &str, signature: &str, signers: &str) -> Result<Loaded, LoadError> {
        verify(&Bytes {
            catalog_path: Path::new("/s/catalog.json"),
            signature_path: Path::new("/s/catalog.json.sig"),
            signers_path: Path::new("/s/trusted_signers"),
            catalog: catalog.into(),
            signature: signature.into(),
            signers: signers.into(),
        })
    }

    #[test]
    fn a_signed_catalogue_is_loaded_with_the_digest_of_its_bytes() {
        let loaded = verify_text(EMPTY, &sign(EMPTY.as_bytes()), SIGNERS).unwrap();
        assert_eq!(loaded.digest, hmac_sha256::Hash::hash(EMPTY.as_bytes()));
        assert_eq!((loaded.catalog.actions.len(), loaded.signer.as_str()), (0, "seven@example.com"));
    }

    #[test]
    fn what_is_not_signed_is_not_even_parsed() {
        let signature = sign(EMPTY.as_bytes());
        for catalog in ["{", "{\"format\":1,\"actions\":[]}"] {
            let error = verify_text(catalog, &signature, SIGNERS).unwrap_err();
            assert!(matches!(error, LoadError::Signature(_, SigError::Mismatch)), "{error}");
        }
    }

    #[test]
    fn a_signature_makes_no_sense_of_nonsense() {
        let load = |text: &str| verify_text(text, &sign(text.as_bytes()), SIGNERS).unwrap_err();
        for text in [
            "",
            "{",
            "{\"format\":1,\"actions\":[]} {}",
            "{\"format\":1,\"actions\":[],\"more\":1}",
            "{\"format\":1,\"format\":1,\"actions\":[]}",
            &"[".repeat(100_000),
        ] {
            assert!(matches!(load(text), LoadError::Malformed(..)));
        }
        assert!(matches!(load("{\"format\":2,\"actions\":[]}"), LoadError::Meaning(..)));
    }

    #[test]
    fn without_signers_nothing_counts() {
        let load = |signers| verify_text(EMPTY, &sign(EMPTY.as_bytes()), signers).unwrap_err();
        assert!(matches!(load("# nobody yet\n"), LoadError::NoSigner(_)));
        let error = load("a@b ssh-rsa AAAA\n").to_string();
        assert!(error.contains("/s/trusted_signers: line 1"), "{error}");
    }
}
