//! Actions of test catalogues, as JSON: what `gloveport catalog build` reads as YAML and what the helper
//! reads as a signed catalogue is then the same text.

use crate::Scene;
use serde_json::{Map, Value, json};

/// An action of a test catalogue.
#[derive(Debug, Clone)]
pub struct Action(Map<String, Value>);

impl Scene {
    /// An action with these keys; what every action needs is filled in.
    pub fn action(&self, name: &str, keys: Value) -> Action {
        let run_as = format!("{0}:{0}", self.run.number);
        let action = json!({
            "name": name, "description": "An action of a test.", "risk": "read", "run_as": run_as,
        });
        let Value::Object(action) = action else { unreachable!("written as an object") };
        Action(action).with(keys)
    }

    /// An action of that name that runs a program with these words.
    pub fn exec(&self, name: &str, argv: &[&str]) -> Action {
        self.action(name, json!({"exec": argv}))
    }

    /// An action of that name that runs the probe with these words.
    pub fn probing(&self, name: &str, words: &[&str]) -> Action {
        let probe = self.probe();
        let argv: Vec<&str> = std::iter::once(probe.as_str()).chain(words.iter().copied()).collect();
        self.exec(name, &argv)
    }

    /// An action `probe` that runs the probe with the words that the caller gives. Not an honest action: it
    /// lets one catalogue serve many attacks.
    pub fn any_probe(&self) -> Action {
        self.action(
            "probe",
            json!({
                "params": {"words": {"type": "list", "items": {"type": "string", "allow_dash": true}}},
                "exec": [self.probe(), "{words}"],
            }),
        )
    }
}

impl Action {
    /// The same with these keys added or replaced.
    pub fn with(mut self, keys: Value) -> Self {
        let Value::Object(keys) = keys else { panic!("keys of an action are an object") };
        self.0.extend(keys);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// It as JSON.
    pub fn json(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

/// The source of a catalogue: one YAML document for each action. (JSON is YAML.)
pub fn source(actions: &[Action]) -> String {
    let documents: Vec<String> = actions.iter().map(|action| format!("{:#}\n", action.json())).collect();
    documents.join("---\n")
}
