//! The table, the reader and the committed pages say the same.

use crate::catalog_source::language::{self, Block, Shape};
use gloveport_contract::catalog::{
    Action, BuiltinConfig, CommandRule, Limits, Output, Param, Redact, Sandbox, Script, Step, Timeout,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The keys that the reader knows, from what it says about one that it does not.
fn keys_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let message = match serde_json::from_str::<T>(r#"{"no such key": 1}"#) {
        Ok(_) => panic!("an unknown key was read"),
        Err(error) => error.to_string(),
    };
    let (_, expected) = message.split_once("expected").unwrap();
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn block(id: &str) -> &'static Block {
    language::blocks().into_iter().find(|block| block.id == id).unwrap()
}

#[test]
fn the_table_has_exactly_the_keys_of_the_reader() {
    let cases = [
        ("action", keys_of::<Action>()),
        ("step", keys_of::<Step>()),
        ("script", keys_of::<Script>()),
        ("timeout_param", keys_of::<Timeout>()),
        ("redact", keys_of::<Redact>()),
        ("output", keys_of::<Output>()),
        ("param", keys_of::<Param>()),
        ("sandbox", keys_of::<Sandbox>()),
        ("limits", keys_of::<Limits>()),
        ("builtin_config", keys_of::<BuiltinConfig>()),
        ("command_rule", keys_of::<CommandRule>()),
    ];
    for (id, keys) in cases {
        let table: BTreeSet<String> = block(id).keys.iter().map(|key| key.name.to_owned()).collect();
        assert_eq!(table, keys, "{id}");
    }
}

#[test]
fn the_table_has_exactly_the_words_of_the_reader() {
    for (id, name) in [
        ("action", "risk"),
        ("action", "arguments"),
        ("action", "on_error"),
        ("action", "result"),
        ("action", "approval"),
        ("action", "on_disconnect"),
        ("action", "builtin"),
        ("param", "type"),
        ("sandbox", "base"),
        ("sandbox", "list"),
        ("output", "escapes"),
    ] {
        let key = block(id).keys.iter().find(|key| key.name == name).unwrap();
        let Shape::Word(words) = key.shape else { panic!("{name}") };
        let table: BTreeSet<String> = words.iter().map(|(word, _)| (*word).to_owned()).collect();
        let document = format!(r#"{{"{name}": "no such word"}}"#);
        let message = match id {
            "action" => serde_json::from_str::<Action>(&document).unwrap_err().to_string(),
            "param" => serde_json::from_str::<Param>(&document).unwrap_err().to_string(),
            "output" => serde_json::from_str::<Output>(&document).unwrap_err().to_string(),
            _ => serde_json::from_str::<Sandbox>(&document).unwrap_err().to_string(),
        };
        let (_, expected) = message.split_once("expected").unwrap();
        let words: BTreeSet<String> = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(table, words, "{name}");
    }
}

fn committed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    assert!(
        committed("catalog.schema.json") == language::json_schema(),
        "gloveport catalog schema > docs/catalog.schema.json"
    );
}

#[test]
fn the_committed_reference_is_the_generated_one() {
    assert!(
        committed("catalog-reference.md") == language::reference_page(),
        "gloveport catalog schema --reference > docs/catalog-reference.md"
    );
}
