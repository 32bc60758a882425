//! What lies in the packages: the same twice, the same in both, complete and explained.

use super::{output_of, packages};
use gloveport_tests::programs;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn read(path: &str) -> String {
    fs::read_to_string(programs::repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn two_builds_are_the_same_bytes() {
    let again = programs::target().join("packages-again");
    // Not from what was made before.
    let _ = fs::remove_dir_all(&again);
    let (first, second) = (packages::built(), packages::make(&again));
    for (one, other) in [(&first.deb, &second.deb), (&first.rpm, &second.rpm)] {
        let [one_bytes, other_bytes] = [one, other].map(|file| fs::read(file).expect("a package"));
        assert!(one_bytes == other_bytes, "{} and {} differ", one.display(), other.display());
    }
    fs::remove_dir_all(again).expect("removing packages");
}

/// Names of files, without what belongs to one system only.
fn installed(list: &str) -> BTreeSet<String> {
    let ours =
        list.lines().filter(|line| !line.ends_with('/')).map(|line| line.trim_start_matches('.').to_owned());
    let of_one_system = |line: &String| {
        [
            "/etc/apparmor.d/",
            "/usr/share/lintian/",
            "/usr/share/doc/gloveport/c",
            "/usr/share/doc/gloveport/C",
        ]
        .iter()
        .any(|place| line.starts_with(place))
    };
    // The same place by another name: a merged /usr, and zsh as Debian builds it.
    let named_alike = |line: String| {
        let line = line.replace("/zsh/vendor-completions/", "/zsh/site-functions/");
        line.strip_prefix("/lib/").map(|rest| format!("/usr/lib/{rest}")).unwrap_or(line)
    };
    ours.filter(|line| !of_one_system(line)).map(named_alike).collect()
}

#[test]
fn both_packages_install_the_same_files() {
    let packages = packages::built();
    let [deb, rpm] = [&packages.deb, &packages.rpm].map(|path| path.display().to_string());
    let listed = output_of("sh", &["-c", "dpkg-deb --fsys-tarfile \"$0\" | tar -t", &deb]);
    let deb = installed(&listed);
    let listed = output_of("rpm", &["-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\\n]", &rpm]);
    let files: Vec<&str> = listed.lines().filter(|line| !line.starts_with('d')).collect();
    let names: Vec<&str> =
        files.iter().filter_map(|line| line.split_once(' ')).map(|(_, name)| name).collect();
    let rpm = installed(&names.join("\n"));
    assert_eq!(deb.difference(&rpm).collect::<Vec<_>>(), Vec::<&String>::new(), "only the .deb has these");
    assert_eq!(rpm.difference(&deb).collect::<Vec<_>>(), Vec::<&String>::new(), "only the .rpm has these");
    assert!(deb.contains("/usr/libexec/gloveport/gloveport-handler"), "{deb:?}");
}

#[test]
fn lintian_and_rpmlint_have_nothing_to_say_that_is_not_answered() {
    let packages = packages::built();
    let deb = packages.deb.display().to_string();
    let said = output_of("lintian", &["--allow-root", "--fail-on", "error,warning", &deb]);
    assert!(said.lines().all(|line| line.starts_with("N:") || line.is_empty()), "{said}");
    let rpm = packages.rpm.display().to_string();
    let answers = programs::repository().join("packaging/rpm/rpmlint.toml").display().to_string();
    let said = output_of("rpmlint", &["--config", &answers, &rpm]);
    assert!(said.contains(" 0 errors, 0 warnings"), "{said}");
}

#[test]
fn every_version_is_that_of_the_sources() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = ")).expect("a version");
    let version = version.trim_matches('"');
    let debian = read("packaging/debian/changelog");
    assert!(debian.starts_with(&format!("gloveport ({version}-1) ")), "{debian}");
    let spec = read("packaging/rpm/gloveport.spec");
    let newest = spec.split("%changelog\n").nth(1).and_then(|text| text.lines().next()).unwrap_or_default();
    assert!(newest.ends_with(&format!(" - {version}-1")), "{newest}");
}

#[test]
fn the_manual_pages_are_well_formed() {
    let reference = output_of("packaging/catalog-page.py", &["docs/catalog-reference.md"]);
    let generated = programs::target().join(format!("gloveport-catalog-{}.5", std::process::id()));
    fs::write(&generated, reference).expect("writing a page");
    let pages = fs::read_dir(programs::repository().join("packaging/man")).expect("pages").flatten();
    let pages: Vec<String> = pages.map(|page| page.path().display().to_string()).collect();
    assert_eq!(pages.len(), 4, "{pages:?}");
    for page in pages.iter().chain([&generated.display().to_string()]) {
        output_of("mandoc", &["-T", "lint", "-W", "error", page]);
    }
    fs::remove_file(generated).expect("removing a page");
}

/// What `--help` lists under a heading: the first word of each line that is indented by two.
fn listed(help: &str, heading: &str) -> Vec<String> {
    let section = help.split(heading).nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn gloveport_1_has_every_command_and_every_option() {
    let gloveport = programs::built("gloveport").display().to_string();
    let help = |words: &[&str]| output_of(&gloveport, &[words, &["--help"]].concat());
    let page = read("packaging/man/gloveport.1");
    // mdoc writes `catalog build` as it is, `--max-risk` as `Fl -max-risk`, and `-y, --yes` as `Fl y | -yes`.
    let words: Vec<&str> = page.split_whitespace().collect();
    let has_option =
        |option: &str| words.windows(2).any(|pair| matches!(pair[0], "Fl" | "|") && pair[1] == &option[1..]);
    let mut missing = Vec::new();
    for command in listed(&help(&[]), "Commands:\n").iter().filter(|command| *command != "help") {
        let text = help(&[command]);
        let inner = listed(&text, "Commands:\n");
        let inner: Vec<&String> = inner.iter().filter(|inner| *inner != "help").collect();
        let ways: Vec<Vec<&str>> = if inner.is_empty() {
            vec![vec![command.as_str()]]
        } else {
            inner.iter().map(|inner| vec![command.as_str(), inner.as_str()]).collect()
        };
        for way in ways {
            if !page.contains(&format!(".It Ic {}", way.join(" "))) {
                missing.push(way.join(" "));
            }
            let text = help(&way);
            let options = text
                .split_whitespace()
                .filter(|word| word.starts_with("--") && !matches!(*word, "--" | "--help"));
            let options = options.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()));
            missing.extend(
                options.filter(|option| !has_option(option)).map(|option| format!("{way:?} {option}")),
            );
        }
    }
    assert!(missing.is_empty(), "gloveport.1 lacks {missing:#?}");
}

