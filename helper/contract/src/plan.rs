#![forbid(unsafe_code)]
//! From a call to what would run: parameters checked, argv rendered, timeout and directory settled.
//!
//! Both sides make the same [`Plan`] out of the same action and arguments. The daemon sends the argv of its
//! plan along; the helper compares it with its own, and a difference is refused.

mod values;

use crate::catalog::{Action, ArgvItem, Builtin, Directory, Param, ParamType, Sandbox, Timeout};
use crate::packet::{Argument, Content, Scalar, Value};
use crate::{command, limits};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use values::{Bound, bind, text};

pub(crate) use values::check_default;

/// What would run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<'a> {
    /// Its programs, in order.
    pub steps: Vec<PlannedStep<'a>>,
    /// How long all of them may take together.
    pub timeout: Duration,
    /// Where they start.
    pub cwd: PlannedDirectory<'a>,
    /// Path parameters that must exist, to be looked at as `run_as` before anything starts.
    pub paths: Vec<PlannedPath<'a>>,
}

/// One program.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStep<'a> {
    /// Its name in the result.
    pub name: &'a str,
    /// What kind of program it is.
    pub kind: StepKind<'a>,
    /// Its argv, whole.
    pub argv: Vec<Vec<u8>>,
    /// Its sandbox; of a handler, what its configuration needs and nothing else.
    pub sandbox: Cow<'a, Sandbox>,
}

/// What kind of program a step starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepKind<'a> {
    /// A program on the host, and what may stand in for it where it does not exist.
    Program {
        /// Its absolute path.
        path: &'a str,
        /// Other absolute paths.
        fallbacks: &'a [String],
    },
    /// A signed script; its argv begins with the interpreter and holds [`SCRIPT_PLACE`] where the script is.
    Script {
        /// The interpreter's absolute path.
        interpreter: &'a str,
        /// The script's bytes.
        body: &'a str,
    },
    /// A built-in of `gloveport-handler`.
    Handler(Builtin),
}

/// The descriptor of a script, as its interpreter sees it. The helper puts the sealed script there.
pub const SCRIPT_PLACE: &str = "/proc/self/fd/3";

/// Where a program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedDirectory<'a> {
    /// The absolute path.
    pub path: String,
    /// Directories that it must lie under after resolving; empty where the catalogue fixed it.
    pub roots: &'a [String],
}

/// A path that a caller gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPath<'a> {
    /// The parameter.
    pub name: &'a str,
    /// The absolute path.
    pub path: String,
    /// Directories that it must lie under after resolving.
    pub roots: &'a [String],
    /// Whether it must exist.
    pub must_exist: bool,
}

/// Why a call cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// An argument does not fit its parameter.
    Argument {
        /// The parameter's name as the caller wrote it.
        name: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A command is not within its rules.
    Command(command::Blocked),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument { name, problem } => write!(f, "{name}: {problem}"),
            Self::Command(blocked) => blocked.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

fn refuse<T>(name: &str, problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Argument { name: name.to_owned(), problem: problem.into() })
}

/// Whether a text is an absolute path without `.`, `..`, empty parts, a trailing slash or NUL.
pub fn is_absolute_path(text: &str) -> bool {
    match text.strip_prefix('/') {
        None => false,
        Some("") => true,
        Some(rest) => {
            text.len() <= 4095
                && !text.contains('\0')
                && rest.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        }
    }
}

/// Whether `path` is `root` or lies under it, at a component boundary.
pub fn is_under(path: &str, root: &str) -> bool {
    root == "/" || path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The parameter that a whole element stands for: `{name}`.
pub fn placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!name.is_empty() && name.len() <= limits::NAME && name.bytes().all(word)).then_some(name)
}

/// Compiles a pattern that must match a value as a whole.
///
/// # Errors
/// What regex-lite says of a pattern that is none or would compile too large.
pub fn whole_pattern(pattern: &str) -> Result<regex_lite::Regex, regex_lite::Error> {
    // Compiled alone first: `a)(b` must not become valid by the brackets put around it.
    regex_lite::Regex::new(pattern)?;
    regex_lite::RegexBuilder::new(&format!(r"\A(?:{pattern})\z")).size_limit(limits::PATTERN_SIZE).build()
}

