#![forbid(unsafe_code)]
//! The actions of the catalogue in force, as the text that was signed. Read, they would take ten times the
//! memory, and every fork would copy the tables of it: one action is read when it is called.

use gloveport_contract::catalog::{Action, Catalog};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::cell::Cell;

/// All actions, sorted by name.
#[derive(Debug, Default)]
pub struct Actions {
    texts: Vec<(Box<str>, Box<RawValue>)>,
    /// The one that was called last: a call is looked at twice.
    last: Cell<Option<&'static Action>>,
}

/// A catalogue, with its actions unread.
#[derive(Deserialize)]
struct Unread {
    actions: Vec<Box<RawValue>>,
}

impl Actions {
    /// Keeps the actions of a text, of which `catalog` was read.
    ///
    /// # Errors
    /// The text is none of a catalogue.
    pub fn keep(text: &[u8], catalog: &Catalog) -> serde_json::Result<Self> {
        let unread: Unread = serde_json::from_slice(text)?;
        let names = catalog.actions.iter().map(|action| action.name.as_str().into());
        Ok(Self { texts: names.zip(unread.actions).collect(), last: Cell::new(None) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// The action of that name. It lives as long as the process: a supervisor asks for one, and ends.
    pub fn get(&self, name: &str) -> Option<&'static Action> {
        if let Some(last) = self.last.get()
            && last.name == name
        {
            return Some(last);
        }
        let at = self.texts.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        let (_, text) = self.texts.get(at)?;
        let action: &Action = Box::leak(Box::new(read(text)?));
        self.last.set(Some(action));
        Some(action)
    }

    /// Every action, read one after the other.
    pub fn iter(&self) -> impl Iterator<Item = Action> + '_ {
        self.texts.iter().filter_map(|(_, text)| read(text))
    }
}

/// Reads an action again: as a part of its catalogue it was read before.
fn read(text: &RawValue) -> Option<Action> {
    serde_json::from_str(text.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_read_as_it_was_in_its_catalogue() {
        let one = |name: &str| {
            format!(r#"{{"name": "{name}", "description": "d", "risk": "read", "exec": ["/bin/{name}"]}}"#)
        };
        let text = format!(r#"{{"format": 1, "actions": [{}, {}]}}"#, one("cat"), one("ls"));
        let catalog: Catalog = serde_json::from_str(&text).unwrap();
        let actions = Actions::keep(text.as_bytes(), &catalog).unwrap();
        assert_eq!(actions.count(), 2);
        assert_eq!(actions.get("ls"), catalog.action("ls"));
        assert_eq!(actions.get("cat"), catalog.action("cat"));
        assert_eq!(actions.get("dd"), None);
        assert!(actions.iter().eq(catalog.actions));
    }
}
