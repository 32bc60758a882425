#![forbid(unsafe_code)]
//! Which files a list of globs means, under signed roots.

use super::Report;
use crate::failure::{Failure, refuse};
use crate::files::{self, Root, Roots};
use globset::GlobMatcher;
use gloveport_contract::catalog::fixed_part;
use gloveport_contract::plan::{is_absolute_path, is_under};
use rustix::fs::{Dir, FileType};

/// Directory entries that one call looks at: a glob over a whole file system ends here.
const ENTRIES: usize = 200_000;
/// Directories below each other that `**` goes down.
const DEPTH: usize = 32;

/// A file to be searched.
pub struct Candidate<'r> {
    /// The root that covers it.
    pub root: &'r Root,
    /// Its absolute path.
    pub path: String,
    /// When it was last written, milliseconds since 1970.
    pub modified: i64,
    identity: (u64, u64),
}

/// Finds the files that the globs mean: absolute ones, or relative to each root.
///
/// # Errors
/// A glob is none, or lies under no root.
pub fn find<'r>(
    roots: &'r Roots,
    globs: &[&str],
    report: &mut Report,
) -> Result<Vec<Candidate<'r>>, Failure> {
    if globs.is_empty() {
        return refuse("paths: name at least one file or glob");
    }
    let mut walk = Walk { found: Vec::new(), entries: 0, report };
    for glob in globs {
        let mut within = false;
        for root in roots.iter() {
            let glob =
                if glob.starts_with('/') { (*glob).to_owned() } else { format!("{}/{glob}", root.fixed) };
            let glob = glob.strip_prefix('/').filter(|rest| rest.starts_with('/')).unwrap_or(&glob);
            within |= walk.glob(root, glob)?;
        }
        if !within {
            let known: Vec<&str> = roots.iter().map(|root| root.fixed.as_str()).collect();
            return refuse(format!(
                "paths: {glob} is under none of the roots of this action: {}",
                known.join(", ")
            ));
        }
    }
    Ok(walk.found)
}

struct Walk<'r, 'o> {
    found: Vec<Candidate<'r>>,
    entries: usize,
    report: &'o mut Report,
}

impl<'r> Walk<'r, '_> {
    /// Adds what a glob means under one root; false where it can mean nothing there.
    fn glob(&mut self, root: &'r Root, glob: &str) -> Result<bool, Failure> {
        if !is_absolute_path(glob) {
            return refuse(format!("paths: {glob} has `.`, `..`, empty parts or a trailing slash"));
        }
        let fixed = fixed_part(glob);
        if fixed == glob {
            let within = root.covers(glob);
            if within {
                self.file(root, glob.to_owned(), true);
            }
            return Ok(within);
        }
        let start = if is_under(fixed, &root.fixed) {
            fixed
        } else if is_under(&root.fixed, fixed) {
            root.fixed.as_str()
        } else {
            return Ok(false);
        };
        let matcher = files::glob(glob).map_err(|error| Failure::refused(format!("paths: {error}")))?;
        let depth = if glob.contains("**") {
            DEPTH
        } else {
            let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
            parts(glob).saturating_sub(parts(start))
        };
        self.directory(root, start, &matcher, depth);
        Ok(true)
    }

    fn directory(&mut self, root: &'r Root, path: &str, matcher: &GlobMatcher, depth: usize) {
        let listed = files::directory(root, path)
            .and_then(|directory| Dir::new(directory).map_err(|error| Failure::system(path, error)));
        let entries = match listed {
            Ok(entries) => entries,
            Err(failure) => return self.report.not_searched(path, failure.message()),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.report.not_searched(path, &error.to_string()),
            };
            // A name that is not UTF-8 cannot be told in JSON, nor matched by a glob that came in JSON.
            let Ok(name) = entry.file_name().to_str() else {
                self.report.not_searched(path, "a name in it is not UTF-8");
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES {
                self.report.limit("entries");
                return self
                    .report
                    .not_searched(path, "the rest of this directory: too many entries for one call");
            }
            let inner = if path == "/" { format!("/{name}") } else { format!("{path}/{name}") };
            match entry.file_type() {
                FileType::Directory if depth > 1 => self.directory(root, &inner, matcher, depth - 1),
                FileType::Directory => {}
                _ if matcher.is_match(&inner) && root.covers(&inner) => self.file(root, inner, false),
                _ => {}
            }
        }
    }

    /// Adds a file. What a glob met and is no file is passed over, but for FIFOs, devices and links that
    /// lead outside, which are named.
    fn file(&mut self, root: &'r Root, path: String, named: bool) {
        let stat = match files::look(root, &path) {
            Ok(stat) => stat,
            Err(failure) => return self.report.not_searched(&path, failure.message()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory if named => {
                return self.report.not_searched(&path, "a directory: write a glob such as DIR/*");
            }
            FileType::Directory => return,
            _ => return self.report.not_searched(&path, "not a regular file"),
        }
        let identity = (stat.st_dev, stat.st_ino);
        if self.found.iter().any(|known| known.identity == identity) {
            return;
        }
        self.found.push(Candidate { root, path, modified: stat.st_mtime.saturating_mul(1000), identity });
    }
}