#[test]
fn the_pages_of_the_services_have_every_option() {
    for program in ["gloveportd", "gloveport-helper"] {
        let help = output_of(&programs::built(program).display().to_string(), &["--help"]);
        let page = read(&format!("packaging/man/{program}.8"));
        for option in help.lines().filter_map(|line| line.trim_start().strip_prefix("--")) {
            let name: String = option.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            assert!(page.contains(&format!("Fl -{name}")), "{program}.8 lacks --{name}");
        }
    }
}

#[test]
fn the_shipped_settings_are_the_defaults_and_each_is_explained() {
    let shipped = read("packaging/daemon.toml");
    let page = read("packaging/man/gloveport-daemon.toml.5");
    let setting = |line: &&str| line.starts_with('#') && line.contains(" = ");
    let settings: Vec<&str> = shipped.lines().filter(setting).map(|line| &line[1..]).collect();
    for setting in &settings {
        let key = setting.split(' ').next().unwrap_or_default();
        assert!(page.contains(&format!(".It Cm {key}\n")), "gloveport-daemon.toml.5 lacks {key}");
    }
    assert!(settings.len() >= 9, "{settings:?}");
    // A daemon reads them all, as if they had been written without the mark.
    let state = std::env::temp_dir().join(format!("gloveport-settings-{}", std::process::id()));
    fs::create_dir_all(&state).expect("a state directory");
    fs::write(state.join("daemon.toml"), settings.join("\n")).expect("writing settings");
    let doctor = Command::new(programs::built("gloveport"))
        .args(["doctor", "--json", "--state"])
        .arg(&state)
        .output()
        .expect("gloveport");
    fs::remove_dir_all(state).expect("removing a state directory");
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let report: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let text = report.to_string();
    let checks = report["checks"].as_array().unwrap_or_else(|| panic!("{text}"));
    let settings =
        checks.iter().find(|check| check["name"] == "settings").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(settings["status"], "ok", "{settings:#}");
}

/// A reader searches the page for what was said.
#[test]
fn the_troubleshooting_page_quotes_what_the_programs_say() {
    let words = "find helper daemon -name '*.rs' -exec cat {} + | tr -d '\\\\' | tr -s ' \\n' ' '";
    let sources = output_of("sh", &["-c", words]);
    let page = read("docs/troubleshooting.md");
    let quoted: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    assert!(quoted.len() > 10, "{quoted:?}");
    let invented: Vec<_> = quoted.iter().filter(|text| !sources.contains(**text)).collect();
    assert!(invented.is_empty(), "no program says {invented:?}");
}

#[test]
fn a_program_names_the_crates_that_it_was_made_of() {
    let packages = packages::built();
    let unpacked = programs::target().join(format!("unpacked-{}", std::process::id()));
    let place = unpacked.display().to_string();
    output_of("dpkg-deb", &["--extract", &packages.deb.display().to_string(), &place]);
    let read = "import sys, zlib; sys.stdout.write(zlib.decompress(sys.stdin.buffer.read()).decode())";
    let line = format!(
        "objcopy -O binary --set-section-flags .dep-v0=alloc --only-section=.dep-v0 \
        {place}/usr/libexec/gloveport/gloveport-helper /dev/stdout | python3 -c '{read}'"
    );
    let crates: serde_json::Value = serde_json::from_str(&output_of("sh", &["-c", &line])).expect("a list");
    fs::remove_dir_all(unpacked).expect("removing what was unpacked");
    let names: BTreeSet<&str> = crates["packages"]
        .as_array()
        .expect("crates")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(names.contains("seccompiler") && names.contains("gloveport-contract"), "{names:?}");
    assert!(!names.contains("tokio"), "the helper has a runtime: {names:?}");
}
