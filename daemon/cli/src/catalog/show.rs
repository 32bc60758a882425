#![forbid(unsafe_code)]
//! `gloveport catalog show`: an action in the words of its reviewer.

use super::load;
use crate::failure::{Failure, Outcome};
use crate::out;
use gloveport_contract::catalog::{
    Action, Approval, ArgvItem, CommandEntry, CommandRule, Directory, Filter, ListScope, Network,
    NetworkClass, Param, Sandbox, Timeout,
};
use gloveport_contract::units::{Bytes, Millis};
use gloveport_contract::{command, limits};
use gloveportd::paths::Paths;
use std::path::Path;

/// Shows a file's actions, or the action of that name that is in force.
pub(super) fn run(what: &str, as_json: bool, paths: &Paths) -> Outcome {
    let file = Path::new(what);
    if what.contains('/') || file.is_file() {
        let catalog = load(file)?;
        if as_json {
            out::json(&catalog);
        } else {
            let texts: Vec<String> = catalog.actions.iter().map(describe).collect();
            out::text(&texts.join("\n"));
        }
        return Ok(0);
    }
    let catalog = load(&paths.catalog)?;
    let Some(action) = catalog.action(what) else {
        let names: Vec<&str> = catalog.actions.iter().map(|action| action.name.as_str()).collect();
        return Err(Failure::new(format!("there is no file and no action in force named `{what}`"))
            .remedy(format!("in force: {}", names.join(" "))));
    };
    if as_json {
        out::json(action)
    } else {
        out::text(&describe(action))
    }
    Ok(0)
}

