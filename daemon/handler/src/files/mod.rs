#![forbid(unsafe_code)]
//! Files under signed roots, reached by descriptor. What a path says is checked by its text; where it leads
//! is decided by the kernel (`RESOLVE_BENEATH`), so nothing that is swapped meanwhile leads outside.

mod open;
mod version;

pub use open::{directory, failed, look, never_waiting, place_of, regular};
pub use version::{ABSENT, version};

use crate::failure::{Failure, refuse};
use globset::{GlobBuilder, GlobMatcher};
use gloveport_contract::catalog::fixed_part;
use gloveport_contract::plan::{is_absolute_path, is_under};
use rustix::fs::ResolveFlags;

/// One signed root: a directory or file, a tree (`/home/ops/**`), or a glob.
pub struct Root {
    /// The leading directories that hold no wildcard.
    pub fixed: String,
    pattern: String,
    /// Absent for a tree: everything below `fixed` belongs to it.
    glob: Option<GlobMatcher>,
}

/// Compiles a glob in which `*` and `?` stay within a path component.
///
/// # Errors
/// It is no glob.
pub fn glob(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    Ok(GlobBuilder::new(pattern).literal_separator(true).backslash_escape(false).build()?.compile_matcher())
}

impl Root {
    fn new(pattern: &str) -> Result<Self, Failure> {
        let fixed = fixed_part(pattern).to_owned();
        let tree = pattern == fixed
            || pattern
                .strip_suffix("/**")
                .is_some_and(|root| root == fixed || (root.is_empty() && fixed == "/"));
        let glob = if tree {
            None
        } else {
            Some(glob(pattern).map_err(|error| Failure::configuration(format!("`{pattern}`: {error}")))?)
        };
        Ok(Self { fixed, pattern: pattern.to_owned(), glob })
    }

    /// Whether a path belongs to this root, by its text.
    pub fn covers(&self, path: &str) -> bool {
        match &self.glob {
            None => is_under(path, &self.fixed),
            Some(glob) => glob.is_match(path),
        }
    }

    /// How the kernel resolves paths below it. In a tree a link may lead elsewhere in the tree; where the
    /// glob decides about names, a link could change the name after it was matched.
    pub fn resolve(&self) -> ResolveFlags {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if self.glob.is_some() { beneath | ResolveFlags::NO_SYMLINKS } else { beneath }
    }
}

/// The signed roots of an action.
pub struct Roots(Vec<Root>);

impl Roots {
    /// Reads the roots of a configuration.
    ///
    /// # Errors
    /// One is no glob.
    pub fn new(patterns: &[String]) -> Result<Self, Failure> {
        patterns.iter().map(|pattern| Root::new(pattern)).collect::<Result<_, _>>().map(Self)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Root> {
        self.0.iter()
    }

    /// The first root to which a path belongs by its text.
    ///
    /// # Errors
    /// The path is not absolute and plain, or belongs to none.
    pub fn covering(&self, path: &str) -> Result<&Root, Failure> {
        if !is_absolute_path(path) {
            return refuse(format!(
                "path: `{}` must be absolute, without `.`, `..`, empty parts and trailing slash",
                crate::answer::prefix_of(path, 256)
            ));
        }
        self.0.iter().find(|root| root.covers(path)).ok_or_else(|| {
            let roots: Vec<&str> = self.0.iter().map(|root| root.pattern.as_str()).collect();
            Failure::refused(format!(
                "path: {path} is under none of the roots of this action: {}",
                roots.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, path: &str) -> bool {
        Root::new(pattern).unwrap().covers(path)
    }

    #[test]
    fn a_root_ends_at_a_component() {
        assert!(covers("/home/ops", "/home/ops/x") && covers("/home/ops/**", "/home/ops/a/b"));
        assert!(!covers("/home/ops", "/home/ops-evil") && !covers("/home/ops/**", "/home/ops-evil/x"));
        assert!(covers("/**", "/etc/hosts") && covers("/", "/etc/hosts"));
    }

    #[test]
    fn a_star_stays_within_a_component() {
        assert!(covers("/var/log/*.log", "/var/log/a.log") && !covers("/var/log/*.log", "/var/log/a/b.log"));
        assert!(
            covers("/home/*/logs/**", "/home/a/logs/b/c") && !covers("/home/*/logs/**", "/home/a/x/logs/b")
        );
        assert!(covers("/srv/{a,b}/*", "/srv/b/x") && !covers("/srv/{a,b}/*", "/srv/c/x"));
    }

    #[test]
    fn a_path_is_refused_by_its_text() {
        let roots = Roots::new(&["/tmp/**".to_owned()]).unwrap();
        for path in
            ["/tmp/../etc/passwd", "//etc/passwd", "tmp/x", "/tmp/a/", "/tmp/./a", "/tmp/\0", "/etc/passwd"]
        {
            assert!(roots.covering(path).is_err(), "{path}");
        }
        assert!(roots.covering("/tmp/a").is_ok());
    }
}