/// Makes the plan of a call.
///
/// # Errors
/// The first argument that does not fit, or the rule that a command breaks.
pub fn plan<'a>(
    action: &'a Action,
    args: &[Argument],
    content: Option<&Content>,
) -> Result<Plan<'a>, Refusal> {
    let bound = bind(action, args, content)?;
    let timeout = match &action.timeout {
        None => Duration::from_millis(limits::TIMEOUT_DEFAULT_MS),
        Some(Timeout::Fixed(time)) => Duration::from_millis(time.0),
        Some(Timeout::Param { param, default, max }) => match bound.get(param) {
            Some(Value::Integer(seconds)) => {
                let seconds = u64::try_from(*seconds).unwrap_or(0).max(1);
                Duration::from_secs(seconds).min(Duration::from_millis(max.0))
            }
            _ => Duration::from_millis(default.0),
        },
    };
    Ok(Plan {
        steps: steps(action, &bound)?,
        timeout,
        cwd: directory(action, &bound)?,
        paths: paths(action, &bound),
    })
}

fn directory<'a>(action: &'a Action, bound: &Bound<'_>) -> Result<PlannedDirectory<'a>, Refusal> {
    match &action.cwd {
        None => Ok(PlannedDirectory { path: "/".into(), roots: &[] }),
        Some(Directory::Fixed(path)) => Ok(PlannedDirectory { path: path.clone(), roots: &[] }),
        Some(Directory::Param { param, roots }) => match bound.get(param) {
            Some(Value::Text(bytes)) => {
                let path = text(param, bytes)?;
                if !is_absolute_path(path) {
                    return refuse(
                        param,
                        "must be an absolute path without `.`, `..`, empty parts and trailing slash",
                    );
                }
                if !roots.iter().any(|root| is_under(path, root)) {
                    return refuse(param, format!("must lie under one of: {}", roots.join(", ")));
                }
                Ok(PlannedDirectory { path: path.to_owned(), roots })
            }
            _ => Ok(PlannedDirectory { path: "/".into(), roots: &[] }),
        },
    }
}

