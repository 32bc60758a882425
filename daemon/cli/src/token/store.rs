#![forbid(unsafe_code)]
//! The file of the tokens: read, changed under a lock, replaced as a whole.

use crate::failure::Failure;
use crate::{accounts, base64, files};
use gloveport_contract::catalog::Risk;
use gloveport_contract::limits;
use gloveport_contract::token::{self, Scope, Token, Tokens, Via};
use gloveportd::paths::Paths;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// Both halves read it, nobody else does: the digests are no secrets, the scopes are nobody's business.
const MODE: u32 = 0o640;
/// Bytes of randomness in a token.
const SECRET: usize = 32;
/// Bytes of randomness in an id.
const ID: usize = 4;

/// The tokens in force; none where there is no file.
///
/// # Errors
/// The file cannot be read, or is not what it should be.
pub fn read(paths: &Paths) -> Result<Tokens, Failure> {
    let path = &paths.tokens;
    let mut text = String::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Tokens::default()),
        Err(error) => return Err(files::denied("read", path, &error)),
        Ok(file) => file
            .take(limits::TOKENS_FILE as u64 + 1)
            .read_to_string(&mut text)
            .map_err(|error| files::denied("read", path, &error))?,
    };
    let wrong = |problem: String| {
        Failure::new(format!("{}: {problem}", path.display()))
            .remedy("put it right by hand, or move it away and add the tokens anew")
    };
    if text.len() > limits::TOKENS_FILE {
        return Err(wrong(format!("longer than {} bytes", limits::TOKENS_FILE)));
    }
    let tokens: Tokens = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    tokens.check().map_err(wrong)?;
    Ok(tokens)
}

/// Changes the tokens. Two commands at once do not lose each other's change.
///
/// # Errors
/// What `change` says, or what the file says.
pub fn edit<T>(paths: &Paths, change: impl FnOnce(&mut Tokens) -> Result<T, Failure>) -> Result<T, Failure> {
    let _lock = files::lock(&paths.config_dir)?;
    let mut tokens = read(paths)?;
    let result = change(&mut tokens)?;
    tokens.check().map_err(Failure::usage)?;
    let mut text = serde_json::to_string_pretty(&tokens)
        .map_err(|error| Failure::new(format!("cannot write tokens: {error}")))?;
    text.push('\n');
    if text.len() > limits::TOKENS_FILE {
        return Err(Failure::new(format!("{}: no room for another token", paths.tokens.display()))
            .remedy("revoke those that nobody uses: `gloveport token list`"));
    }
    files::replace(&paths.tokens, text.as_bytes(), MODE, group(paths))?;
    Ok(result)
}

/// The group that the daemon reads it by: as it was, else the daemon's own.
fn group(paths: &Paths) -> Option<u32> {
    fs::metadata(&paths.tokens).map(|file| file.gid()).ok().or_else(|| {
        // Somebody who cannot give files away keeps them.
        rustix::process::geteuid().is_root().then(|| accounts::group(accounts::DAEMON)).flatten()
    })
}

/// A new token and its secret, which is stored nowhere.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn mint(name: &str, via: Vec<Via>, scope: Scope) -> Result<(Token, String), Failure> {
    let secret = format!("{}{}", token::PREFIX, base64::encode(&random::<SECRET>()?, base64::URL));
    let id = random::<ID>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((Token { name: name.to_owned(), id, sha256: token::digest(&secret), via, scope }, secret))
}

/// A scope without any bound: what the operator of a try-out has.
pub fn everything() -> Scope {
    Scope {
        allow: vec!["*".into()],
        max_risk: Risk::Dangerous,
        expires: None,
        hours: None,
        per_minute: None,
        at_once: None,
    }
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Failure::new(format!("cannot read /dev/urandom: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(name: &str) -> Paths {
        let path = std::env::temp_dir().join(format!("gloveport-tokens-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        files::directory(&path, 0o755).unwrap();
        Paths::for_state(&path)
    }

    #[test]
    fn a_token_has_the_shape_that_is_promised_and_is_found_by_its_secret() {
        let (minted, secret) = mint("ci", vec![Via::Header], everything()).unwrap();
        assert_eq!(secret.len(), token::LENGTH);
        assert!(secret.starts_with(token::PREFIX));
        let tokens = Tokens { tokens: vec![minted], local_users: Vec::new() };
        assert_eq!(tokens.find(&secret).unwrap().name, "ci");
        tokens.check().unwrap();
    }

    #[test]
    fn an_edit_is_kept_and_a_bad_one_is_not() {
        let paths = paths("edit");
        let add = |name: &str| {
            let (minted, _) = mint(name, vec![Via::Header], everything()).unwrap();
            edit(&paths, |tokens| {
                tokens.tokens.push(minted);
                Ok(())
            })
        };
        add("one").unwrap();
        add("two").unwrap();
        assert!(add("one").is_err());
        assert!(add("bad name").is_err());
        let names: Vec<_> = read(&paths).unwrap().tokens.into_iter().map(|token| token.name).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(fs::metadata(&paths.tokens).unwrap().mode() & 0o777, 0o640);
        fs::remove_dir_all(&paths.config_dir).unwrap();
    }
}
