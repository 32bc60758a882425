#![forbid(unsafe_code)]
//! What a catalogue must fulfil before anybody signs it, and again before the helper acts on it.

use super::{
    Action, Approval, ArgvItem, Builtin, Catalog, CommandEntry, CommandRule, Directory, FORMAT, Filter,
    Network, NetworkClass, OnDisconnect, Param, ParamType, Sandbox, Script, Timeout,
};
use crate::limits;
use crate::plan::{is_absolute_path, placeholder};
use crate::units::Millis;
use std::fmt;

/// What is wrong, and where: `path` leads to the key as a reader would say it (`params.unit.pattern`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogError {
    /// The action it belongs to; empty for the document itself.
    pub action: String,
    /// The way to the key, from the action.
    pub path: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.action.is_empty(), self.path.is_empty()) {
            (true, _) => f.write_str(&self.problem),
            (false, true) => write!(f, "action `{}`: {}", self.action, self.problem),
            (false, false) => write!(f, "action `{}`, {}: {}", self.action, self.path, self.problem),
        }
    }
}

impl std::error::Error for CatalogError {}

/// Whether a text can name an action, a step, a token: `[A-Za-z0-9._-]{1,64}` (the rule of MCP tool names).
pub fn is_name(text: &str) -> bool {
    (1..=limits::NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// A key and what is wrong with it.
type Problem = (String, String);

fn problem<T>(path: impl Into<String>, text: impl Into<String>) -> Result<T, Problem> {
    Err((path.into(), text.into()))
}

impl Catalog {
    /// Checks the whole document.
    ///
    /// # Errors
    /// The first problem found, with the action and the key.
    pub fn check(&self) -> Result<(), CatalogError> {
        let document = |problem: String| CatalogError { action: String::new(), path: String::new(), problem };
        if self.format != FORMAT {
            return Err(document(format!(
                "format {} is not known; this version reads {FORMAT}",
                self.format
            )));
        }
        if self.actions.len() > limits::ACTIONS {
            return Err(document(format!("{} actions; at most {}", self.actions.len(), limits::ACTIONS)));
        }
        for pair in self.actions.windows(2) {
            if let [first, second] = pair
                && first.name >= second.name
            {
                return Err(document(format!(
                    "action `{}` stands twice or out of order; actions are sorted by name",
                    second.name
                )));
            }
        }
        self.actions.iter().try_for_each(|action| {
            action.check()?;
            match &action.script {
                Some(script) => embedded(script).map_err(|(path, problem)| CatalogError {
                    action: action.name.clone(),
                    path,
                    problem,
                }),
                None => Ok(()),
            }
        })
    }
}

/// A signed catalogue carries the bytes of its scripts.
fn embedded(script: &Script) -> Result<(), Problem> {
    let Some(body) = &script.body else {
        return problem("script.body", "the script's text is missing; `gloveport catalog build` embeds it");
    };
    if script.sha256.as_deref() != Some(hex(&hmac_sha256::Hash::hash(body.as_bytes())).as_str()) {
        return problem("script.sha256", "the digest is not that of the script's text");
    }
    Ok(())
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Action {
    /// Checks one action.
    ///
    /// # Errors
    /// The first problem found, with the key.
    pub fn check(&self) -> Result<(), CatalogError> {
        self.check_keys().map_err(|(path, problem)| CatalogError { action: self.name.clone(), path, problem })
    }

    fn check_keys(&self) -> Result<(), Problem> {
        if !is_name(&self.name) {
            return problem("name", "a name is 1 to 64 of the characters A-Z a-z 0-9 . _ -");
        }
        if self.description.trim().is_empty() {
            return problem("description", "say what the action does: agents choose by this text");
        }
        for (name, param) in self.params.iter() {
            check_param(&format!("params.{name}"), name, param)?;
        }
        if self.params.len() > limits::ARGUMENTS {
            return problem("params", format!("at most {} parameters", limits::ARGUMENTS));
        }
        if self.params.iter().filter(|(_, p)| p.kind == ParamType::Content).count() > 1 {
            return problem("params", "at most one parameter of type content: there is one stdin");
        }
        self.check_built()?;
        self.check_program()?;
        self.check_surroundings()?;
        self.check_output()?;
        check_sandbox("sandbox", &self.sandbox)
    }

    /// Refuses by name what this version parses and does not do yet; nothing is ever ignored.
    fn check_built(&self) -> Result<(), Problem> {
        let sandboxes = || {
            let steps = self.steps.iter().flatten().filter_map(|step| step.sandbox.as_ref());
            let rules =
                self.builtin_config.iter().flat_map(|c| c.rules()).filter_map(|rule| rule.sandbox.as_ref());
            std::iter::once(&self.sandbox).chain(steps).chain(rules)
        };
        let missing = [
            ("approval", self.approval == Approval::Required),
            ("on_disconnect", self.on_disconnect == OnDisconnect::Finish),
            ("sandbox.isolate_pids", sandboxes().any(|sandbox| sandbox.isolate_pids)),
            ("sandbox.private_tmp", sandboxes().any(|sandbox| sandbox.private_tmp.is_some())),
            ("sandbox.network", sandboxes().any(|sandbox| sandbox.network == Network::Namespace)),
        ];
        match missing.iter().find(|(_, used)| *used) {
            Some((key, _)) => problem(*key, "this setting is not in this version"),
            None => Ok(()),
        }
    }

    fn check_program(&self) -> Result<(), Problem> {
        let ways = [self.exec.is_some(), self.steps.is_some(), self.script.is_some(), self.builtin.is_some()];
        if ways.iter().filter(|given| **given).count() != 1 {
            return problem("", "give exactly one of exec, steps, script, builtin");
        }
        if self.exec.is_none() && !self.exec_fallbacks.is_empty() {
            return problem("exec_fallbacks", "only beside exec; a step has its own");
        }
        if let Some(exec) = &self.exec {
            self.check_argv("exec", exec)?;
            check_absolute("exec_fallbacks", &self.exec_fallbacks)?;
        }
        if let Some(steps) = &self.steps {
            if steps.is_empty() || steps.len() > limits::STEPS {
                return problem("steps", format!("between 1 and {} steps", limits::STEPS));
            }
            for (index, step) in steps.iter().enumerate() {
                let at = format!("steps.{index}");
                if !is_name(&step.name) {
                    return problem(format!("{at}.name"), "a name is 1 to 64 of A-Z a-z 0-9 . _ -");
                }
                if steps.iter().filter(|other| other.name == step.name).count() > 1 {
                    return problem(format!("{at}.name"), format!("the step `{}` stands twice", step.name));
                }
                self.check_argv(&format!("{at}.exec"), &step.exec)?;
                check_absolute(&format!("{at}.exec_fallbacks"), &step.exec_fallbacks)?;
                if let Some(sandbox) = &step.sandbox {
                    check_sandbox(&format!("{at}.sandbox"), sandbox)?;
                }
            }
        }
        if let Some(script) = &self.script {
            check_absolute("script.interpreter", std::slice::from_ref(&script.interpreter))?;
            self.check_items("script.args", &script.args)?;
        }
        match (self.builtin, &self.builtin_config) {
            (None, Some(_)) => problem("builtin_config", "only beside builtin"),
            (Some(Builtin::Command), config) => {
                let rules: Vec<&CommandEntry> = config.iter().flat_map(|c| &c.commands).collect();
                self.check_commands(&rules)
            }
            (Some(_), None) => problem("builtin_config", "this builtin needs its configuration"),
            (Some(builtin), Some(config)) => super::handlers::check(self, builtin, config),
            (None, None) => Ok(()),
        }
    }

    fn check_commands(&self, entries: &[&CommandEntry]) -> Result<(), Problem> {
        if entries.is_empty() {
            return problem("builtin_config.commands", "name at least one command");
        }
        match self.params.get("command") {
            Some(param) if param.kind == ParamType::String && param.is_required() => {}
            _ => return problem("params.command", "builtin: command needs a required string `command`"),
        }
        let mut names: Vec<&str> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let at = format!("builtin_config.commands.{index}");
            let CommandEntry::Rule(rule) = entry else {
                return problem(at, "a command is {name, exec, …}");
            };
            if names.contains(&rule.name.as_str()) {
                return problem(format!("{at}.name"), format!("`{}` stands twice", rule.name));
            }
            names.push(&rule.name);
            check_rule(&at, rule)?;
        }
        Ok(())
    }

    fn check_argv(&self, at: &str, argv: &[ArgvItem]) -> Result<(), Problem> {
        match argv.first() {
            Some(ArgvItem::One(program)) if is_absolute_path(program) => {}
            _ => return problem(at, "the first element is the program's absolute path"),
        }
        self.check_items(at, argv)
    }

    fn check_items(&self, at: &str, argv: &[ArgvItem]) -> Result<(), Problem> {
        for (index, item) in argv.iter().enumerate() {
            let at = format!("{at}.{index}");
            match item {
                ArgvItem::One(text) => {
                    if let Some(name) = self.check_element(&at, text)?
                        && self.params.get(name).is_some_and(|param| param.optional)
                    {
                        return problem(
                            at,
                            format!("`{name}` is optional: put it into an optional group, [\"{{{name}}}\"]"),
                        );
                    }
                }
                ArgvItem::Group(items) => {
                    let mut named = 0;
                    for text in items {
                        named += usize::from(self.check_element(&at, text)?.is_some());
                    }
                    if named == 0 {
                        return problem(
                            at,
                            "an optional group needs a \"{parameter}\" that decides about it",
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks one element; yields the parameter that it stands for.
    fn check_element<'t>(&self, at: &str, text: &'t str) -> Result<Option<&'t str>, Problem> {
        if text.contains('\0') {
            return problem(at, "an argument cannot hold NUL");
        }
        if let Some(name) = placeholder(text) {
            return match self.params.get(name) {
                None => problem(at, format!("`{name}` is not a parameter of this action")),
                Some(param) if param.kind == ParamType::Content => {
                    problem(at, format!("`{name}` is content: it travels by stdin, not in argv"))
                }
                Some(param) if param.secret => {
                    problem(at, format!("`{name}` is secret: every local user can read an argv"))
                }
                Some(_) => Ok(Some(name)),
            };
        }
        match self.params.iter().find(|(name, _)| text.contains(&format!("{{{name}}}"))) {
            Some((name, _)) => problem(
                at,
                format!("\"{{{name}}}\" must be a whole element: write [\"--option\", \"{{{name}}}\"]"),
            ),
            None => Ok(None),
        }
    }

    fn check_surroundings(&self) -> Result<(), Problem> {
        match &self.timeout {
            Some(Timeout::Fixed(time)) => check_time("timeout", *time)?,
            Some(Timeout::Param { param, default, max }) => {
                check_time("timeout.default", *default)?;
                check_time("timeout.max", *max)?;
                match self.params.get(param) {
                    Some(p) if p.kind == ParamType::Integer => {}
                    _ => return problem("timeout.param", format!("`{param}` is no integer parameter")),
                }
            }
            None => {}
        }
        match &self.cwd {
            Some(Directory::Fixed(path)) if !is_absolute_path(path) => {
                return problem("cwd", "an absolute path without `.`, `..` and empty parts");
            }
            Some(Directory::Param { param, roots }) => {
                check_absolute("cwd.roots", roots)?;
                match self.params.get(param) {
                    Some(p) if matches!(p.kind, ParamType::String | ParamType::Path) => {}
                    _ => return problem("cwd.param", format!("`{param}` is no path parameter")),
                }
            }
            _ => {}
        }
        check_account("run_as", self.run_as())?;
        for (name, value) in self.env.iter() {
            let at = format!("env.{name}");
            let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            if name.is_empty() || !name.bytes().all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
                return problem(at, "a variable's name is letters, digits and _");
            }
            if is_loader_variable(name) {
                return problem(at, "this variable makes programs load or run code: not in an action");
            }
            if value.contains('\0') {
                return problem(at, "a variable cannot hold NUL");
            }
        }
        let l = &self.limits;
        check_range("limits.processes", l.processes(), 1, limits::PROCESSES_MAX)?;
        check_range("limits.open_files", l.open_files(), limits::OPEN_FILES_MIN, limits::OPEN_FILES_MAX)?;
        check_range("limits.file_size", l.file_size(), 0, limits::FILE_SIZE_MAX)?;
        // The upper end is a quarter of the task size: more would let a program fill its address space
        // down to the page that one-shot exec guards.
        check_range("limits.memory", l.address_space(), 1 << 20, 32 << 40)?;
        check_range("concurrency", self.concurrency().into(), 1, 1024)
    }

    fn check_output(&self) -> Result<(), Problem> {
        check_range("max_output", self.max_output(), 1, limits::OUTPUT_MAX)?;
        check_range("max_scan", self.max_scan(), 1, limits::SCAN_MAX)?;
        if self.builtin.is_some() && !self.filters.is_empty() {
            return problem("filters", "a builtin has no filters");
        }
        for (index, filter) in self.filters.iter().enumerate() {
            if self.filters.iter().filter(|other| *other == filter).count() > 1 {
                return problem(format!("filters.{index}"), "stands twice");
            }
            if matches!(self.arguments, super::Arguments::Flat) && self.params.get(filter.as_str()).is_some()
            {
                return problem(format!("filters.{index}"), "a flat parameter has the same name");
            }
        }
        match self.redact.builtin.iter().find(|name| *name != "secrets") {
            Some(name) => problem("redact.builtin", format!("`{name}` is not known; `secrets` is")),
            None => Ok(()),
        }
    }
}

impl Filter {
    /// The word used in catalogues and calls.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Exclude => "exclude",
            Self::Tail => "tail",
            Self::Head => "head",
            Self::Count => "count",
        }
    }
}

fn check_range(at: &str, value: u64, min: u64, max: u64) -> Result<(), Problem> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        problem(at, format!("{value} is not within {min} to {max}"))
    }
}

fn check_time(at: &str, time: Millis) -> Result<(), Problem> {
    if (1..=limits::TIMEOUT_MAX_MS).contains(&time.0) {
        Ok(())
    } else {
        problem(at, format!("{time} is not within 1ms to {}", Millis(limits::TIMEOUT_MAX_MS)))
    }
}

fn check_absolute(at: &str, paths: &[String]) -> Result<(), Problem> {
    match paths.iter().find(|path| !is_absolute_path(path)) {
        Some(path) => {
            problem(at, format!("`{path}` is not an absolute path without `.`, `..` and empty parts"))
        }
        None => Ok(()),
    }
}

/// A name, or `uid:gid`. The highest number means "no change" to setresuid(2) and is refused.
fn check_account(at: &str, account: &str) -> Result<(), Problem> {
    let number = |text: &str| text.parse::<u32>().is_ok_and(|n| n != u32::MAX);
    let ok = match account.split_once(':') {
        Some((uid, gid)) => number(uid) && number(gid),
        None => {
            !account.is_empty()
                && account.len() <= 256
                && !account.starts_with(|c: char| c == '-' || c.is_ascii_digit())
                && account
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'$'))
        }
    };
    if ok { Ok(()) } else { problem(at, "a name of /etc/passwd, or \"uid:gid\" in numbers") }
}