fn paths<'a>(action: &'a Action, bound: &Bound<'_>) -> Vec<PlannedPath<'a>> {
    let mut found = Vec::new();
    let mut add = |name: &'a str, param: &'a Param, bytes: &[u8]| {
        let path = String::from_utf8_lossy(bytes).into_owned();
        found.push(PlannedPath { name, path, roots: &param.roots, must_exist: param.must_exist });
    };
    for (name, param) in action.params.iter() {
        match (param.kind, bound.get(name), &param.items) {
            (ParamType::Path, Some(Value::Text(bytes)), _) => add(name, param, bytes),
            (ParamType::List, Some(Value::List(items)), Some(item)) if item.kind == ParamType::Path => {
                for scalar in items {
                    if let Scalar::Text(bytes) = scalar {
                        add(name, item, bytes);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn steps<'a>(action: &'a Action, bound: &Bound<'_>) -> Result<Vec<PlannedStep<'a>>, Refusal> {
    let main = |kind, argv| PlannedStep { name: "main", kind, argv, sandbox: Cow::Borrowed(&action.sandbox) };
    if let Some(exec) = &action.exec {
        let kind = StepKind::Program { path: program(exec), fallbacks: &action.exec_fallbacks };
        return Ok(vec![main(kind, render(exec, bound)?)]);
    }
    if let Some(steps) = &action.steps {
        return steps
            .iter()
            .map(|step| {
                Ok(PlannedStep {
                    name: &step.name,
                    kind: StepKind::Program { path: program(&step.exec), fallbacks: &step.exec_fallbacks },
                    argv: render(&step.exec, bound)?,
                    sandbox: Cow::Borrowed(step.sandbox.as_ref().unwrap_or(&action.sandbox)),
                })
            })
            .collect();
    }
    if let Some(script) = &action.script {
        let mut argv = vec![script.interpreter.clone().into_bytes()];
        if is_python(&script.interpreter) {
            // Isolated mode: neither the environment nor the working directory can add modules.
            argv.push(b"-I".to_vec());
        }
        argv.push(SCRIPT_PLACE.into());
        argv.extend(render(&script.args, bound)?);
        let body = script.body.as_deref().unwrap_or_default();
        return Ok(vec![main(StepKind::Script { interpreter: &script.interpreter, body }, argv)]);
    }
    match (action.builtin, &action.builtin_config) {
        (Some(Builtin::Command), Some(config)) => {
            let Some(Value::Text(bytes)) = bound.get("command") else {
                return refuse("command", "required");
            };
            let resolved = command::resolve(config, text("command", bytes)?).map_err(Refusal::Command)?;
            Ok(vec![PlannedStep {
                name: "main",
                kind: StepKind::Program {
                    path: &resolved.rule.exec,
                    fallbacks: &resolved.rule.exec_fallbacks,
                },
                argv: resolved.argv,
                sandbox: Cow::Borrowed(resolved.rule.sandbox.as_ref().unwrap_or(&action.sandbox)),
            }])
        }
        (Some(builtin), config) => {
            let argv = vec![b"gloveport-handler".to_vec(), builtin.as_str().into()];
            let sandbox = Cow::Owned(builtin.sandbox(config.as_ref()));
            Ok(vec![PlannedStep { sandbox, ..main(StepKind::Handler(builtin), argv) }])
        }
        (None, _) => refuse("action", "the catalogue declares nothing to run"),
    }
}

/// Whether an interpreter is a Python, by the name of its file.
fn is_python(interpreter: &str) -> bool {
    let name = interpreter.rsplit('/').next().unwrap_or_default();
    name.strip_prefix("python").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

fn program(argv: &[ArgvItem]) -> &str {
    match argv.first() {
        Some(ArgvItem::One(path)) => path,
        _ => "",
    }
}

/// Renders an argv: literals as they are, a placeholder as one element (a list: as several), a group only
/// when all its parameters are given; an empty list is not.
fn render(argv: &[ArgvItem], bound: &Bound<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut rendered = Vec::with_capacity(argv.len());
    for item in argv {
        match item {
            ArgvItem::One(text) => element(text, bound, false, &mut rendered),
            ArgvItem::Group(items) => {
                let given = |name: &str| match bound.get(name) {
                    None | Some(Value::Null | Value::Boolean(false)) => false,
                    // `--unit` without its value would swallow the next argument.
                    Some(Value::List(items)) => !items.is_empty(),
                    Some(_) => true,
                };
                if items.iter().filter_map(|text| placeholder(text)).all(given) {
                    items.iter().for_each(|text| element(text, bound, true, &mut rendered));
                }
            }
        }
    }
    if rendered.len() > limits::ARGV {
        return refuse(
            "arguments",
            format!("{} arguments for one program; at most {}", rendered.len(), limits::ARGV),
        );
    }
    Ok(rendered)
}

fn element(text: &str, bound: &Bound<'_>, in_group: bool, into: &mut Vec<Vec<u8>>) {
    let Some(name) = placeholder(text) else {
        into.push(text.as_bytes().to_vec());
        return;
    };
    match bound.get(name) {
        None | Some(Value::Null) => {}
        // In a group a boolean is a switch: it decides about the group and adds nothing itself.
        Some(Value::Boolean(_)) if in_group => {}
        Some(Value::List(items)) => into.extend(items.iter().map(scalar)),
        Some(Value::Boolean(b)) => into.push(scalar(&Scalar::Boolean(*b))),
        Some(Value::Integer(i)) => into.push(scalar(&Scalar::Integer(*i))),
        Some(Value::Text(t)) => into.push(t.clone()),
    }
}

fn scalar(value: &Scalar) -> Vec<u8> {
    match value {
        Scalar::Boolean(b) => b.to_string().into_bytes(),
        Scalar::Integer(i) => i.to_string().into_bytes(),
        Scalar::Text(t) => t.clone(),
    }
}

#[cfg(test)]
mod tests;
