#![forbid(unsafe_code)]
//! `gloveport client-config`: settings to paste. The settings go to stdout, where they belong to stderr.

use crate::failure::Outcome;
use crate::stdio::Target;
use crate::token::store;
use crate::{address, out};
use clap::{Args, ValueEnum};
use gloveport_contract::token::Via;
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
    /// Let the client start `gloveport stdio` instead of speaking HTTP
    #[arg(long)]
    stdio: bool,
    /// Let it start `gloveport stdio` with this host, reached over ssh: web1, ops@db1:2222; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<Target>,
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
    /// The words of `gloveport`, where the client starts it.
    start: Option<Vec<String>>,
}

/// Runs the command.
///
/// # Errors
/// None.
pub fn run(args: &ClientConfigArgs, paths: &Paths) -> Outcome {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let token = given(&args.token);
    // Claude Desktop knows remote servers by its account only; a local one it starts.
    let starts = args.stdio || !args.hosts.is_empty() || args.client == Client::ClaudeDesktop;
    if !args.hosts.is_empty() {
        out::note("ssh must know each host, and each host let its account call: docs/ssh.md");
    } else if starts {
        out::note("the local user must be allowed, once: gloveport token allow-user USER");
    } else if token.is_none() {
        let via = if args.client == Client::Ufo { " --via path" } else { "" };
        out::note(format!(
            "make a token for it, once: gloveport token add --name {}{via}",
            args.client.name()
        ));
    }
    if args.client == Client::Ufo
        && !starts
        && let Some(token) = &token
    {
        warn_of_header(token, paths);
    }
    let access = Access {
        url: given(&args.url).unwrap_or_else(|| address::of_daemon(paths)),
        token: token.unwrap_or_else(|| PLACEHOLDER.to_owned()),
        start: starts.then(|| words(args, paths)),
    };
    out::note(args.client.place());
    out::line(args.client.settings(&access));
    Ok(0)
}

/// UFO sends no header: a token that counts in a header alone would be refused at every call. Where the token
/// is not known here, that much is said.
fn warn_of_header(secret: &str, paths: &Paths) {
    let way = "gloveport token add --name ufo --via path";
    let tokens = store::read(paths).unwrap_or_default();
    match tokens.find(secret) {
        Some(token) if token.via.contains(&Via::Path) => {}
        Some(token) => out::note(format!(
            "warning: UFO sends no header, and `{}` counts in no URL: every call would be refused. Make another: {way}",
            token.name
        )),
        None => out::note(format!("UFO sends no header: the token must be one that was made by `{way}`")),
    }
}

/// What follows `gloveport`.
fn words(args: &ClientConfigArgs, paths: &Paths) -> Vec<String> {
    let mut words = vec!["stdio".to_owned()];
    words.extend(args.hosts.iter().flat_map(|host| ["--host".to_owned(), host.name.clone()]));
    // Other hosts are reached without anything of this one.
    if let (true, Some(state)) = (args.hosts.is_empty(), &paths.state) {
        words.extend(["--state".to_owned(), state.display().to_string()]);
    }
    words
}

