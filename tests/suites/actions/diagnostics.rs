#![forbid(unsafe_code)]
//! The packaged catalogue `diagnostics`: each action once, on this host as it is. (`packaging` has it on a booted
//! systemd.)

use super::{adapted, gloveport, printed};
use gloveport_tests::mcp::ToolResult;
use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What an action must do on any host.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Print this. A part of several may fail: a kernel without modules has no list of them.
    Prints(&'static str),
    /// Succeed with JSON on stdout.
    PrintsJson,
    /// Succeed, or say why not: what it asks (systemd, a name server, a package manager) may be absent.
    Explains,
}

use Expected::{Explains, Prints, PrintsJson};

/// Every action with the parameters of a call.
fn table() -> Vec<(&'static str, Value, Expected)> {
    vec![
        ("audit_log", json!({"lines": 5}), Explains),
        ("block_devices", json!({}), PrintsJson),
        ("boots", json!({}), Explains),
        ("connections", json!({}), Prints("Local Address")),
        ("cpu", json!({}), PrintsJson),
        ("cpu_load", json!({"samples": 1}), Prints("procs")),
        ("directory_listing", json!({"path": "/etc"}), Prints("passwd")),
        ("directory_sizes", json!({"path": "/var", "depth": 1}), Explains),
        ("disks", json!({}), Prints("Filesystem")),
        ("dns_lookup", json!({"name": "localhost"}), Explains),
        ("failed_units", json!({}), Explains),
        ("file_content", json!({"path": "/etc/passwd", "lines": 1}), Prints("root:")),
        ("hardware", json!({}), Explains),
        ("interfaces", json!({}), PrintsJson),
        ("io_pressure", json!({}), Explains),
        ("journal", json!({"lines": 5, "priority": "err"}), Explains),
        ("kernel_messages", json!({"lines": 5}), Explains),
        ("kernel_parameters", json!({}), Prints("Linux version")),
        ("largest_files", json!({"path": "/usr", "larger_than": "+1G"}), Explains),
        ("last_logins", json!({"lines": 5}), Explains),
        ("listening_ports", json!({}), Prints("LISTEN")),
        ("log_search", json!({"paths": ["*.log"], "pattern": "."}), PrintsJson),
        ("log_tail", json!({"path": "/var/log/dpkg.log", "lines": 2}), Explains),
        ("memory", json!({}), Prints("MemTotal")),
        ("mounts", json!({}), Explains),
        ("name_lookup", json!({"name": "localhost"}), Prints("localhost")),
        ("neighbours", json!({}), PrintsJson),
        ("package_deb", json!({"name": "libc6"}), Explains),
        ("package_history", json!({"lines": 3}), Explains),
        ("package_rpm", json!({"name": "glibc"}), Explains),
        ("packages_deb", json!({}), Explains),
        ("packages_rpm", json!({}), Explains),
        ("pci_devices", json!({}), Explains),
        ("ping", json!({"host": "127.0.0.1", "count": 1}), Explains),
        ("process", json!({"pid": 1}), Prints("PID")),
        ("process_tree", json!({}), Prints("gloveportd")),
        ("processes", json!({}), Prints("gloveportd")),
        ("routes", json!({}), PrintsJson),
        ("security_modules", json!({}), Explains),
        ("service_log", json!({"unit": "ssh.service", "lines": 3}), Explains),
        ("service_status", json!({"unit": "ssh.service"}), Explains),
        ("services", json!({}), Explains),
        ("socket_summary", json!({}), Prints("TCP:")),
        ("system_information", json!({}), Prints("Linux")),
        ("time_synchronisation", json!({}), Explains),
        ("timers", json!({}), Explains),
        ("updates_deb", json!({}), Explains),
        ("updates_rpm", json!({}), Explains),
        ("uptime", json!({}), Prints("load average")),
        ("users_logged_in", json!({}), Prints("USER")),
    ]
}

fn pair() -> Pair {
    let scene = Scene::new();
    let catalog = adapted(&scene, "packaging/catalogs/diagnostics", |text| text);
    scene.pair_of(&[&catalog])
}

