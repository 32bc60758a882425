#![forbid(unsafe_code)]
//! What is in force, as far as the daemon knows: the catalogue that the helper runs, and the tokens.
//!
//! The daemon shows a catalogue only when the helper says that its digest is in force: the helper verified
//! the signature, the daemon did not. Tokens are looked at afresh for every call, so that a revoked one is
//! worth nothing from that moment.

mod files;

use crate::helper::{self, HelperError, Peer, Status};
use crate::log::{self, Level};
use crate::paths::Paths;
use files::Stamp;
pub use files::run_as_uids;
use gloveport_contract::catalog::Catalog;
use gloveport_contract::packet::Layer;
use gloveport_contract::token::Tokens;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often the files are looked at between calls.
const TICK: Duration = Duration::from_millis(250);
/// How often the helper is asked while everything agrees.
const CALM: Duration = Duration::from_secs(5);
/// How often it is asked while it has no catalogue, or another one than lies here.
const UNEASY: Duration = Duration::from_secs(1);
/// How long it is asked at every tick after `catalog.json` has changed: it will reload soon.
const EAGER: Duration = Duration::from_secs(5);

/// Everything that a call is judged by, at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The catalogue in force, or why there is none.
    pub catalog: Result<Arc<Catalog>, String>,
    /// Who may call what. Empty where the file cannot be read: nobody may call anything.
    pub tokens: Tokens,
    /// SHA-256 of the catalogue in force.
    pub digest: Option<[u8; 32]>,
    /// Why a newer catalogue was not taken, where an older one stays in force.
    pub rejected: Option<String>,
    /// Actions that this host cannot run, with the reason.
    pub unsupported: BTreeMap<String, String>,
    /// The kernel layers that the helper found.
    pub layers: Vec<Layer>,
    /// The uids that actions run as: none of them may call.
    pub run_as: BTreeSet<u32>,
    /// Rises with every change.
    pub generation: u64,
}

/// The policy in force, kept up to date. Cheap to clone.
#[derive(Clone)]
pub struct Policy(Arc<Inner>);

struct Inner {
    paths: Paths,
    peer: Peer,
    state: Mutex<State>,
    /// One refresh at a time: each costs the helper a connection.
    refreshing: tokio::sync::Mutex<()>,
    changed: watch::Sender<u64>,
}

struct State {
    snapshot: Arc<Snapshot>,
    tokens_stamp: Option<Stamp>,
}

impl Policy {
    /// A policy without a catalogue yet; [`Policy::keep_current`] brings it.
    pub fn new(paths: Paths, peer: Peer) -> Self {
        let snapshot = Snapshot {
            catalog: Err("the helper has not been asked yet".into()),
            tokens: Tokens::default(),
            digest: None,
            rejected: None,
            unsupported: BTreeMap::new(),
            layers: Vec::new(),
            run_as: BTreeSet::new(),
            generation: 0,
        };
        let policy = Self(Arc::new(Inner {
            paths,
            peer,
            state: Mutex::new(State { snapshot: Arc::new(snapshot), tokens_stamp: None }),
            refreshing: tokio::sync::Mutex::new(()),
            changed: watch::Sender::new(0),
        }));
        policy.snapshot();
        policy
    }

    /// Whether anybody could call with a token, before there is a policy.
    ///
    /// # Errors
    /// The file and what is wrong with it.
    pub fn has_tokens(paths: &Paths) -> Result<bool, String> {
        files::tokens(&paths.tokens).map(|tokens| !tokens.tokens.is_empty())
    }

