//! The units as systemd reads them, on a host that need not run systemd.

use super::output_of;
use gloveport_tests::programs;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// `systemd-analyze security` fails above the threshold, in tenths.
fn exposure_is_at_most(unit: &str, tenths: u32) {
    output_of(
        "systemd-analyze",
        &[
            "security",
            "--offline=true",
            "--no-pager",
            &format!("--threshold={tenths}"),
            &format!("systemd/{unit}"),
        ],
    );
}

#[test]
fn the_daemon_is_exposed_to_1_0_at_most() {
    exposure_is_at_most("gloveport.service", 10);
}

/// What is left is what its runs would see too: the unit names each.
#[test]
fn the_helper_is_exposed_to_5_5_at_most() {
    exposure_is_at_most("gloveport-helper.service", 55);
}

/// The calls of groups and names, as the unit's lines combine them.
fn expanded(words: &str) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for word in words.split_whitespace() {
        if word.starts_with('@') {
            let text = output_of("systemd-analyze", &["syscall-filter", "--no-pager", word]);
            // A group lists groups and calls, indented; comments begin with #.
            let lines = text.lines().filter(|line| line.starts_with(' ')).map(str::trim);
            for line in lines.filter(|line| !line.starts_with('#')) {
                calls.extend(expanded(line));
            }
        } else {
            calls.insert(word.to_owned());
        }
    }
    calls
}

/// The first line of `SystemCallFilter=` says whether it is a list of what is allowed; later ones add to it or
/// take away.
fn allowed_by(unit: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(programs::repository().join("systemd").join(unit)).expect("a unit");
    let mut allowed = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        match line.strip_prefix('~') {
            Some(taken) => allowed = &allowed - &expanded(taken),
            None => allowed.extend(expanded(line)),
        }
    }
    allowed
}

/// Every `SYS_name` of a source file.
fn calls_in(source: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(programs::repository().join(source)).expect("a source file");
    let name = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    text.split("SYS_").skip(1).map(name).filter(|name: &String| !name.is_empty()).collect()
}

/// Otherwise an action would work with `gloveport up` and fail as a service.
#[test]
fn the_helpers_unit_allows_every_call_that_a_run_may_be_allowed() {
    let allowed = allowed_by("gloveport-helper.service");
    let wanted = calls_in("helper/src/sandbox/calls.rs");
    assert!(wanted.len() > 150, "the table of calls has moved: {wanted:?}");
    let missing: Vec<_> = wanted.difference(&allowed).collect();
    assert!(missing.is_empty(), "a run may be allowed these, and the unit refuses them: {missing:?}");
    for never in ["io_uring_setup", "open_by_handle_at", "mount", "ptrace", "bpf", "init_module"] {
        assert!(!allowed.contains(never), "{never} is allowed");
    }
}

/// The daemon's own filter is the narrower one, so what it allows must be allowed by the unit.
#[test]
fn the_daemons_unit_allows_every_call_that_its_own_filter_allows() {
    let allowed = allowed_by("gloveport.service");
    let missing: Vec<_> = calls_in("daemon/src/confine/calls.rs").difference(&allowed).cloned().collect();
    assert!(missing.is_empty(), "the daemon uses these, and its unit refuses them: {missing:?}");
}

#[test]
fn the_apparmor_profile_is_accepted_by_its_parser() {
    let profile = "packaging/apparmor/usr.libexec.gloveport.gloveportd";
    output_of("apparmor_parser", &["--skip-kernel-load", "--skip-cache", "--quiet", profile]);
    let text = fs::read_to_string(programs::repository().join(profile)).expect("the profile");
    let rules = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let executing: Vec<_> = rules.filter(|line| line.trim_end().ends_with("x,")).collect();
    assert!(executing.is_empty(), "the daemon may execute: {executing:?}");
}

/// A reason stands above every line that hardens, or on it.
#[test]
fn every_hardening_line_has_a_reason() {
    for unit in ["gloveport.service", "gloveport-helper.service"] {
        let text = fs::read_to_string(programs::repository().join("systemd").join(unit)).expect("a unit");
        for paragraph in text.split("\n\n").filter(|paragraph| paragraph.contains("Protect")) {
            assert!(paragraph.contains("# "), "{unit}: no reason stands in\n{paragraph}");
        }
    }
}

#[test]
fn sysusers_and_tmpfiles_make_what_is_promised() {
    let scratch = tempdir();
    let root = scratch.0.display().to_string();
    fs::create_dir_all(scratch.0.join("etc")).expect("making a root");
    let repository = programs::repository();
    let file = |path: &str| repository.join(path).display().to_string();
    run("systemd-sysusers", &[&format!("--root={root}"), &file("packaging/sysusers/gloveport.conf")]);
    let passwd = fs::read_to_string(scratch.0.join("etc/passwd")).expect("accounts");
    for user in ["gloveport", "gloveport-run"] {
        let line = passwd.lines().find(|line| line.starts_with(&format!("{user}:")));
        let line = line.unwrap_or_else(|| panic!("no account {user} in\n{passwd}"));
        assert!(line.ends_with(":/nonexistent:/usr/sbin/nologin"), "{line}");
    }
    run(
        "systemd-tmpfiles",
        &["--create", &format!("--root={root}"), &file("packaging/tmpfiles/gloveport.conf")],
    );
    for (directory, mode) in [("gloveport", "755"), ("gloveport/empty", "555"), ("gloveport/pending", "700")]
    {
        let path = scratch.0.join("run").join(directory).display().to_string();
        assert_eq!(
            output_of("stat", &["--format=%a %U:%G", &path]).trim(),
            format!("{mode} root:root"),
            "{directory}"
        );
    }
}

fn run(program: &str, words: &[&str]) {
    let output =
        Command::new(program).args(words).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that is removed with the test.
struct Scratch(std::path::PathBuf);

fn tempdir() -> Scratch {
    let path = std::env::temp_dir().join(format!("gloveport-units-{}", std::process::id()));
    fs::create_dir_all(&path).expect("making a directory");
    Scratch(path)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
