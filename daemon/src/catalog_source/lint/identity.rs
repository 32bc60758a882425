#![forbid(unsafe_code)]
//! Identity and risk: who runs it, and what the action says about itself.

use super::Report;
use gloveport_contract::catalog::{Action, Approval, Builtin, Risk, Sandbox, is_root_group};

pub(super) fn lint(action: &Action, report: &mut Report<'_>) {
    let account = action.run_as();
    if matches!(account.split(':').next(), Some("root" | "0")) {
        report.warn(
            "run_as",
            "runs as root: without capabilities, and still trusted wherever the uid alone counts; a group \
             or a file mode may be enough",
        );
    } else if account.contains(':') {
        report.warn(
            "run_as",
            format!("why `{account}` and not a name? The numbers may be somebody else's on another host"),
        );
    }
    for (index, group) in action.groups.iter().enumerate() {
        let (name, _) = Sandbox::optional_path(group);
        if is_root_group(name) {
            report.warn(
                format!("groups.{index}"),
                format!("who is in the group `{name}` can become root on the host"),
            );
        }
    }
    if action.host_root {
        report.warn("host_root", "the action can become root on the host, and says that it means to");
    }
    if action.risk == Risk::Dangerous && action.approval == Approval::None {
        report.note("risk", "dangerous, and no person is asked: `approval: required` would");
    }
    if action.risk == Risk::Read {
        if let Some((at, _)) = super::sandboxes(action).iter().find(|(_, sandbox)| !sandbox.write.is_empty())
        {
            report.warn(format!("{at}.write"), "`risk: read` says that nothing is changed, yet it may write");
        }
        if action.builtin == Some(Builtin::WriteFile) {
            report.warn("risk", "`risk: read` says that nothing is changed, yet write_file writes");
        }
    }
    if action.redact.builtin.is_empty() {
        report.warn("redact.builtin", "secrets in the output reach the client: nothing recognises them");
    }
}
