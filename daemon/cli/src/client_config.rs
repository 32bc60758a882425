#![forbid(unsafe_code)]
//! `gloveport client-config`: settings to paste. The settings go to stdout, where they belong to stderr.

use crate::failure::Outcome;
use crate::{address, out};
use clap::{Args, ValueEnum};
use gloveportd::paths::Paths;
use serde_json::{Value, json};

/// What stands for the token where none is known.
const PLACEHOLDER: &str = "PASTE-THE-TOKEN-HERE";
/// The path under which a token may stand in a URL.
const IN_PATH: &str = "/t/";

/// Settings to paste into an MCP client.
///
/// The token of GLOVEPORT_TOKEN is put into them; without one a placeholder is.
#[derive(Debug, Args)]
pub struct ClientConfigArgs {
    /// The client
    client: Client,
    /// The daemon's URL [default: the one of this host]
    #[arg(long, env = "GLOVEPORT_URL", value_name = "URL")]
    url: Option<String>,
    /// The token to put into the settings
    #[arg(long, env = "GLOVEPORT_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Let the client start `gloveport stdio` instead of speaking HTTP, where it can do both
    #[arg(long)]
    stdio: bool,
}

/// A client that settings are known for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Codex CLI
    Codex,
    /// The LinuxAgent of Microsoft UFO
    Ufo,
    /// Goose
    Goose,
    /// Any client with an `mcpServers` object
    Json,
}

/// How a client reaches the daemon.
struct Access {
    url: String,
    token: String,
    stdio: bool,
    /// The state directory that the local socket is in, where it is not the installed one.
    state: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// None.
pub fn run(args: &ClientConfigArgs, paths: &Paths) -> Outcome {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let token = given(&args.token);
    if token.is_none() && (needs_token(args.client, args.stdio)) {
        let via = if args.client == Client::Ufo { " --via path" } else { "" };
        out::note(format!(
            "make a token for it, once: gloveport token add --name {}{via}",
            args.client.name()
        ));
    }
    let access = Access {
        url: given(&args.url).unwrap_or_else(|| address::of_daemon(paths)),
        token: token.unwrap_or_else(|| PLACEHOLDER.to_owned()),
        stdio: args.stdio,
        state: paths.state.as_ref().map(|state| state.display().to_string()),
    };
    out::note(args.client.place());
    out::line(args.client.settings(&access));
    Ok(0)
}

fn needs_token(client: Client, stdio: bool) -> bool {
    client == Client::Ufo || !(stdio || client == Client::ClaudeDesktop)
}

impl Client {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Where the settings belong.
    fn place(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => {
                "claude_desktop_config.json (Settings, Developer, Edit Config); the local user must be allowed: \
                 gloveport token allow-user USER"
            }
            Self::ClaudeCode => "run this in a shell:",
            Self::Cursor => "~/.cursor/mcp.json, or .cursor/mcp.json of a project:",
            Self::Vscode => ".vscode/mcp.json of a workspace, or `MCP: Open User Configuration`:",
            Self::Codex => {
                "~/.codex/config.toml; with a URL, GLOVEPORT_TOKEN must be in Codex's environment:"
            }
            Self::Ufo => "config/ufo/mcp.yaml, in place of the BashExecutor entry of LinuxAgent:",
            Self::Goose => "~/.config/goose/config.yaml:",
            Self::Json => "wherever the client keeps its `mcpServers`:",
        }
    }

