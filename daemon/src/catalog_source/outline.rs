#![forbid(unsafe_code)]
//! The outline of a YAML file: its documents as trees of places, so that a key path such as
//! `params.unit.pattern` leads to a line and a column.
//!
//! The same pass refuses what the language does not have: anchors, aliases, tags, directives and keys that
//! are no text. It is linear in the length of the file, so an alias bomb costs nothing.

use super::error::Place;
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span};

/// Deepest nesting of collections: the language needs nine levels.
const NESTING: usize = 32;

/// A node of the tree.
#[derive(Debug)]
struct Node {
    place: Place,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Scalar,
    Sequence(Vec<Node>),
    Mapping(Vec<(String, Place, Node)>),
}

/// One document of a file.
#[derive(Debug)]
pub(super) struct Document(Node);

impl Document {
    /// Where the document begins.
    pub(super) fn start(&self) -> Place {
        self.0.place
    }

    /// Where the mapping begins that has a key at this place: a missing key is best shown there.
    pub(super) fn mapping_of(&self, key: Place) -> Place {
        self.0.with_key_at(key).map_or(key, |mapping| mapping.place)
    }

    /// The value of the key at this place, where it is a scalar; the same place else.
    pub(super) fn value_of(&self, key: Place) -> Place {
        let value = self.0.with_key_at(key).and_then(|mapping| match &mapping.content {
            Content::Mapping(entries) => {
                entries.iter().find(|(_, at, _)| *at == key).map(|(.., value)| value)
            }
            _ => None,
        });
        value.filter(|value| matches!(value.content, Content::Scalar)).map_or(key, |value| value.place)
    }

    /// The place of a key path: that of a scalar's value, of a collection's key, or of the nearest part of
    /// the path that exists.
    pub(super) fn locate(&self, path: &str) -> Place {
        let mut node = &self.0;
        let mut place = node.place;
        for part in path.split('.').filter(|part| !part.is_empty()) {
            let next = match &node.content {
                Content::Scalar => None,
                Content::Sequence(items) => {
                    part.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item.place, item))
                }
                Content::Mapping(entries) => {
                    entries.iter().find(|(key, ..)| key == part).map(|(_, key, value)| match value.content {
                        Content::Scalar => (value.place, value),
                        _ => (*key, value),
                    })
                }
            };
            match next {
                Some((at, child)) => (place, node) = (at, child),
                None => break,
            }
        }
        place
    }
}

impl Node {
    /// The mapping that has a key at this place.
    fn with_key_at(&self, place: Place) -> Option<&Node> {
        match &self.content {
            Content::Scalar => None,
            Content::Sequence(items) => items.iter().find_map(|item| item.with_key_at(place)),
            Content::Mapping(entries) if entries.iter().any(|(_, key, _)| *key == place) => Some(self),
            Content::Mapping(entries) => entries.iter().find_map(|(.., value)| value.with_key_at(place)),
        }
    }
}

/// Why a file has no outline.
pub(super) type Refused = (Place, String);

/// Reads the outline of every document that holds anything.
///
/// # Errors
/// A syntax error, or something that the language does not have.
pub(super) fn documents(text: &str) -> Result<Vec<Document>, Refused> {
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_comments: false,
        flow_nesting_limit: NESTING,
        block_nesting_limit: NESTING,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, start(&span))?,
            Err(error) => {
                let at = place(error.marker());
                return Err((at, format!("not YAML: {}", error.info())));
            }
        }
    }
    Ok(builder.documents)
}

fn start(span: &Span) -> Place {
    place(&span.start)
}

fn place(marker: &granit_parser::Marker) -> Place {
    Place { line: marker.line().max(1), column: marker.col() + 1 }
}

/// A collection that is still open.
struct Open {
    node: Node,
    /// The key of a mapping that waits for its value.
    key: Option<(String, Place)>,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    documents: Vec<Document>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Refused> {
        if event.tag().is_some() {
            return Err((place, "tags (`!…`) are not part of the language; write the value alone".into()));
        }
        if event.anchor_id().is_some_and(|id| id != 0) {
            return Err((place, "anchors (`&…`) are not part of the language; write the value out".into()));
        }
        match event {
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                Err((place, "aliases (`*…`) are not part of the language; write the value out".into()))
            }
            Event::Scalar(text, style, ..) => self.scalar(&text, style, place),
            Event::SequenceStart(..) => self.begin(place, Content::Sequence(Vec::new())),
            Event::MappingStart(..) => self.begin(place, Content::Mapping(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    self.close(open.node);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, place: Place) -> Result<(), Refused> {
        let node = Node { place, content: Content::Scalar };
        match self.open.last_mut() {
            Some(Open { node: Node { content: Content::Mapping(_), .. }, key: key @ None }) => {
                if text == "<<" {
                    return Err((place, "merge keys (`<<`) are not part of the language".into()));
                }
                *key = Some((text.to_owned(), place));
            }
            Some(_) => self.close(node),
            // A document without content, such as comments after the last `---`, is no action.
            None if style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL") => {}
            None => self.close(node),
        }
        Ok(())
    }

    fn begin(&mut self, place: Place, content: Content) -> Result<(), Refused> {
        if let Some(Open { node: Node { content: Content::Mapping(_), .. }, key: None }) = self.open.last() {
            return Err((place, "a key is a text; to write \"{parameter}\" as a value, quote it".into()));
        }
        self.open.push(Open { node: Node { place, content }, key: None });
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn close(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.documents.push(Document(node)),
            Some(open) => match &mut open.node.content {
                Content::Sequence(items) => items.push(node),
                Content::Mapping(entries) => {
                    if let Some((key, at)) = open.key.take() {
                        entries.push((key, at, node));
                    }
                }
                Content::Scalar => {}
            },
        }
    }
}
