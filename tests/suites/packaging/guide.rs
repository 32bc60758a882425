//! The catalogue guide, followed by its letter on a fresh installation: from the task to a call of the signed action.

use super::machine::Machine;
use gloveport_tests::programs;
use std::fs;

/// The action of the guide, and its lines of shell.
struct Guide {
    text: String,
}

impl Guide {
    fn read() -> Self {
        let place = programs::repository().join("docs/catalog-guide.md");
        Self { text: fs::read_to_string(place).expect("the guide") }
    }

    fn action(&self) -> &str {
        let (_, rest) = self.text.split_once("```yaml\n").expect("an action");
        rest.split_once("```").expect("its end").0
    }

    /// Every command of its numbered steps, in order; without the one that shows another tool's way.
    fn commands(&self) -> Vec<&str> {
        let (_, steps) = self.text.split_once("## 2. ").expect("the steps");
        let (steps, _) = steps.split_once("## Choosing").expect("their end");
        let starts = ["gloveport ", "systemctl ", "ready=", "new=", "export "];
        let indented = steps.lines().filter_map(|line| line.strip_prefix("    "));
        indented.filter(|line| starts.iter().any(|start| line.starts_with(start))).collect()
    }
}

#[test]
fn its_commands_lead_to_a_call_of_the_signed_action() {
    let (machine, token) = Machine::in_service();
    machine.wait_until_called(&token);
    let guide = Guide::read();
    let commands = guide.commands();
    let (call, before) = commands.split_last().expect("commands");
    assert_eq!(before.len(), 7, "{before:?}");
    assert!(call.starts_with("gloveport call web_log "), "{call}");

    // A web server that has complained.
    machine.sh("systemd-run --quiet --wait --unit=nginx printf 'started\\nan error of the test\\n'");
    machine.write("/etc/gloveport/catalog.d/web.yaml", guide.action());
    // A reader is slower than a reload; a test has to wait for it.
    let call = format!("for i in 1 2 3 4 5 6 7 8 9 10; do {call} && exit; sleep 1; done; exit 1");
    let script = format!("set -eu\n{}\n{call}\n", before.join("\n"));
    machine.write("/root/guide.sh", &script);
    let said = machine.sh("sh /root/guide.sh 2>&1");
    for shown in [
        "+ web_log: new action, risk read, as gloveport-run: The newest log lines of the web server, nginx.",
        "1 permit more, 0 something else, 0 less",
        "an error of the test",
    ] {
        assert!(said.contains(shown), "{shown} in\n{said}");
    }
    // The filter held, and so does what was there before; the new token may call nothing else.
    assert!(!said.contains("started\n"), "{said}");
    machine.wait_until_called(&token);
    assert!(machine.sh("gloveport audit tail").contains("web_log"));
}
