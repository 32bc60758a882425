#![forbid(unsafe_code)]
//! Programs: interpreters, wrappers, and what this host has of them.

use super::Report;
use gloveport_contract::catalog::{Action, ArgvItem, Builtin, is_interpreter, is_wrapper};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A program that an action names.
struct Named<'a> {
    at: String,
    path: &'a str,
    fallbacks: &'a [String],
    starts_others: bool,
}

pub(super) fn lint(action: &Action, report: &mut Report<'_>) {
    for program in named(action) {
        if is_interpreter(program.path) && program.at != "script.interpreter" {
            report.warn(
                &program.at,
                format!(
                    "`{}` is an interpreter: whatever text reaches it runs, within the sandbox; a signed \
                     `script` is safer",
                    program.path
                ),
            );
        }
        if is_wrapper(program.path) && !program.starts_others {
            report.warn(
                &program.at,
                format!(
                    "`{}` is there to start another program, and can start none without `sandbox.exec`; \
                     name the program itself",
                    program.path
                ),
            );
        }
        on_this_host(&program, report);
    }
    for (at, sandbox) in super::sandboxes(action) {
        for (index, path) in sandbox.exec.iter().enumerate() {
            on_this_host(
                &Named { at: format!("{at}.exec.{index}"), path, fallbacks: &[], starts_others: true },
                report,
            );
        }
    }
}

fn named(action: &Action) -> Vec<Named<'_>> {
    let mut found = Vec::new();
    let starts = !action.sandbox.exec.is_empty();
    let mut add = |at: String, path, fallbacks, starts_others| {
        found.push(Named { at, path, fallbacks, starts_others });
    };
    if let Some(ArgvItem::One(path)) = action.exec.iter().flatten().next() {
        add("exec.0".to_owned(), path.as_str(), action.exec_fallbacks.as_slice(), starts);
    }
    for (index, step) in action.steps.iter().flatten().enumerate() {
        if let Some(ArgvItem::One(path)) = step.exec.first() {
            let starts = step.sandbox.as_ref().map_or(starts, |own| !own.exec.is_empty());
            add(format!("steps.{index}.exec.0"), path, &step.exec_fallbacks, starts);
        }
    }
    if let Some(script) = &action.script {
        add("script.interpreter".to_owned(), &script.interpreter, &[], starts);
    }
    if action.builtin == Some(Builtin::Command) {
        let rules = action.builtin_config.iter().flat_map(|config| config.rules());
        for (index, rule) in rules.enumerate() {
            let starts = rule.sandbox.as_ref().map_or(starts, |own| !own.exec.is_empty());
            add(format!("builtin_config.commands.{index}.exec"), &rule.exec, &rule.exec_fallbacks, starts);
        }
    }
    found
}

/// What the helper will say of the program on a host like this one.
fn on_this_host(program: &Named<'_>, report: &mut Report<'_>) {
    let mut paths = std::iter::once(program.path).chain(program.fallbacks.iter().map(String::as_str));
    let Some(real) = paths.find_map(|path| fs::canonicalize(path).ok()) else {
        return report.note(
            &program.at,
            format!("`{}` does not exist on this host; the action is unsupported here", program.path),
        );
    };
    if let Some(writable) = real.ancestors().find(|part| is_open_to_others(part, *part == real)) {
        report.warn(
            &program.at,
            format!(
                "{}: others than root can write to {}, so another program can take its place; the helper \
                 refuses it",
                real.display(),
                writable.display()
            ),
        );
    }
    if is_interpreter(&real.to_string_lossy()) && !is_interpreter(program.path) {
        report.warn(&program.at, format!("{} is {} here, an interpreter", program.path, real.display()));
    }
    if begins_with_shebang(&real) {
        report.warn(
            &program.at,
            format!("{} is a `#!` file here, which never starts; use `script`", real.display()),
        );
    }
    if fs::metadata(&real).is_ok_and(|status| status.mode() & 0o6000 != 0) {
        report.note(
            &program.at,
            format!("{} is set-uid or set-gid: it runs, and gains nothing", real.display()),
        );
    }
}

/// Whether somebody else than root can write there. A sticky directory (`/tmp`) lets others add names, and
/// not replace this one.
fn is_open_to_others(path: &Path, is_program: bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|status| {
        let sticky = status.mode() & 0o1000 != 0 && !is_program;
        status.uid() != 0 || (status.mode() & 0o022 != 0 && !sticky)
    })
}

fn begins_with_shebang(path: &Path) -> bool {
    let mut head = [0; 2];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"#!"
}