/// What all steps printed.
fn output(result: &ToolResult, stream: &str) -> String {
    let steps = result.structured()["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step[stream].as_str()).collect()
}

fn check(pair: &Pair, name: &str, params: &Value, expected: Expected) -> Result<String, String> {
    let result = pair.call(name, json!({"params": params}));
    let (stdout, stderr) = (output(&result, "stdout"), output(&result, "stderr"));
    let success = result.structured()["success"] == true;
    let said = || format!("{name}: {expected:?}: {:#}", result.0);
    match expected {
        Prints(text) if !result.is_error() && stdout.contains(text) => Ok("works".into()),
        PrintsJson if success => {
            let steps = result.structured()["steps"].as_array().cloned().unwrap_or_default();
            let is_json = |step: &Value| {
                step["stdout"].as_str().is_some_and(|text| serde_json::from_str::<Value>(text).is_ok())
            };
            if steps.iter().all(is_json) { Ok("works".into()) } else { Err(said()) }
        }
        Explains if success => Ok("works".into()),
        // A refusal names what is missing; a program that fails says why.
        Explains if result.is_error() && result.text().contains("does not exist") => Ok("unsupported".into()),
        Explains if !result.is_error() && !format!("{stdout}{stderr}").trim().is_empty() => {
            Ok(format!("exit code {}", result.structured()["exit_code"]))
        }
        _ => Err(said()),
    }
}

#[test]
fn each_action_gives_a_sensible_result_on_a_plain_host() {
    let pair = pair();
    let mut faults = Vec::new();
    for (name, params, expected) in table() {
        match check(&pair, name, &params, expected) {
            Ok(how) => println!("{name}: {how}"),
            Err(fault) => faults.push(fault),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_names_every_action_and_each_only_reads() {
    let pair = pair();
    let list = pair.ask("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().expect("tools");
    let own = |tool: &&Value| tool["name"] != "run_batch";
    let listed: BTreeSet<&str> = tools.iter().filter(own).filter_map(|tool| tool["name"].as_str()).collect();
    let table = table();
    assert_eq!(listed, table.iter().map(|(name, _, _)| *name).collect());
    for tool in tools.iter().filter(own) {
        assert_eq!(tool["_meta"]["gloveport/risk"], "read", "{tool:#}");
        assert!(tool["title"].as_str().is_some_and(|title| !title.is_empty()));
        for (name, property) in
            tool["inputSchema"]["properties"]["params"]["properties"].as_object().into_iter().flatten()
        {
            assert!(
                property["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{}: {name}",
                tool["name"]
            );
        }
    }
}

#[test]
fn a_hostile_value_of_any_parameter_is_refused() {
    // Whatever the program, no parameter lets through what it could read as an option, or another line.
    let pair = pair();
    let list = pair.ask("tools/list", json!({}));
    for tool in list["result"]["tools"].as_array().expect("tools") {
        let schema = &tool["inputSchema"]["properties"]["params"]["properties"];
        for (name, property) in schema.as_object().into_iter().flatten() {
            let is_choice = !property["enum"].is_null();
            for value in ["--help", "-x", "a\nb", "$(id)", "../../etc/shadow", ""] {
                // A choice may begin with a dash; it is one of those that were signed.
                if is_choice && property["enum"].as_array().is_some_and(|all| all.contains(&json!(value))) {
                    continue;
                }
                let result =
                    pair.call(tool["name"].as_str().unwrap_or_default(), json!({"params": {name: value}}));
                assert!(
                    result.is_error() && result.structured()["steps"].is_null(),
                    "{}: {name}={value:?}: {:#}",
                    tool["name"],
                    result.0
                );
            }
        }
    }
}

#[test]
fn it_is_linted_without_a_warning() {
    let scene = Scene::new();
    let directory = gloveport_tests::programs::repository().join("packaging/catalogs/diagnostics");
    let output = gloveport(&scene, &["catalog", "lint", "--strict", &directory.display().to_string()]);
    assert!(output.status.success(), "{}", printed(&output));
}
