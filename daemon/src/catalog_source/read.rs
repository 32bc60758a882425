#![forbid(unsafe_code)]
//! From files to checked actions.

use super::error::{Place, SourceError};
use super::message::message;
use super::outline::{self, Document};
use super::script;
use gloveport_contract::catalog::{Action, Catalog, FORMAT};
use serde_saphyr::Error;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest source file, bytes. Reviewers read these files; a thousand actions fit.
const FILE: u64 = 1024 * 1024;
/// Most YAML nodes of one document. Aliases are refused, so that this bounds nothing but typed text.
const NODES: usize = 20_000;

/// All sources, read and checked.
#[derive(Debug)]
pub struct Sources {
    /// The catalogue that they make.
    pub catalog: Catalog,
    files: Vec<File>,
    places: BTreeMap<String, (usize, Document)>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    text: String,
}

impl Sources {
    /// Reads directories (their `*.yaml` and `*.yml`, by name) and single files.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn read(sources: &[PathBuf]) -> Result<Self, Vec<SourceError>> {
        let mut reader = Reader::default();
        for source in sources {
            match yaml_files(source) {
                Ok(files) => files.iter().for_each(|file| reader.file(file)),
                Err(error) => reader.errors.push(error),
            }
        }
        reader.finish(sources)
    }

    /// A finding about a key path of an action, at its place in the sources.
    pub fn finding(&self, action: &str, path: &str, text: impl Into<String>) -> SourceError {
        match self.places.get(action).and_then(|(file, document)| Some((self.files.get(*file)?, document))) {
            Some((file, document)) => SourceError::at(&file.path, &file.text, document.locate(path), text),
            None => SourceError::of_file(Path::new("catalog.json"), text),
        }
    }
}

/// The YAML files of a directory by name, or the one file.
fn yaml_files(source: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = |error| SourceError::of_file(source, format!("cannot be read: {error}"));
    if fs::metadata(source).map_err(unreadable)?.is_file() {
        return Ok(vec![source.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(source).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(SourceError::of_file(source, "holds no *.yaml or *.yml file"));
    }
    files.sort();
    Ok(files)
}

/// A file's text, within its limit.
fn text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = fs::File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is no regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE {
        return Err(format!("is larger than {FILE} bytes; put its actions into several files"));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("is not UTF-8: the first wrong byte is at {}", error.utf8_error().valid_up_to())
    })
}

#[derive(Default)]
struct Reader {
    files: Vec<File>,
    actions: BTreeMap<String, Action>,
    places: BTreeMap<String, (usize, Document)>,
    errors: Vec<SourceError>,
}

impl Reader {
    fn file(&mut self, path: &Path) {
        let text = match text(path) {
            Ok(text) => text,
            Err(problem) => return self.errors.push(SourceError::of_file(path, problem)),
        };
        match outline::documents(&text) {
            Ok(documents) => self.documents(path, &text, documents),
            Err((place, problem)) => self.errors.push(SourceError::at(path, &text, place, problem)),
        }
        self.files.push(File { path: path.to_path_buf(), text });
    }

    /// Reads each document as an action. One that is wrong does not hide the mistakes of the next.
    fn documents(&mut self, path: &Path, text: &str, documents: Vec<Document>) {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            no_schema: true,
            with_snippet: false,
            merge_keys: serde_saphyr::MergeKeyPolicy::Error,
            budget: serde_saphyr::budget! { max_nodes: NODES, max_anchors: 0, max_aliases: 0 },
        };
        let mut bytes = text.as_bytes();
        let actions = serde_saphyr::read_with_options::<_, Action>(&mut bytes, options);
        for (action, document) in actions.zip(documents) {
            match action {
                Ok(action) => self.action(path, text, action, document),
                Err(error) => {
                    let place = place(&error, &document);
                    self.errors.push(SourceError::at(path, text, place, message(&error)));
                }
            }
        }
    }

    fn action(&mut self, path: &Path, text: &str, mut action: Action, document: Document) {
        let mut report = |key: &str, problem: String| {
            self.errors.push(SourceError::at(path, text, document.locate(key), problem));
        };
        if let Some(script) = &mut action.script
            && let Err((key, problem)) = script::embed(script, path)
        {
            report(key, problem);
        }
        if let Err(error) = action.check() {
            report(&error.path, error.to_string());
        }
        for (key, problem) in unusable_patterns(&action) {
            report(&key, problem);
        }
        if let Some((file, first)) = self.places.get(&action.name) {
            let first = match self.files.get(*file) {
                Some(file) => format!("{}:{}", file.path.display(), first.locate("name").line),
                None => format!("line {} of this file", first.locate("name").line),
            };
            return report(
                "name",
                format!("the action `{}` stands twice; the first is at {first}", action.name),
            );
        }
        self.places.insert(action.name.clone(), (self.files.len(), document));
        self.actions.insert(action.name.clone(), action);
    }

    fn finish(mut self, sources: &[PathBuf]) -> Result<Sources, Vec<SourceError>> {
        let whole = sources.first().map_or(Path::new("."), PathBuf::as_path);
        let catalog = Catalog { format: FORMAT, actions: self.actions.into_values().collect() };
        if self.errors.is_empty() {
            if catalog.actions.is_empty() {
                self.errors.push(SourceError::of_file(whole, "holds no action"));
            } else if let Err(error) = catalog.check() {
                self.errors.push(SourceError::of_file(whole, error.to_string()));
            }
        }
        if self.errors.is_empty() {
            Ok(Sources { catalog, files: self.files, places: self.places })
        } else {
            Err(self.errors)
        }
    }
}

/// Where a reading error is shown.
fn place(error: &Error, document: &Document) -> Place {
    let Some(location) = error.location() else {
        return document.start();
    };
    let number = |n: u64| usize::try_from(n).unwrap_or(1).max(1);
    let place = Place { line: number(location.line()), column: number(location.column()) };
    match error {
        Error::SerdeMissingField { .. } => document.mapping_of(place),
        // What a value's own reader says carries the place of its key.
        Error::SerdeInvalidType { .. } | Error::SerdeInvalidValue { .. } => document.value_of(place),
        _ => place,
    }
}

/// Largest compiled redaction pattern, bytes.
const PATTERN: usize = 1 << 20;

/// The daemon's own patterns of an action, which the contract cannot compile: it has a smaller engine.
fn unusable_patterns(action: &Action) -> Vec<(String, String)> {
    let compile = |pattern: &String| regex::bytes::RegexBuilder::new(pattern).size_limit(PATTERN).build();
    let patterns = action.redact.patterns.iter().enumerate();
    patterns
        .filter_map(|(index, pattern)| {
            let error = compile(pattern).err()?;
            let problem = error.to_string().lines().last().unwrap_or_default().to_owned();
            Some((format!("redact.patterns.{index}"), format!("not a pattern (RE2 syntax): {problem}")))
        })
        .collect()
}
