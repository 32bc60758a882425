#![forbid(unsafe_code)]
//! The rules of `builtin: command`.

use super::Report;
use gloveport_contract::catalog::{Action, Builtin, is_interpreter};

pub(super) fn lint(action: &Action, report: &mut Report<'_>) {
    if action.builtin != Some(Builtin::Command) {
        return;
    }
    let rules = action.builtin_config.iter().flat_map(|config| config.rules());
    for (index, rule) in rules.enumerate() {
        let at = format!("builtin_config.commands.{index}");
        if rule.any {
            report.warn(
                format!("{at}.any"),
                format!(
                    "`{}` takes any arguments; only for a program that can neither write nor start anything",
                    rule.name
                ),
            );
        }
        // What follows the path of a script is the script's.
        let reads_script = rule.args.first().is_some_and(|arg| arg.starts_with('/'));
        if is_interpreter(&rule.exec) && !reads_script && (rule.any || rule.operands.max > 0) {
            report.warn(format!("{at}.operands"), format!("`{}` runs what its operands name", rule.name));
        }
    }
}