    /// What is in force now. The tokens are re-read if their file has changed since.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let path = &self.0.paths.tokens;
        let stamp = Stamp::of(path);
        let mut state = self.state();
        if stamp != state.tokens_stamp {
            let tokens = match files::tokens(path) {
                Ok(tokens) => {
                    state.tokens_stamp = stamp;
                    tokens
                }
                // Tried again with the next call: it may only have been a lack of descriptors.
                Err(problem) => {
                    state.tokens_stamp = None;
                    if state.snapshot.tokens != Tokens::default() {
                        log::write(Level::Error, format_args!("{problem}. Until then no token is accepted"));
                    }
                    Tokens::default()
                }
            };
            if tokens != state.snapshot.tokens {
                let next = Snapshot { tokens, ..Snapshot::clone(&state.snapshot) };
                self.publish(&mut state, next);
            }
        }
        state.snapshot.clone()
    }

    /// Sees the generation whenever something has changed.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// Asks the helper what is in force, and loads that catalogue if it is another one.
    ///
    /// # Errors
    /// The helper could not be asked; what was known stays known.
    pub async fn refresh(&self) -> Result<(), HelperError> {
        let _one = self.0.refreshing.lock().await;
        let status = helper::status(&self.0.paths.helper_socket, self.0.peer).await;
        let next = match &status {
            Ok(status) => self.judge(status).await,
            Err(error) => self.without_helper(error),
        };
        let mut state = self.state();
        let old = &state.snapshot;
        let same_catalog = same_catalog(&next.catalog, &old.catalog);
        let same = same_catalog
            && next.digest == old.digest
            && next.rejected == old.rejected
            && next.unsupported == old.unsupported
            && next.layers == old.layers;
        if !same {
            match &next.catalog {
                _ if same_catalog => {}
                Ok(catalog) => {
                    log::write(
                        Level::Info,
                        format_args!("a catalogue of {} actions is in force", catalog.actions.len()),
                    );
                }
                Err(problem) => log::write(Level::Warning, format_args!("no catalogue: {problem}")),
            }
            if let Some(reason) = next.rejected.as_ref().filter(|_| next.rejected != old.rejected) {
                log::write(Level::Warning, format_args!("an older catalogue stays in force: {reason}"));
            }
            // The tokens may have changed while the helper was asked.
            let next = Snapshot { tokens: old.tokens.clone(), ..next };
            self.publish(&mut state, next);
        }
        status.map(|_| ())
    }

    /// Follows files and helper for as long as the daemon lives.
    pub async fn keep_current(&self) {
        let mut stamp = Stamp::of(&self.0.paths.catalog);
        let mut eager_until = Instant::now();
        loop {
            let pause = match self.refresh().await {
                Err(_) => TICK,
                Ok(()) if self.snapshot().catalog.is_err() => UNEASY,
                Ok(()) => CALM,
            };
            let next = Instant::now() + pause;
            loop {
                tokio::time::sleep(TICK).await;
                // Also announces tokens that came or went while nobody called.
                self.snapshot();
                let now = Stamp::of(&self.0.paths.catalog);
                if now != stamp {
                    stamp = now;
                    eager_until = Instant::now() + EAGER;
                }
                if Instant::now() >= next || Instant::now() < eager_until {
                    break;
                }
            }
        }
    }

    async fn judge(&self, status: &Status) -> Snapshot {
        let old = Snapshot::clone(&self.state().snapshot);
        let catalog = match status.digest {
            None => Err(status.reason.clone().unwrap_or_else(|| {
                "the helper has none. Build and sign one: gloveport catalog build, gloveport catalog sign"
                    .to_owned()
            })),
            Some(digest) if old.digest == Some(digest) && old.catalog.is_ok() => old.catalog.clone(),
            Some(digest) => {
                let paths = self.0.paths.clone();
                // A large catalogue takes a second to parse; other calls go on meanwhile.
                tokio::task::spawn_blocking(move || files::catalog(&paths, digest))
                    .await
                    .unwrap_or_else(|_| Err("loading it was interrupted".into()))
                    .map(Arc::new)
            }
        };
        let run_as = match &catalog {
            _ if same_catalog(&catalog, &old.catalog) => old.run_as,
            Ok(catalog) => run_as_uids(catalog),
            Err(_) => BTreeSet::new(),
        };
        let unsupported =
            status.unsupported.iter().map(|entry| (entry.action.clone(), entry.reason.clone())).collect();
        let rejected = status.reason.clone().filter(|_| status.digest.is_some());
        let layers = status.layers.clone();
        Snapshot { catalog, digest: status.digest, rejected, unsupported, layers, run_as, ..old }
    }

    /// A helper that is away for a moment changes nothing: calls say so themselves.
    fn without_helper(&self, error: &HelperError) -> Snapshot {
        let old = Snapshot::clone(&self.state().snapshot);
        match old.catalog {
            Ok(_) => old,
            Err(_) => Snapshot { catalog: Err(error.to_string()), ..old },
        }
    }

    fn publish(&self, state: &mut State, mut next: Snapshot) {
        next.generation = state.snapshot.generation + 1;
        self.0.changed.send_replace(next.generation);
        state.snapshot = Arc::new(next);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held, and a snapshot is replaced whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A catalogue is loaded once per digest, so comparing pointers is enough (and costs nothing).
fn same_catalog(a: &Result<Arc<Catalog>, String>, b: &Result<Arc<Catalog>, String>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TOKEN: &str = r#"{"tokens": [{"name": "a", "id": "1", "via": ["header"],
        "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "scope": {"allow": ["*"], "max_risk": "read"}}], "local_users": []}"#;

    #[test]
    fn a_token_counts_from_the_moment_it_is_written_to_the_moment_it_is_gone() {
        let dir = std::env::temp_dir().join(format!("gloveport-policy-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("directory");
        let paths = Paths::for_state(&dir);
        let policy = Policy::new(paths.clone(), Peer::Root);
        let count = || policy.snapshot().tokens.tokens.len();
        let replace = |text: &str| {
            fs::write(dir.join("new"), text).expect("write");
            fs::rename(dir.join("new"), &paths.tokens).expect("rename");
        };
        assert_eq!((count(), Policy::has_tokens(&paths)), (0, Ok(false)));
        replace(TOKEN);
        assert_eq!((count(), Policy::has_tokens(&paths)), (1, Ok(true)));
        let generation = policy.snapshot().generation;
        replace(&TOKEN.replace("\"id\"", "\"idd\""));
        assert_eq!(count(), 0, "a file that cannot be understood permits nothing");
        assert!(Policy::has_tokens(&paths).expect_err("broken").contains("tokens.json"));
        replace(TOKEN);
        assert_eq!(count(), 1);
        fs::remove_file(&paths.tokens).expect("remove");
        assert_eq!(count(), 0);
        assert_eq!(policy.snapshot().generation, generation + 3);
        fs::remove_dir_all(&dir).expect("clean up");
    }
}
