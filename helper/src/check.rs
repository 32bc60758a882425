#![forbid(unsafe_code)]
//! `--check`: the verifier that decides what is in force, without privilege, for lint and CI.

use crate::load::{self, Bytes, LoadError, Loaded, SIGNERS_LIMIT};
use crate::paths::Paths;
use crate::sshsig;
use gloveport_contract::catalog::hex;
use gloveport_contract::limits;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// What is in force, by the helper's own rules about owners and modes.
    InForce,
    /// Files of anybody, named on the command line. Who owns them says nothing here: whoever may run this
    /// may also write them, and it only answers the question whether they fit together.
    Named {
        /// The catalogue; its signature lies beside it with `.sig` appended.
        catalog: PathBuf,
        /// The signers.
        signers: PathBuf,
    },
}

/// Checks, and gives the line for stdout: `ok DIGEST N actions`.
///
/// # Errors
/// The reason, for stderr.
pub fn run(files: &Files, paths: &Paths, same_user: bool) -> Result<String, LoadError> {
    let Loaded { catalog, digest, .. } = match files {
        Files::InForce => load::load(paths, same_user)?,
        Files::Named { catalog, signers } => named(catalog, signers)?,
    };
    Ok(format!("ok {} {} actions", hex(&digest), catalog.actions.len()))
}

fn named(catalog: &Path, signers: &Path) -> Result<Loaded, LoadError> {
    let mut signature = catalog.as_os_str().to_owned();
    signature.push(".sig");
    let signature = PathBuf::from(signature);
    load::verify(&Bytes {
        catalog_path: catalog,
        signature_path: &signature,
        signers_path: signers,
        signers: read(signers, SIGNERS_LIMIT)?,
        signature: read(&signature, sshsig::LIMIT)?,
        catalog: read(catalog, limits::CATALOG)?,
    })
}

fn read(path: &Path, limit: usize) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|error| LoadError::Named(path.to_owned(), error))?;
    if bytes.len() > limit { Err(LoadError::TooLarge(path.to_owned(), limit)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(catalog: &str, signers: &str) -> Result<String, String> {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check");
        let files = Files::Named { catalog: testdata.join(catalog), signers: testdata.join(signers) };
        run(&files, &Paths::installed(), false).map_err(|error| error.to_string())
    }

    #[test]
    fn files_that_fit_together_are_ok_whoever_owns_them() {
        let digest = "5a10cccf1e8a1e273f8f22fa9e5a1f40b3cd2310df1eafe6c1fc1ffed3a774ac";
        assert_eq!(check("catalog.json", "trusted_signers"), Ok(format!("ok {digest} 0 actions")));
    }

    #[test]
    fn a_missing_file_is_named() {
        assert!(check("absent.json", "trusted_signers").unwrap_err().contains("absent.json.sig"));
        assert!(check("catalog.json", "nobody").unwrap_err().contains("nobody"));
    }
}
