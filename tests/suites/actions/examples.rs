#![forbid(unsafe_code)]
//! The worked examples of the documentation: built, linted and run.

use super::{adapted, gloveport, printed};
use gloveport_tests::{Pair, Scene, programs, scene};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::chown;

/// A pair with the examples. What they say of `/srv` holds for a directory of the scene.
fn pair() -> Pair {
    let scene = Scene::new();
    let srv = scene.root.join("srv");
    for directory in ["", "notes"] {
        scene::make_directory(&srv.join(directory));
    }
    chown(srv.join("notes"), Some(scene.run.number), Some(scene.run.number)).expect("chown");
    fs::write(srv.join("one"), "a\nb\n").expect("writing");
    fs::write(srv.join("two"), "a\nc\n").expect("writing");
    fs::write(srv.join("large"), vec![0; 11_000_000]).expect("writing");
    let place = srv.display().to_string();
    let catalog = adapted(&scene, "docs/examples", |text| text.replace("/srv", &place));
    scene.pair_of(&[&catalog])
}

/// Calls an example; its result, which must be a success with this in its output.
fn assert_prints(pair: &Pair, name: &str, arguments: Value, text: &str) {
    let result = pair.call(name, arguments.clone());
    assert!(!result.is_error(), "{name} {arguments}: {:#}", result.0);
    assert_ne!(result.structured()["success"], false, "{name} {arguments}: {:#}", result.0);
    assert!(result.0.to_string().contains(text), "{name} {arguments}: {text}: {:#}", result.0);
}

#[test]
fn every_example_is_built_and_linted() {
    let scene = Scene::new();
    let directory = programs::repository().join("docs/examples");
    let mut count = 0;
    for entry in fs::read_dir(&directory).expect("the examples").flatten() {
        let path = entry.path().display().to_string();
        if !path.ends_with(".yaml") {
            continue;
        }
        let output = scene.root.join("built").display().to_string();
        let built = gloveport(&scene, &["catalog", "build", &path, "-o", &output]);
        assert!(built.status.success(), "{path}: {}", printed(&built));
        let linted = gloveport(&scene, &["catalog", "lint", "--strict", &path]);
        assert!(linted.status.success(), "{path}: {}", printed(&linted));
        let first = fs::read_to_string(entry.path()).expect("an example");
        assert!(first.starts_with("# "), "{path} begins with its reason");
        count += 1;
    }
    assert!(count >= 10, "{count} examples");
}

#[test]
fn every_example_runs() {
    let pair = pair();
    let srv = pair.scene.root.join("srv").display().to_string();
    let params = |params: Value| json!({ "params": params });
    assert_prints(&pair, "example_uptime", json!({}), "load average");
    assert_prints(&pair, "example_directory_size", params(json!({"path": "/var/log/apt"})), "/var/log/apt");
    assert_prints(
        &pair,
        "example_directory_size",
        params(json!({"path": "/var/log/apt", "depth": 0})),
        "/var/log/apt",
    );
    assert_prints(&pair, "example_disks", params(json!({"inodes": true})), "Inodes");
    assert_prints(&pair, "example_disks", json!({"head": 1}), "1K-blocks");
    assert_prints(
        &pair,
        "example_checksums",
        params(json!({"files": ["/etc/passwd", "/etc/group"]})),
        "  /etc/group",
    );
    assert_prints(&pair, "example_overview", json!({}), "Linux");
    assert_prints(
        &pair,
        "example_find_large",
        params(json!({"size": "+10M", "directory": srv, "seconds": 5})),
        "./large",
    );
    let script = pair.call("example_json_keys", params(json!({"file": "/etc/passwd"})));
    // It runs, and says that this is no JSON.
    assert_eq!(script.structured()["exit_code"], 1, "{:#}", script.0);
    assert!(
        script.step(0)["stderr"].as_str().is_some_and(|text| text.contains("JSONDecodeError")),
        "{:#}",
        script.0
    );
    assert_prints(&pair, "example_command", json!({"command": format!("wc -l {srv}/one")}), "2 ");
    let compared = pair.call("example_command", json!({"command": format!("diff {srv}/one {srv}/two")}));
    assert_eq!(compared.structured()["exit_code"], 1, "{:#}", compared.0);
    assert_prints(&pair, "example_note", params(json!({"content": "all is well\n"})), "");
    assert_eq!(fs::read_to_string(format!("{srv}/notes/agent.md")).expect("the note"), "all is well\n");
}

#[test]
fn the_example_of_a_health_page_keeps_to_its_prefixes() {
    let pair = pair();
    let get = |url: &str| pair.call("example_health", json!({"params": {"url": url}}));
    for (url, reason) in [
        ("https://www.example.com/other", "prefix"),
        ("https://www.example.com.evil.example/health", "prefix"),
        ("http://www.example.com/health", "prefix"),
        ("file:///etc/passwd", "only the schemes http and https"),
    ] {
        let result = get(url);
        assert_ne!(result.structured()["success"], true, "{url}: {:#}", result.0);
        assert!(result.0.to_string().contains(reason), "{url}: {:#}", result.0);
    }
    // Without a network it says so; with one it has a status.
    let result = get("https://www.example.com/health");
    let said = result.0.to_string();
    assert!(said.contains("status") || said.contains("error"), "{said}");
}

#[test]
fn the_action_of_the_guide_is_built_and_its_mistake_is_told_as_shown() {
    let scene = Scene::new();
    let guide = fs::read_to_string(programs::repository().join("docs/catalog-guide.md")).expect("the guide");
    let (_, rest) = guide.split_once("```yaml\n").expect("an action");
    let (action, _) = rest.split_once("```").expect("its end");
    let directory = scene.root.join("guide");
    scene::make_directory(&directory);
    let file = directory.join("web.yaml");
    let lint = |text: &str| {
        fs::write(&file, text).expect("writing");
        gloveport(&scene, &["catalog", "lint", "--strict", &file.display().to_string()])
    };
    let good = lint(action);
    assert!(good.status.success(), "{}", printed(&good));
    let bad = printed(&lint(&action.replace("filters:", "filter:")));
    for line in [
        "web.yaml:8:1: unknown key `filter`; did you mean `filters`?",
        "8 | filter: [match, tail]",
        "1 mistake",
    ] {
        assert!(bad.contains(line) && guide.contains(line), "{line}\n{bad}");
    }
}

#[test]
fn every_action_of_the_page_about_handlers_is_built_and_linted() {
    let scene = Scene::new();
    let page = fs::read_to_string(programs::repository().join("docs/handlers.md")).expect("the page");
    let directory = scene.root.join("handlers");
    scene::make_directory(&directory);
    let (source, built) = (directory.display().to_string(), scene.root.join("built").display().to_string());
    for handler in ["log_search", "mysql_query", "redis_command", "http_get", "read_file", "write_file"] {
        let (_, section) = page.split_once(&format!("\n## {handler}\n")).expect("its section");
        let (_, rest) = section.split_once("```yaml\n").expect("its action");
        let (action, _) = rest.split_once("```").expect("its end");
        assert!(action.contains(&format!("\nbuiltin: {handler}\n")), "{handler}: {action}");
        fs::write(directory.join(format!("{handler}.yaml")), action).expect("writing");
    }
    assert_eq!(page.matches("```yaml").count(), 6, "an action for each handler");
    for arguments in
        [&["catalog", "build", &source, "-o", &built][..], &["catalog", "lint", "--strict", &source]]
    {
        let output = gloveport(&scene, arguments);
        assert!(output.status.success(), "{}", printed(&output));
    }
}
