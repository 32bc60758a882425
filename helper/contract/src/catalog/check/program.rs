#![forbid(unsafe_code)]
//! What an action starts: its argv, its steps, its script, its commands.

use super::{Problem, check_absolute, check_pattern, is_name, problem, surroundings};
use crate::catalog::{
    Action, ArgvItem, Builtin, CommandEntry, CommandRule, ParamType, handlers, is_interpreter,
};
use crate::limits;
use crate::plan::{is_absolute_path, placeholder};

impl Action {
    pub(super) fn check_program(&self) -> Result<(), Problem> {
        let ways = [self.exec.is_some(), self.steps.is_some(), self.script.is_some(), self.builtin.is_some()];
        if ways.iter().filter(|given| **given).count() != 1 {
            return problem("", "give exactly one of exec, steps, script, builtin");
        }
        if self.exec.is_none() && !self.exec_fallbacks.is_empty() {
            return problem("exec_fallbacks", "only beside exec; a step has its own");
        }
        if let Some(exec) = &self.exec {
            self.check_argv("exec", exec)?;
            self.check_fallbacks("exec_fallbacks", &self.exec_fallbacks)?;
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
                self.check_fallbacks(&format!("{at}.exec_fallbacks"), &step.exec_fallbacks)?;
                if let Some(sandbox) = &step.sandbox {
                    surroundings::check_sandbox(&format!("{at}.sandbox"), sandbox)?;
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
            (Some(builtin), Some(config)) => handlers::check(self, builtin, config),
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
            Some(ArgvItem::One(program)) if is_absolute_path(program) => {
                self.check_interpreter(&format!("{at}.0"), program)?;
            }
            _ => return problem(at, "the first element is the program's absolute path"),
        }
        self.check_items(at, argv)
    }

    fn check_fallbacks(&self, at: &str, paths: &[String]) -> Result<(), Problem> {
        check_absolute(at, paths)?;
        let mut named = paths.iter().enumerate();
        named.try_for_each(|(index, path)| self.check_interpreter(&format!("{at}.{index}"), path))
    }

    /// By name; the helper looks at the file itself, behind every link.
    fn check_interpreter(&self, at: &str, path: &str) -> Result<(), Problem> {
        if is_interpreter(path) && !self.allow_interpreter { interpreter(at, path) } else { Ok(()) }
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
}

fn check_rule(at: &str, rule: &CommandRule) -> Result<(), Problem> {
    if !is_name(&rule.name) {
        return problem(format!("{at}.name"), "a command's name is 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    check_absolute(&format!("{at}.exec"), std::slice::from_ref(&rule.exec))?;
    check_absolute(&format!("{at}.exec_fallbacks"), &rule.exec_fallbacks)?;
    let mut programs = std::iter::once(&rule.exec).chain(&rule.exec_fallbacks);
    if let Some(path) = programs.find(|path| is_interpreter(path)).filter(|_| !rule.allow_interpreter) {
        return interpreter(&format!("{at}.exec"), path);
    }
    if let Some(pattern) = &rule.operand {
        check_pattern(&format!("{at}.operand"), pattern)?;
    }
    let is_optstring = rule.short.bytes().all(|b| b.is_ascii_graphic() && b != b'-');
    if !is_optstring || rule.short.starts_with(':') || rule.short.contains(":::") {
        return problem(format!("{at}.short"), "an optstring as getopt(3) has it, such as \"ln:\"");
    }
    let letters = rule.short.bytes().filter(|b| *b != b':');
    if let Some(twice) = letters.clone().find(|a| letters.clone().filter(|b| a == b).count() > 1) {
        return problem(format!("{at}.short"), format!("`{}` stands twice", char::from(twice)));
    }
    let long_name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let names: Vec<String> = rule.long.iter().map(|option| long_name(option)).collect();
    if let Some(twice) = names.iter().find(|a| names.iter().filter(|b| a == b).count() > 1) {
        return problem(format!("{at}.long"), format!("`{twice}` stands twice"));
    }
    if let Some(option) = rule.long.iter().find(|option| option.starts_with('-') || option.is_empty()) {
        return problem(format!("{at}.long"), format!("`{option}`: a long option is named without dashes"));
    }
    if let Some(option) = rule.single_dash.iter().find(|option| !option.starts_with('-')) {
        return problem(format!("{at}.single_dash"), format!("`{option}` does not begin with a dash"));
    }
    let getopt = !rule.short.is_empty() || !rule.long.is_empty();
    if getopt && !rule.single_dash.is_empty() {
        return problem(format!("{at}.single_dash"), "takes the place of `short` and `long`; give one kind");
    }
    if rule.any && !takes_no_rules(rule) {
        return problem(format!("{at}.any"), "permits every argument: other rules beside it would not hold");
    }
    match &rule.sandbox {
        Some(sandbox) => surroundings::check_sandbox(&format!("{at}.sandbox"), sandbox),
        None => Ok(()),
    }
}

/// Whether a rule says nothing about arguments.
fn takes_no_rules(rule: &CommandRule) -> bool {
    let lists = [&rule.long, &rule.single_dash, &rule.words, &rule.required];
    rule.short.is_empty() && rule.operand.is_none() && lists.iter().all(|list| list.is_empty())
}

fn interpreter(at: &str, path: &str) -> Result<(), Problem> {
    problem(
        at,
        format!(
            "`{path}` is an interpreter: it would run whatever text it is given; use `script`, or say \
             `allow_interpreter: true`"
        ),
    )
}
