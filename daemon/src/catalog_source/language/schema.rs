#![forbid(unsafe_code)]
//! The JSON Schema (2020-12) for editors.

use super::{Absent, Block, Key, Shape, blocks, root};
use serde_json::{Map, Value, json};

/// The schema of one YAML document, pretty-printed, with a newline at its end.
pub fn json_schema() -> String {
    let definitions: Map<String, Value> =
        blocks().into_iter().map(|block| (block.id.to_owned(), mapping(block))).collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A gloveport action",
        "description": "One YAML document of a gloveport catalogue. `gloveport catalog build` checks more \
                        than a schema can say.",
        "$ref": format!("#/$defs/{}", root().id),
        "$defs": definitions,
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

fn mapping(block: &Block) -> Value {
    let properties: Map<String, Value> =
        block.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> =
        block.keys.iter().filter(|key| key.absent == Absent::Required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": block.about,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        insert(&mut schema, "required", json!(required));
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = of(&key.shape);
    let about = match key.absent {
        Absent::Default(text) => format!("{} Default: {text}.", key.about),
        Absent::Required | Absent::Nothing => key.about.to_owned(),
    };
    insert(&mut schema, "description", json!(about));
    schema
}

fn insert(schema: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = schema {
        map.insert(name.to_owned(), value);
    }
}

/// A path: absolute, without empty parts. That `.` and `..` are refused too is for `catalog build` to say.
const PATH: &str = "^/([^/]+(/[^/]+)*)?$";

fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Name => json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}),
        Shape::Path => json!({"type": "string", "pattern": PATH}),
        Shape::OptionalPath => json!({"type": "string", "pattern": PATH.replacen('^', "^\\??", 1)}),
        Shape::Pattern => json!({"type": "string", "maxLength": gloveport_contract::limits::PATTERN_LENGTH}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Integer(min, max) => {
            let mut schema = json!({"type": "integer"});
            // Bounds that every 64-bit integer fulfils would be rounded by readers with doubles.
            if *min != i64::MIN {
                insert(&mut schema, "minimum", json!(min));
            }
            if *max != i64::MAX {
                insert(&mut schema, "maximum", json!(max));
            }
            schema
        }
        Shape::Size => json!({"type": "string", "pattern": "^[0-9]+(B|KB|KiB|MB|MiB|GB|GiB)?$"}),
        Shape::Time => json!({"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}),
        Shape::Word(words) => {
            let words: Vec<Value> =
                words.iter().map(|(word, meaning)| json!({"const": word, "description": meaning})).collect();
            json!({ "oneOf": words })
        }
        Shape::Argv => json!({
            "type": "array",
            "items": {"oneOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]},
        }),
        Shape::Optstring => json!({"type": "string", "pattern": "^([!-~]:{0,2})*$"}),
        Shape::Range => json!({"oneOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": "^[0-9]+\\.\\.[0-9]+$"},
        ]}),
        Shape::Literal => json!({"oneOf": [
            {"type": ["string", "integer", "boolean"]},
            {"type": "array", "items": {"type": ["string", "integer", "boolean"]}},
        ]}),
        Shape::Map(inner) => json!({"type": "object", "additionalProperties": of(inner)}),
        Shape::List(inner) => json!({"type": "array", "items": of(inner)}),
        Shape::Block(block) => json!({"$ref": format!("#/$defs/{}", block.id)}),
        Shape::Either(shapes) => json!({"oneOf": shapes.iter().map(of).collect::<Vec<_>>()}),
    }
}
