#![forbid(unsafe_code)]
//! `gloveport tools`: what can be called, with which parameters, at what risk, and what this host lacks.

use crate::failure::Outcome;
use crate::mcp::DaemonArgs;
use crate::out;
use clap::Args;
use gloveportd::paths::Paths;
use serde_json::Value;

/// The tools that the caller may use: parameters, risk, and whether this host supports them.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// Print the tools as the protocol lists them, as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Runs the command.
///
/// # Errors
/// The daemon does not answer with a list.
pub fn run(args: &ToolsArgs, paths: &Paths) -> Outcome {
    let tools = args.daemon.daemon(paths)?.tools()?;
    if args.json {
        out::json(&tools);
        return Ok(0);
    }
    if tools.is_empty() {
        out::note("no tool: the catalogue is empty, or this token allows none of it (`gloveport doctor`)");
    }
    for tool in &tools {
        out::text(&describe(tool));
    }
    Ok(0)
}

fn describe(tool: &Value) -> String {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map(out::printable).unwrap_or_default();
    let meta = |key: &str| tool.get("_meta").and_then(|meta| meta.get(key)).and_then(Value::as_str);
    let risk = meta("gloveport/risk").map(|risk| format!("  [{risk}]")).unwrap_or_default();
    let mut page = format!("{}{risk}\n", text("name"));
    if let Some(reason) = meta("gloveport/unsupported") {
        page.push_str(&format!("    not on this host: {}\n", out::printable(reason)));
    }
    if let Some(first) = tool.get("description").and_then(Value::as_str).and_then(|text| text.lines().next())
    {
        page.push_str(&format!("    {}\n", out::printable(first)));
    }
    if let Some(schema) = tool.get("inputSchema") {
        parameters(schema, "", &mut page);
    }
    page
}

/// One line for each parameter; those of an object stand under its name.
fn parameters(schema: &Value, prefix: &str, page: &mut String) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let path = format!("{prefix}{}", out::printable(name));
        if property.get("properties").is_some() {
            parameters(property, &format!("{path}."), page);
            continue;
        }
        let kind = type_of(property);
        let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
        let about = property.get("description").and_then(Value::as_str).map(out::printable);
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        page.push_str(&format!("      {path} ({kind}{optional}){about}\n"));
    }
}

fn type_of(property: &Value) -> String {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_described_with_its_parameters() {
        let tool = json!({
            "name": "service_log", "description": "The newest lines.\nMore.",
            "_meta": {"gloveport/risk": "read", "gloveport/unsupported": "no journalctl"},
            "inputSchema": {"type": "object", "required": ["params"], "properties": {
                "params": {"type": "object", "required": ["unit"], "properties": {
                    "unit": {"type": "string", "description": "Unit name"},
                    "level": {"enum": ["a", "b"]}}},
                "tail": {"type": ["integer", "null"]}}}
        });
        assert_eq!(
            describe(&tool),
            "service_log  [read]\n    not on this host: no journalctl\n    The newest lines.\n      \
             params.level (\"a\" | \"b\", optional)\n      params.unit (string): Unit name\n      \
             tail (integer or null, optional)\n"
        );
    }
}