/// An action as text, with what holds by default.
fn describe(action: &Action) -> String {
    let mut lines = vec![match &action.title {
        Some(title) => format!("{}  ({title})", action.name),
        None => action.name.clone(),
    }];
    let mut say = |key: &str, text: String| lines.push(format!("  {key:<12}{text}"));
    say("does", out::printable(action.description.trim()));
    say("risk", action.risk.as_str().to_owned());
    programs(action).into_iter().for_each(|text| say("runs", text));
    for (name, param) in action.params.iter() {
        say("parameter", parameter(name, param));
    }
    if !action.filters.is_empty() {
        say("filters", action.filters.iter().map(|f| Filter::as_str(*f)).collect::<Vec<_>>().join(", "));
    }
    say("as", account(action));
    say("in", directory(action));
    say("within", within(action));
    if action.approval == Approval::Required {
        let time = u64::try_from(action.approval_timeout().as_millis()).unwrap_or(u64::MAX);
        say("approval", format!("a person must say yes within {}", Millis(time)));
    }
    if let Some(kept) = action.keep_result() {
        let kept = Millis(u64::try_from(kept.as_millis()).unwrap_or(u64::MAX));
        say("alone", format!("goes on without its client; the result is kept for {kept}"));
    }
    for (name, value) in action.env.iter() {
        say("environment", format!("{name}={}", out::printable(value)));
    }
    match action.builtin.filter(|_| action.builtin_config.as_ref().is_none_or(|c| c.commands.is_empty())) {
        Some(builtin) => say("sandbox", sandbox(&builtin.sandbox(action.builtin_config.as_ref()))),
        None => say("sandbox", sandbox(&action.sandbox)),
    }
    let own = action.steps.iter().flatten().filter_map(|step| Some((&step.name, step.sandbox.as_ref()?)));
    let rules = action.builtin_config.iter().flat_map(|config| config.rules());
    for (name, own) in own.chain(rules.filter_map(|rule| Some((&rule.name, rule.sandbox.as_ref()?)))) {
        say("sandbox", format!("of {name}: {}", sandbox(own)));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn programs(action: &Action) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(exec) = &action.exec {
        texts.push(argv(exec));
        texts.extend(action.exec_fallbacks.iter().map(|path| format!("or, where that is absent, {path}")));
    }
    for step in action.steps.iter().flatten() {
        texts.push(format!("{}: {}", step.name, argv(&step.exec)));
    }
    if let Some(script) = &action.script {
        let digest = script.sha256.as_deref().unwrap_or("not embedded");
        texts.push(format!(
            "the script {} (SHA-256 {digest}) by {} {}",
            script.file,
            script.interpreter,
            argv(&script.args)
        ));
    }
    if let Some(builtin) = action.builtin {
        texts.push(format!("the built-in {}", builtin.as_str()));
    }
    for entry in action.builtin_config.iter().flat_map(|config| &config.commands) {
        texts.push(match entry {
            CommandEntry::Name(name) => name.clone(),
            CommandEntry::Rule(rule) => format!("{}: {}", rule.name, rule_text(rule)),
        });
    }
    texts
}

fn rule_text(rule: &CommandRule) -> String {
    let program = std::iter::once(&rule.exec).chain(&rule.args).cloned().collect::<Vec<_>>().join(" ");
    if rule.any {
        return format!("{program} with any arguments");
    }
    let words = match rule.words.is_empty() {
        true => String::new(),
        false => format!("; followed by {}", rule.words.join(" or ")),
    };
    let range = rule.operands;
    let operands = if range.min == range.max {
        format!("{} operands", range.min)
    } else {
        format!("{} to {} operands", range.min, range.max)
    };
    let pattern = rule.operand.as_ref().map_or(String::new(), |pattern| format!(" that match {pattern}"));
    format!("{program}; {}{words}; {operands}{pattern}", command::allowed(rule))
}

fn argv(items: &[ArgvItem]) -> String {
    let shown = items.iter().map(|item| match item {
        ArgvItem::One(text) => quoted(text),
        ArgvItem::Group(texts) => {
            format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(" "))
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// An argument as it is, or in quotes where a reader would not see its ends.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if plain { text.to_owned() } else { format!("{text:?}") }
}

fn parameter(name: &str, param: &Param) -> String {
    let mut parts = vec![param.kind.as_str().to_owned()];
    if let Some(items) = &param.items {
        parts.push(format!("of {}", items.kind.as_str()));
    }
    parts.push(if param.is_required() { "required" } else { "optional" }.to_owned());
    if let Some(pattern) = param.pattern.as_ref().or(param.items.as_ref().and_then(|i| i.pattern.as_ref())) {
        parts.push(format!("matches {pattern}"));
    }
    if param.min.is_some() || param.max.is_some() {
        let end = |value: Option<i64>| value.map_or("…".to_owned(), |value| value.to_string());
        parts.push(format!("{} to {}", end(param.min), end(param.max)));
    }
    if let Some(most) = param.max_length {
        parts.push(format!("at most {most} long"));
    }
    if !param.values.is_empty() {
        parts.push(format!("one of {}", param.values.join(" ")));
    }
    let roots = param.items.as_ref().map_or(&param.roots, |items| &items.roots);
    if !roots.is_empty() {
        parts.push(format!("under {}", roots.join(" ")));
    }
    for (set, word) in [(param.allow_dash, "may begin with -"), (param.secret, "secret")] {
        if set {
            parts.push(word.to_owned());
        }
    }
    let text = param.description.as_ref().map_or(String::new(), |text| format!(": {}", out::printable(text)));
    format!("{name} ({}){text}", parts.join(", "))
}

fn account(action: &Action) -> String {
    let groups = if action.groups.is_empty() { "none".to_owned() } else { action.groups.join(", ") };
    format!("{} (further groups: {groups})", action.run_as())
}

fn directory(action: &Action) -> String {
    match &action.cwd {
        None => "/".to_owned(),
        Some(Directory::Fixed(path)) => path.clone(),
        Some(Directory::Param { param, roots }) => format!("the `{param}` under {}", roots.join(" ")),
    }
}

fn within(action: &Action) -> String {
    let time = match &action.timeout {
        None => Millis(limits::TIMEOUT_DEFAULT_MS).to_string(),
        Some(Timeout::Fixed(time)) => time.to_string(),
        Some(Timeout::Param { param, default, max }) => format!("{default}, or `{param}` up to {max}"),
    };
    format!(
        "{time}; {} of output; {} processes; {} of memory; {} at once",
        Bytes(action.max_output()),
        action.limits.processes(),
        Bytes(action.limits.memory()),
        action.concurrency()
    )
}

fn sandbox(sandbox: &Sandbox) -> String {
    let mut parts = vec![format!("base {}", word(&sandbox.base))];
    for (verb, paths) in [("reads", &sandbox.read), ("writes", &sandbox.write), ("starts", &sandbox.exec)] {
        if !paths.is_empty() {
            parts.push(format!("{verb} {}", paths.join(" ")));
        }
    }
    if sandbox.exec.is_empty() {
        parts.push("starts no second program".to_owned());
    }
    if sandbox.list == ListScope::Declared {
        parts.push("lists only what it reads".to_owned());
    }
    parts.push(format!("network {}", network(&sandbox.network)));
    if !sandbox.syscalls.is_empty() {
        parts.push(format!("system calls {}", word(&sandbox.syscalls)));
    }
    if !sandbox.bounding.is_empty() {
        parts.push(format!("bounding set {}", sandbox.bounding.join(" ")));
    }
    if !sandbox.may_lack.is_empty() {
        let promises: Vec<&str> = sandbox.may_lack.iter().map(|promise| promise.as_str()).collect();
        parts.push(format!("may lack {}", promises.join(" ")));
    }
    parts.join("; ")
}

fn network(network: &Network) -> String {
    let ports = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
    match network {
        Network::None => "none".to_owned(),
        Network::Namespace => "an empty one of its own".to_owned(),
        Network::Classes(classes) => classes
            .iter()
            .map(|class| match class {
                NetworkClass::Netlink => "netlink".to_owned(),
                NetworkClass::Unix => "unix".to_owned(),
                NetworkClass::Dns => "dns".to_owned(),
                NetworkClass::Icmp => "icmp".to_owned(),
                NetworkClass::Connect(to) => format!("connect to ports {}", ports(to)),
                NetworkClass::Bind(on) => format!("listen on ports {}", ports(on)),
            })
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The word of the language for a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default().replace(['"', '[', ']'], "").replace(',', " ")
}