    fn settings(self, access: &Access) -> String {
        match self {
            // It knows remote servers by its account only; a local one it starts.
            Self::ClaudeDesktop => pretty(&json!({"mcpServers": {"gloveport": command(access)}})),
            Self::ClaudeCode if access.stdio => {
                format!("claude mcp add gloveport -- gloveport {}", arguments(access).join(" "))
            }
            Self::ClaudeCode => format!(
                "claude mcp add --transport http gloveport {} --header \"Authorization: Bearer {}\"",
                access.url, access.token
            ),
            Self::Cursor | Self::Json => pretty(&json!({"mcpServers": {"gloveport": server(access)}})),
            Self::Vscode => pretty(&json!({"servers": {"gloveport": with_type(server(access), access)}})),
            Self::Codex => codex(access),
            Self::Ufo => ufo(access),
            Self::Goose => goose(access),
        }
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn arguments(access: &Access) -> Vec<String> {
    let state = access.state.iter().flat_map(|state| ["--state".to_owned(), state.clone()]);
    ["stdio".to_owned()].into_iter().chain(state).collect()
}

fn command(access: &Access) -> Value {
    json!({"command": "gloveport", "args": arguments(access)})
}

fn server(access: &Access) -> Value {
    if access.stdio {
        return command(access);
    }
    json!({"url": access.url, "headers": {"Authorization": format!("Bearer {}", access.token)}})
}

fn with_type(mut server: Value, access: &Access) -> Value {
    if let Some(server) = server.as_object_mut() {
        server.insert("type".into(), if access.stdio { "stdio" } else { "http" }.into());
    }
    server
}

/// A TOML string: JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn codex(access: &Access) -> String {
    if access.stdio {
        let arguments: Vec<String> = arguments(access).iter().map(|argument| quoted(argument)).collect();
        return format!(
            "[mcp_servers.gloveport]\ncommand = \"gloveport\"\nargs = [{}]",
            arguments.join(", ")
        );
    }
    format!(
        "[mcp_servers.gloveport]\nurl = {}\nbearer_token_env_var = \"GLOVEPORT_TOKEN\"",
        quoted(&access.url)
    )
}

/// UFO's settings hold no header: the token stands in the path.
fn ufo(access: &Access) -> String {
    let rest = access.url.strip_prefix("http://").unwrap_or(&access.url);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, "mcp"));
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    let path = path.trim_end_matches('/');
    let path =
        if path.contains(IN_PATH) { path.to_owned() } else { format!("{path}{IN_PATH}{}", access.token) };
    format!(
        "LinuxAgent:\n  default:\n    action:\n      - namespace: BashExecutor\n        type: http\n        \
         host: {}\n        port: {port}\n        path: {}\n        reset: false",
        quoted(host),
        quoted(&format!("/{path}"))
    )
}

fn goose(access: &Access) -> String {
    let head = "extensions:\n  gloveport:\n    name: gloveport\n    enabled: true\n    timeout: 300\n";
    if access.stdio {
        let arguments: Vec<String> = arguments(access).iter().map(|argument| quoted(argument)).collect();
        return format!("{head}    type: stdio\n    cmd: gloveport\n    args: [{}]", arguments.join(", "));
    }
    format!(
        "{head}    type: streamable_http\n    uri: {}\n    headers:\n      Authorization: {}",
        quoted(&access.url),
        quoted(&format!("Bearer {}", access.token))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(stdio: bool) -> Access {
        Access { url: "http://127.0.0.1:8010/mcp".into(), token: "gp_x".into(), stdio, state: None }
    }

    #[test]
    fn json_clients_get_json() {
        for client in [Client::ClaudeDesktop, Client::Cursor, Client::Vscode, Client::Json] {
            for stdio in [false, true] {
                let settings: Value = serde_json::from_str(&client.settings(&access(stdio))).unwrap();
                let servers = settings.get("mcpServers").or(settings.get("servers")).unwrap();
                let server = &servers["gloveport"];
                if stdio || client == Client::ClaudeDesktop {
                    assert_eq!(server["args"][0], "stdio");
                } else {
                    assert_eq!(server["headers"]["Authorization"], "Bearer gp_x");
                }
            }
        }
    }

    #[test]
    fn ufo_gets_the_token_in_its_path() {
        let settings = Client::Ufo.settings(&access(false));
        assert!(
            settings.contains("host: \"127.0.0.1\"\n        port: 8010\n        path: \"/mcp/t/gp_x\""),
            "{settings}"
        );
        let with_path = Access { url: "http://localhost:8010/mcp/t/gp_y".into(), ..access(false) };
        assert!(Client::Ufo.settings(&with_path).contains("path: \"/mcp/t/gp_y\""));
    }

    #[test]
    fn a_state_directory_is_named_to_the_bridge() {
        let access = Access { state: Some("/tmp/a b".into()), ..access(true) };
        assert!(Client::Codex.settings(&access).contains(r#"args = ["stdio", "--state", "/tmp/a b"]"#));
    }
}