/// Variables through which a loader, an interpreter or a pager runs foreign code.
fn is_loader_variable(name: &str) -> bool {
    const NAMES: [&str; 19] = [
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "IFS",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "LOCPATH",
        "NLSPATH",
        "RESOLV_HOST_CONF",
        "HOSTALIASES",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "RUBYOPT",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "LESSOPEN",
    ];
    const PREFIXES: [&str; 6] = ["LD_", "MALLOC_", "PYTHON", "PERL5", "GIT_", "BASH_FUNC_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn check_sandbox(at: &str, sandbox: &Sandbox) -> Result<(), Problem> {
    for (key, paths) in [("read", &sandbox.read), ("write", &sandbox.write)] {
        for (index, declared) in paths.iter().enumerate() {
            let (path, _) = Sandbox::optional_path(declared);
            if !is_absolute_path(path) {
                return problem(
                    format!("{at}.{key}.{index}"),
                    format!("`{path}` is not an absolute path without `.`, `..` and empty parts"),
                );
            }
        }
    }
    check_absolute(&format!("{at}.exec"), &sandbox.exec)?;
    if let Network::Classes(classes) = &sandbox.network {
        for class in classes {
            if let NetworkClass::Connect(ports) | NetworkClass::Bind(ports) = class
                && (ports.is_empty() || ports.contains(&0))
            {
                return problem(format!("{at}.network"), "name the ports, each from 1 to 65535");
            }
        }
    }
    match sandbox.bounding.iter().find(|name| name.as_str() != "net_raw") {
        Some(name) => problem(format!("{at}.bounding"), format!("`{name}` is not known; `net_raw` is")),
        None => Ok(()),
    }
}

fn check_rule(at: &str, rule: &CommandRule) -> Result<(), Problem> {
    if !is_name(&rule.name) {
        return problem(format!("{at}.name"), "a command's name is 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    check_absolute(&format!("{at}.exec"), std::slice::from_ref(&rule.exec))?;
    check_absolute(&format!("{at}.exec_fallbacks"), &rule.exec_fallbacks)?;
    if let Some(pattern) = &rule.operand {
        check_pattern(&format!("{at}.operand"), pattern)?;
    }
    if !rule.short.is_ascii() || rule.short.contains([' ', '-']) || rule.short.starts_with(':') {
        return problem(format!("{at}.short"), "an optstring as getopt(3) has it, such as \"ln:\"");
    }
    if let Some(option) = rule.long.iter().find(|option| option.starts_with('-') || option.is_empty()) {
        return problem(format!("{at}.long"), format!("`{option}`: a long option is named without dashes"));
    }
    if let Some(option) = rule.single_dash.iter().find(|option| !option.starts_with('-')) {
        return problem(format!("{at}.single_dash"), format!("`{option}` does not begin with a dash"));
    }
    match &rule.sandbox {
        Some(sandbox) => check_sandbox(&format!("{at}.sandbox"), sandbox),
        None => Ok(()),
    }
}

fn check_pattern(at: &str, pattern: &str) -> Result<(), Problem> {
    if pattern.chars().count() > limits::PATTERN_LENGTH {
        return problem(at, format!("longer than {} characters", limits::PATTERN_LENGTH));
    }
    match crate::plan::whole_pattern(pattern) {
        Ok(_) => Ok(()),
        Err(error) => problem(at, format!("not a pattern (RE2 syntax without Unicode classes): {error}")),
    }
}

fn check_param(at: &str, name: &str, param: &Param) -> Result<(), Problem> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || name.len() > limits::NAME || !name.bytes().all(word) {
        return problem(at, "a parameter's name is 1 to 64 letters, digits and _");
    }
    let kind = param.kind;
    let takes = |key: &str, given: bool, kinds: &[ParamType]| {
        if given && !kinds.contains(&kind) {
            problem(format!("{at}.{key}"), format!("a parameter of type {} has no `{key}`", kind.as_str()))
        } else {
            Ok(())
        }
    };
    use ParamType::{Boolean, Content, Enum, Integer, List, Path, String};
    takes("pattern", param.pattern.is_some(), &[String])?;
    takes("min", param.min.is_some(), &[Integer])?;
    takes("max", param.max.is_some(), &[Integer])?;
    takes("min_length", param.min_length.is_some(), &[String, Content])?;
    takes("max_length", param.max_length.is_some(), &[String, Path, Content])?;
    takes("values", !param.values.is_empty(), &[Enum])?;
    takes("roots", !param.roots.is_empty(), &[Path])?;
    takes("must_exist", param.must_exist, &[Path])?;
    takes("allow_dash", param.allow_dash, &[String, Integer])?;
    takes("secret", param.secret, &[String, Content])?;
    takes("items", param.items.is_some(), &[List])?;
    takes("min_items", param.min_items.is_some(), &[List])?;
    takes("max_items", param.max_items.is_some(), &[List])?;
    takes("default", param.default.is_some(), &[String, Integer, Boolean, Enum, Path, List])?;
    let ordered = |low: Option<u64>, high: Option<u64>, key: &str| match (low, high) {
        (Some(low), Some(high)) if low > high => {
            problem(format!("{at}.{key}"), "the lower end is above the upper")
        }
        _ => Ok(()),
    };
    ordered(param.min_length, param.max_length, "min_length")?;
    ordered(param.min_items, param.max_items, "min_items")?;
    if let (Some(min), Some(max)) = (param.min, param.max)
        && min > max
    {
        return problem(format!("{at}.min"), "the lower end is above the upper");
    }
    if let Some(pattern) = &param.pattern {
        check_pattern(&format!("{at}.pattern"), pattern)?;
    }
    check_absolute(&format!("{at}.roots"), &param.roots)?;
    match kind {
        Enum if param.values.is_empty() => problem(format!("{at}.values"), "an enum names its values"),
        Path if param.roots.is_empty() => problem(format!("{at}.roots"), "a path names its roots"),
        List => match &param.items {
            None => problem(format!("{at}.items"), "a list names the type of its items"),
            Some(item) if matches!(item.kind, List | Content) => {
                problem(format!("{at}.items.type"), "a list is of one scalar type")
            }
            Some(item) if item.optional || item.default.is_some() => {
                problem(format!("{at}.items"), "an item is neither optional nor has it a default")
            }
            Some(item) => check_param(&format!("{at}.items"), name, item),
        },
        _ => Ok(()),
    }?;
    if param.optional && param.default.is_some() {
        return problem(format!("{at}.optional"), "a parameter with a default is always given");
    }
    match &param.default {
        Some(default) => crate::plan::check_default(name, param, default)
            .map_err(|error| (format!("{at}.default"), error.to_string())),
        None => Ok(()),
    }
}
