#![forbid(unsafe_code)]
//! The policy's files: has one changed, and what does it hold.

use crate::accounts;
use crate::paths::Paths;
use gloveport_contract::catalog::Catalog;
use gloveport_contract::limits;
use gloveport_contract::token::Tokens;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What changes with a file's content: the inode by replacing it, the rest by writing into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// `None` where the file cannot be seen.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self {
            inode: (meta.dev(), meta.ino()),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

/// Reads at most `limit` bytes.
fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!("larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The tokens. A file that does not exist holds none.
///
/// # Errors
/// The file and what is wrong with it.
pub(super) fn tokens(path: &Path) -> Result<Tokens, String> {
    let fail = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let bytes = match read(path, limits::TOKENS_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tokens::default()),
        Err(error) => return Err(fail(&error)),
    };
    let tokens: Tokens = serde_json::from_slice(&bytes).map_err(|error| fail(&error))?;
    tokens.check().map_err(|problem| fail(&problem))?;
    Ok(tokens)
}

/// The catalogue of that digest: the one in `catalog.json`, or an earlier one that the helper still runs.
///
/// # Errors
/// Why it cannot be shown.
pub(super) fn catalog(paths: &Paths, digest: [u8; 32]) -> Result<Catalog, String> {
    let earlier = paths.catalogs.join(hex(&digest)).join("catalog.json");
    for path in [&paths.catalog, &earlier] {
        let Ok(bytes) = read(path, limits::CATALOG) else { continue };
        if hmac_sha256::Hash::hash(&bytes) != digest {
            continue;
        }
        let catalog: Catalog =
            serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        catalog.check().map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(catalog);
    }
    Err(format!(
        "the helper runs the catalogue {}, and {} is another one or cannot be read here. Sign it, or reload \
         the helper (systemctl reload gloveport-helper)",
        hex(&digest),
        paths.catalog.display()
    ))
}

/// The uids that the catalogue's actions run as.
pub fn run_as_uids(catalog: &Catalog) -> BTreeSet<u32> {
    let accounts: BTreeSet<&str> = catalog.actions.iter().map(|action| action.run_as()).collect();
    accounts.into_iter().filter_map(accounts::uid_of).collect()
}

fn hex(digest: &[u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
