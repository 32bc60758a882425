#![forbid(unsafe_code)]
//! One list of tools out of the lists of many hosts: each tool once, with a parameter that says where.

use serde_json::{Map, Value, json};

/// The parameter that every tool gains.
pub const HOST: &str = "host";
/// The tool that tells the state of the hosts.
pub const HOSTS: &str = "hosts";

/// The tools of one host; `None` where it has not listed any yet.
pub type Listed<'a> = (&'a str, Option<&'a [Value]>);

/// The tools of all hosts, by name. A host that has not answered yet is offered for each: a call may find it
/// up again.
pub fn merge(hosts: &[Listed<'_>]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for tool in hosts.iter().filter_map(|(_, tools)| *tools).flatten() {
        // A host has no say in what the router's own tool is.
        if let Some(name) = name(tool).filter(|name| *name != HOSTS && !names.contains(name)) {
            names.push(name);
        }
    }
    names.sort_unstable();
    names.into_iter().filter_map(|name| merged(name, hosts)).chain([hosts_tool()]).collect()
}

fn name(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str)
}

/// One tool out of all hosts that have it, or `None` where it has a parameter `host` of its own: which of the
/// two a call means could not be told.
fn merged(wanted: &str, hosts: &[Listed<'_>]) -> Option<Value> {
    let of = |tools: &[Value]| tools.iter().find(|tool| name(tool) == Some(wanted)).cloned();
    let found: Vec<(&str, Option<Value>)> =
        hosts.iter().map(|(host, tools)| (*host, tools.and_then(of))).collect();
    let places: Vec<&str> = hosts
        .iter()
        .zip(&found)
        .filter(|((_, tools), (_, tool))| tool.is_some() || tools.is_none())
        .map(|((host, _), _)| *host)
        .collect();
    let mut tools = found.into_iter().filter_map(|(host, tool)| Some((host, tool?)));
    let (_, mut first) = tools.next()?;
    let mut different = Vec::new();
    for (host, other) in tools {
        if other != first {
            different.push(host);
            unite(&mut first, other);
        }
    }
    let schema = first.get_mut("inputSchema")?.as_object_mut()?;
    let properties = schema.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
    if properties.contains_key(HOST) {
        return None;
    }
    let description = "The host that this runs on.";
    properties.insert(HOST.into(), json!({"type": "string", "enum": places, "description": description}));
    if hosts.len() > 1
        && let Some(required) = schema.entry("required").or_insert_with(|| json!([])).as_array_mut()
    {
        required.insert(0, HOST.into());
    }
    if let Some(Value::String(text)) = first.get_mut("description").filter(|_| !different.is_empty()) {
        text.push_str(&format!(" Not the same on every host: {} differ.", different.join(", ")));
    }
    Some(first)
}

/// Makes one definition out of two: what both say, or either where they differ.
fn unite(tool: &mut Value, other: Value) {
    let (Some(tool), Value::Object(mut other)) = (tool.as_object_mut(), other) else { return };
    if let (Some(one), Some(two)) = (tool.get_mut("inputSchema"), other.remove("inputSchema")) {
        either(one, two);
    }
    // A promise that one of them does not keep is none. Without annotations a client expects the worst.
    for promise in ["outputSchema", "annotations"] {
        if tool.get(promise) != other.get(promise) {
            tool.remove(promise);
        }
    }
}

/// A schema that accepts what either accepts. The host that is asked checks the rest.
fn either(one: &mut Value, two: Value) {
    if *one == two {
        return;
    }
    let (Some(first), Some(second)) = (one.as_object_mut(), two.as_object()) else {
        *one = json!({"anyOf": [one.take(), two]});
        return;
    };
    if !is_object(first) || !is_object(second) {
        *one = json!({"anyOf": [one.take(), two]});
        return;
    }
    let required = |schema: &Map<String, Value>| {
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let in_both: Vec<Value> =
        required(first).into_iter().filter(|name| required(second).contains(name)).collect();
    first.insert("required".into(), in_both.into());
    let properties = first.entry("properties").or_insert_with(|| json!({}));
    let more = second.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(properties) = properties.as_object_mut() {
        for (name, schema) in more {
            match properties.get_mut(&name) {
                Some(known) => either(known, schema),
                None => drop(properties.insert(name, schema)),
            }
        }
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

fn hosts_tool() -> Value {
    json!({
        "name": HOSTS,
        "title": "State of the hosts",
        "description": "Asks every host now, and tells which are up, how many tools each has, and why one is down.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
        "annotations": {
            "title": "State of the hosts", "readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, properties: Value, required: &[&str]) -> Value {
        json!({
            "name": name, "description": "Does it.", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
        })
    }

    fn merged(hosts: &[(&str, Option<Vec<Value>>)]) -> Vec<Value> {
        let listed: Vec<Listed<'_>> = hosts.iter().map(|(host, tools)| (*host, tools.as_deref())).collect();
        merge(&listed)
    }

    #[test]
    fn a_tool_of_many_hosts_stands_there_once_with_the_hosts_that_have_it() {
        let df = tool("df", json!({"path": {"type": "string"}}), &["path"]);
        let tools = merged(&[
            ("web1", Some(vec![df.clone()])),
            ("web2", Some(vec![df])),
            ("db1", Some(vec![])),
            ("away", None),
        ]);
        assert_eq!(tools.len(), 2);
        assert_eq!(tools[1]["name"], "hosts");
        let schema = &tools[0]["inputSchema"];
        assert_eq!(schema["properties"]["host"]["enum"], json!(["web1", "web2", "away"]));
        assert_eq!(schema["required"], json!(["host", "path"]));
        assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    }

    #[test]
    fn with_one_host_it_need_not_be_named() {
        let tools = merged(&[("web1", Some(vec![tool("df", json!({}), &[])]))]);
        assert_eq!(tools[0]["inputSchema"]["required"], json!([]));
        assert!(tools[0]["inputSchema"]["properties"]["host"].is_object());
    }

    #[test]
    fn definitions_that_differ_accept_what_either_accepts_and_promise_what_both_promise() {
        let one = tool("x", json!({"a": {"type": "string"}, "b": {"type": "integer"}}), &["a", "b"]);
        let mut two = tool("x", json!({"b": {"type": "string"}, "c": {"type": "string"}}), &["b", "c"]);
        two["annotations"]["readOnlyHint"] = json!(false);
        let tools = merged(&[("web1", Some(vec![one])), ("db1", Some(vec![two]))]);
        let schema = &tools[0]["inputSchema"];
        assert_eq!(schema["required"], json!(["host", "b"]));
        assert_eq!(schema["properties"]["b"], json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}));
        assert!(schema["properties"]["a"].is_object() && schema["properties"]["c"].is_object());
        assert!(tools[0].get("annotations").is_none());
        assert_eq!(tools[0]["description"], "Does it. Not the same on every host: db1 differ.");
    }

    #[test]
    fn a_parameter_named_host_is_not_shadowed_and_no_host_names_the_routers_tool() {
        let own = tool("ping", json!({"host": {"type": "string"}}), &["host"]);
        let tools = merged(&[("web1", Some(vec![own, tool("hosts", json!({}), &[])]))]);
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0]["inputSchema"]["properties"], json!({}));
    }
}
