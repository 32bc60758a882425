//! What a program is started with.

use super::{mistake, printed, state};
use gloveport_tests::Scene;
use serde_json::json;

/// Variables with which programs can be made to load or run other code, or to look elsewhere for their data.
const HOSTILE: [&str; 36] = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_BIND_NOW",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "MALLOC_CHECK_",
    "NLSPATH",
    "LOCPATH",
    "RESOLV_HOST_CONF",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "PS4",
    "BASH_FUNC_x%%",
    "IFS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_GLOBAL",
    "EDITOR",
    "PAGER",
    "TMPDIR",
    "TERMINFO",
    "HOSTALIASES",
    "http_proxy",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_CONFIG_HOME",
];

#[test]
fn nothing_of_the_helpers_environment_reaches_a_program() {
    let mut scene = Scene::new();
    let action = scene.probing("state", &["state"]).with(json!({"env": {"GREETING": "hello"}}));
    for name in HOSTILE.iter().filter(|name| !name.starts_with("LD_") && **name != "GLIBC_TUNABLES") {
        scene = scene.with_environment(name, "/tmp/evil");
    }
    // Values that the loader of the helper itself survives.
    let scene = scene
        .with_environment("LD_LIBRARY_PATH", "/tmp/evil")
        .with_environment("TZ", "/tmp/evil")
        .with_environment("PATH", "/tmp/evil")
        .with_environment("HOME", "/tmp/evil");
    let helper = scene.helper(&[action]);
    let seen = state(&helper, "state");
    let environment = seen["environment"].as_object().expect("an environment");
    let names: Vec<&str> = environment.keys().map(String::as_str).collect();
    assert_eq!(names, ["GREETING", "HOME", "LANG", "LOGNAME", "PATH", "TZ", "USER"]);
    assert!(!seen.to_string().contains("evil"), "{seen:#}");
}

#[test]
fn an_action_cannot_declare_a_variable_that_loads_code() {
    let scene = Scene::new();
    let with = |name: &str| scene.probing("a", &["state"]).with(json!({"env": {name: "x"}})).json();
    for name in [
        "LD_PRELOAD",
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "GLIBC_TUNABLES",
        "GCONV_PATH",
        "MALLOC_CHECK_",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "PS4",
        "BASH_FUNC_x",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYOPT",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "IFS",
    ] {
        let mistake = mistake(with(name)).unwrap_or_else(|| panic!("{name} may be declared"));
        assert!(mistake.contains(name), "{mistake}");
    }
    assert_eq!(mistake(with("GREETING")), None);
}

#[test]
fn a_program_is_named_by_an_absolute_path() {
    let scene = Scene::new();
    let with = |path: &str| scene.exec("a", &[path]).json();
    for path in ["ls", "./ls", "bin/ls", "", "/usr/bin/../bin/ls", "/usr/bin/ls\0"] {
        assert!(mistake(with(path)).is_some(), "{path:?} may be a program");
    }
    assert_eq!(mistake(with("/usr/bin/ls")), None);
}

#[test]
fn a_secret_is_never_an_argument() {
    let scene = Scene::new();
    let with = |secret: bool| {
        let action = scene.action(
            "a",
            json!({
                "params": {"password": {"type": "string", "secret": secret}},
                "exec": [scene.probe(), "print", "{password}"],
            }),
        );
        action.json()
    };
    let reason = mistake(with(true)).expect("a secret in an argv");
    assert!(reason.contains("argv"), "{reason}");
    assert_eq!(mistake(with(false)), None);
}

#[test]
fn a_program_leaves_nothing_at_home_for_the_next_one() {
    let scene = Scene::new();
    let home = scene.state().join("empty").join(".bashrc").display().to_string();
    let own = scene.own_directory("own");
    let file = format!("{own}/.bashrc");
    let action = scene.probing("elsewhere", &["create", &file]).with(json!({"sandbox": {"write": [own]}}));
    let at_home = scene.probing("home", &["create", &home]);
    let helper = scene.helper(&[at_home, action]);
    assert_eq!(printed(&helper, "home"), "errno EACCES");
    assert_eq!(printed(&helper, "elsewhere"), "ok");
}