impl Client {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Where the settings belong.
    fn place(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude_desktop_config.json (Settings, Developer, Edit Config):",
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
            Self::ClaudeCode => claude_code(access),
            Self::ClaudeDesktop | Self::Cursor | Self::Json => {
                pretty(&json!({"mcpServers": {"gloveport": server(access)}}))
            }
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

fn server(access: &Access) -> Value {
    match &access.start {
        Some(words) => json!({"command": "gloveport", "args": words}),
        None => json!({"url": access.url, "headers": {"Authorization": format!("Bearer {}", access.token)}}),
    }
}

fn with_type(mut server: Value, access: &Access) -> Value {
    if let Some(server) = server.as_object_mut() {
        server.insert("type".into(), if access.start.is_some() { "stdio" } else { "http" }.into());
    }
    server
}

fn claude_code(access: &Access) -> String {
    match &access.start {
        Some(words) => {
            let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
            format!("claude mcp add gloveport -- gloveport {}", words.join(" "))
        }
        None => format!(
            "claude mcp add --transport http gloveport {} --header {}",
            shell_word(&access.url),
            in_quotes(&format!("Authorization: Bearer {}", access.token))
        ),
    }
}

/// A word that a shell takes as it is.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%_-+=:,./".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A text in double quotes of a shell.
fn in_quotes(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        if "\"\\$`".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// A TOML or YAML string: JSON's escapes are among theirs.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A TOML or YAML list.
fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

fn codex(access: &Access) -> String {
    let way = match &access.start {
        Some(words) => format!("command = \"gloveport\"\nargs = {}", list(words)),
        None => format!("url = {}\nbearer_token_env_var = \"GLOVEPORT_TOKEN\"", quoted(&access.url)),
    };
    format!("[mcp_servers.gloveport]\n{way}")
}

/// UFO's settings hold no header: the token stands in the path.
fn ufo(access: &Access) -> String {
    let way = match &access.start {
        Some(words) => {
            format!("        type: stdio\n        command: gloveport\n        start_args: {}", list(words))
        }
        None => {
            let rest = access.url.strip_prefix("http://").unwrap_or(&access.url);
            let (authority, path) = rest.split_once('/').unwrap_or((rest, "mcp"));
            let with_port =
                authority.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
            let (host, port): (&str, u16) = with_port.unwrap_or((authority, 80));
            let mut path = path.trim_end_matches('/').to_owned();
            if !path.contains(IN_PATH) {
                path = format!("{path}{IN_PATH}{}", access.token);
            }
            format!(
                "        type: http\n        host: {}\n        port: {port}\n        path: {}",
                quoted(host),
                quoted(&format!("/{path}"))
            )
        }
    };
    format!(
        "LinuxAgent:\n  default:\n    action:\n      - namespace: BashExecutor\n{way}\n        reset: false"
    )
}

fn goose(access: &Access) -> String {
    let head = "extensions:\n  gloveport:\n    name: gloveport\n    enabled: true\n    timeout: 300\n";
    let way = match &access.start {
        Some(words) => format!("    type: stdio\n    cmd: gloveport\n    args: {}", list(words)),
        None => format!(
            "    type: streamable_http\n    uri: {}\n    headers:\n      Authorization: {}",
            quoted(&access.url),
            quoted(&format!("Bearer {}", access.token))
        ),
    };
    format!("{head}{way}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(start: Option<&[&str]>) -> Access {
        let start = start.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        Access { url: "http://127.0.0.1:8010/mcp".into(), token: "gp_x".into(), start }
    }

    #[test]
    fn what_is_given_is_quoted_for_where_it_is_pasted() {
        let access =
            |url: &str| Access { url: url.into(), token: r#"x"; touch /p; "$(id)"#.into(), start: None };
        assert_eq!(
            claude_code(&access("http://h:1/mcp;touch${IFS}/p")),
            r#"claude mcp add --transport http gloveport 'http://h:1/mcp;touch${IFS}/p' --header "Authorization: Bearer x\"; touch /p; \"\$(id)""#
        );
        let yaml = ufo(&access("http://[::1]/mcp"));
        assert!(yaml.contains("host: \"[::1]\"\n        port: 80\n"), "{yaml}");
        let yaml = ufo(&access("http://a:1\n        evil: x/mcp"));
        assert!(!yaml.contains("\n        evil"), "{yaml}");
    }

    #[test]
    fn json_clients_get_json() {
        for client in [Client::ClaudeDesktop, Client::Cursor, Client::Vscode, Client::Json] {
            for start in [None, Some(["stdio"].as_slice())] {
                let settings: Value = serde_json::from_str(&client.settings(&access(start))).unwrap();
                let servers = settings.get("mcpServers").or(settings.get("servers")).unwrap();
                let server = &servers["gloveport"];
                if start.is_some() {
                    assert_eq!(server["args"][0], "stdio");
                } else {
                    assert_eq!(server["headers"]["Authorization"], "Bearer gp_x");
                }
            }
        }
    }

    #[test]
    fn ufo_gets_the_token_in_its_path() {
        let settings = Client::Ufo.settings(&access(None));
        assert!(
            settings.contains("host: \"127.0.0.1\"\n        port: 8010\n        path: \"/mcp/t/gp_x\""),
            "{settings}"
        );
        let with_path = Access { url: "http://localhost:8010/mcp/t/gp_y".into(), ..access(None) };
        assert!(Client::Ufo.settings(&with_path).contains("path: \"/mcp/t/gp_y\""));
    }

    #[test]
    fn what_is_started_is_named_word_by_word() {
        let access = access(Some(&["stdio", "--state", "/tmp/a b"]));
        for (client, words) in [
            (Client::Codex, r#"args = ["stdio", "--state", "/tmp/a b"]"#),
            (Client::Ufo, r#"start_args: ["stdio", "--state", "/tmp/a b"]"#),
            (Client::Goose, r#"args: ["stdio", "--state", "/tmp/a b"]"#),
            (Client::ClaudeCode, "-- gloveport stdio --state '/tmp/a b'"),
        ] {
            assert!(client.settings(&access).contains(words), "{}", client.settings(&access));
        }
    }
}
