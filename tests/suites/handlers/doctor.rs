//! `gloveport doctor` and the credentials that signed actions name.

use super::{command, credential, place, query};
use gloveport_tests::servers::{MariaDb, Redis, free_port};
use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

const CANARY: &str = "canary-doctor-4711";

/// What doctor says of the credential of an action: status, text and way out.
fn findings(pair: &Pair, action: &str) -> Vec<(String, String, String)> {
    let output = pair.gloveport(&["doctor", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains(CANARY), "{text}");
    let said: Value = serde_json::from_str(&text).expect("JSON");
    let checks = said["checks"].as_array().expect("checks");
    let own = checks.iter().filter(|check| {
        let detail = check["detail"].as_str().unwrap_or_default();
        check["name"] == "credentials" && detail.starts_with(&format!("{action}: "))
    });
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    own.map(|check| (text(check, "status"), text(check, "detail"), text(check, "remedy"))).collect()
}

/// That doctor says it of the action, with that status and a way out that holds `remedy`.
#[track_caller]
fn assert_found(pair: &Pair, action: &str, status: &str, detail: &str, remedy: &str) {
    let found = findings(pair, action);
    let is =
        |one: &(String, String, String)| one.0 == status && one.1.contains(detail) && one.2.contains(remedy);
    assert!(found.iter().any(is), "{action}, {detail}: {found:#?}");
}

/// That all is well.
#[track_caller]
fn assert_well(pair: &Pair, action: &str) {
    let found = findings(pair, action);
    assert!(found.len() == 1 && found.iter().all(|one| one.0 == "ok"), "{action}: {found:#?}");
}

#[test]
fn the_file_of_a_credential_is_roots_alone_and_has_its_form() {
    let redis = Redis::start("user default on nopass ~* &* +@all\n", &[]);
    let names =
        ["missing", "readable", "foreign", "link", "names", "fifo", "directory", "form", "extra", "good"];
    let scene = Scene::new();
    let actions =
        names.map(|name| command(&scene, name, json!({"server": redis.socket, "credential": name})));
    let pair = scene.pair(&actions);
    let good = format!("user = \"default\"\npassword = \"{CANARY}\"\n");
    for name in ["readable", "foreign", "names", "good"] {
        credential(&pair, name, &good);
    }
    fs::set_permissions(place(&pair, "readable"), Permissions::from_mode(0o640)).expect("chmod");
    chown(place(&pair, "foreign"), Some(pair.scene.run.number), None).expect("chown");
    symlink(place(&pair, "good"), place(&pair, "link")).expect("a link");
    fs::hard_link(place(&pair, "names"), place(&pair, "other")).expect("a second name");
    assert!(Command::new("mkfifo").arg(place(&pair, "fifo")).status().expect("mkfifo").success());
    fs::create_dir(place(&pair, "directory")).expect("a directory");
    credential(&pair, "form", &format!("password = {CANARY}\n"));
    credential(&pair, "extra", &format!("password = \"{CANARY}\"\npasswort = \"x\"\n"));
    for (name, detail, remedy) in [
        ("missing", "does not exist", "install -m 600"),
        ("readable", "has mode 0640", "chmod 600"),
        ("foreign", "belongs to", "chown root"),
        ("link", "is a symbolic link", "the file itself"),
        ("names", "has other names", "copy it anew"),
        ("fifo", "is not a regular file", "the file itself"),
        ("directory", "is not a regular file", "the file itself"),
        ("form", "is not TOML with user, password", "catalog show form"),
        ("extra", "is not TOML with user, password", "catalog show extra"),
    ] {
        assert_found(&pair, name, "fail", detail, remedy);
    }
    // Its form is right and its file is safe; what the account may do is another matter.
    assert!(findings(&pair, "good").iter().all(|one| one.0 == "warn"));
}

#[test]
fn an_account_of_mariadb_that_could_do_more_than_read_is_named_with_the_grant_to_use() {
    let password = format!("IDENTIFIED BY '{CANARY}'");
    let server = MariaDb::start(&format!(
        "CREATE DATABASE app; CREATE TABLE app.t (a INT);
        CREATE USER reader@localhost {password}; GRANT SELECT, SHOW VIEW ON app.* TO reader@localhost;
        CREATE USER writer@localhost {password}; GRANT SELECT, INSERT, DELETE ON app.* TO writer@localhost;
        CREATE USER filer@localhost {password}; GRANT SELECT ON app.* TO filer@localhost;
        GRANT FILE ON *.* TO filer@localhost;
        CREATE USER admin@localhost {password}; GRANT ALL ON *.* TO admin@localhost WITH GRANT OPTION;
        CREATE USER super@localhost {password}; GRANT SELECT ON app.* TO super@localhost;
        GRANT SUPER ON *.* TO super@localhost;
        CREATE USER broad@localhost {password}; GRANT SELECT ON *.* TO broad@localhost;
        CREATE ROLE writing; GRANT UPDATE ON app.* TO writing;
        CREATE USER playing@localhost {password}; GRANT SELECT ON app.* TO playing@localhost;
        GRANT writing TO playing@localhost; SET DEFAULT ROLE writing FOR playing@localhost;"
    ));
    let scene = Scene::new();
    let accounts = ["reader", "writer", "filer", "admin", "super", "broad", "playing"];
    let config = |server: &str, credential: &str| json!({"server": server, "database": "app", "credential": credential});
    let mut actions = accounts.map(|name| query(&scene, name, config(&server.socket, name))).to_vec();
    let tcp = format!("127.0.0.1:{}", server.port);
    actions.push(query(&scene, "wrong", config(&server.socket, "wrong")));
    actions.push(query(&scene, "down", config(&format!("127.0.0.1:{}", free_port()), "reader")));
    actions.push(query(&scene, "tls", config(&tcp, "tls")));
    actions.push(query(
        &scene,
        "elsewhere",
        json!({"server": tcp, "database": "other", "credential": "reader"}),
    ));
    let pair = scene.pair(&actions);
    let text = |name: &str| format!("user = \"{name}\"\npassword = \"{CANARY}\"\n");
    for name in accounts {
        credential(&pair, name, &text(name));
    }
    credential(&pair, "wrong", &text("reader").replace("4711", "0815"));
    let foreign = fs::read_to_string(server.server.scratch.path("client.pem")).expect("a certificate");
    credential(&pair, "tls", &format!("{}ca = \"\"\"\n{foreign}\"\"\"\n", text("reader")));

    assert_well(&pair, "reader");
    let grant = |name: &str| format!("GRANT SELECT ON `app`.* TO '{name}'@'localhost'");
    for (name, detail) in [
        ("writer", "may do more than read: SELECT, INSERT"),
        ("filer", "has FILE"),
        ("admin", "has FILE"),
        ("admin", "has SUPER"),
        ("admin", "ALL PRIVILEGES on *.*"),
        ("admin", "can hand its rights on"),
        ("super", "has SUPER"),
        ("broad", "reads every database"),
        ("playing", "UPDATE on `app`.*"),
    ] {
        let detail = detail.replace("SELECT, INSERT", "INSERT, DELETE on `app`.*");
        assert_found(&pair, name, "warn", &detail, &grant(name));
    }
    for (name, detail) in [
        ("wrong", "Access denied"),
        ("down", "cannot be reached"),
        ("tls", "certificate"),
        ("elsewhere", "Access denied"),
    ] {
        assert_found(&pair, name, "fail", detail, "catalog show");
    }
    // The way out is one: with it nothing is left to say.
    let (_, _, remedy) = findings(&pair, "writer").remove(0);
    server.admin(&remedy);
    assert_well(&pair, "writer");
}

#[test]
fn an_account_of_redis_that_could_do_more_than_its_action_lists_is_named_with_the_rule_to_use() {
    let own = "resetkeys ~app:* resetchannels -@all +get +ttl";
    let redis = Redis::start(
        &format!(
            "user default on nopass ~* &* +@all\n\
            user exact on >{CANARY} {own}\n\
            user more on >{CANARY} {own} +hget +scan\n\
            user less on >{CANARY} {own} -ttl\n\
            user writer on >{CANARY} {own} +@write\n\
            user script on >{CANARY} {own} +eval\n\
            user admin on >{CANARY} {own} +@admin\n"
        ),
        &[],
    );
    redis.admin(&["SET", "app:a", "unchanged"]);
    let scene = Scene::new();
    let accounts = ["exact", "more", "less", "writer", "script", "admin"];
    let with = |server: &str, credential: &str| json!({"server": server, "credential": credential, "commands": ["GET", "TTL"]});
    let mut actions = accounts.map(|name| command(&scene, name, with(&redis.socket, name))).to_vec();
    actions.push(command(&scene, "wrong", with(&redis.socket, "wrong")));
    actions.push(command(&scene, "down", with(&format!("127.0.0.1:{}", free_port()), "exact")));
    actions.push(command(&scene, "nobody", json!({"server": redis.socket, "commands": ["GET", "TTL"]})));
    let pair = scene.pair(&actions);
    let text = |name: &str| format!("user = \"{name}\"\npassword = \"{CANARY}\"\n");
    for name in accounts {
        credential(&pair, name, &text(name));
    }
    credential(&pair, "wrong", &text("exact").replace("4711", "0815"));

    let before = redis.admin(&["DBSIZE"]);
    assert_well(&pair, "exact");
    for (name, user, detail) in [
        ("more", "more", "commands that the action does not list: HGET, SCAN"),
        ("less", "less", "may not use commands that the action lists: TTL"),
        ("writer", "writer", "may write keys (SETRANGE), delete keys (DEL)"),
        ("script", "script", "may run scripts (EVAL)"),
        ("admin", "admin", "settings of the server (CONFIG), manage accounts (ACL)"),
        ("nobody", "default", "may write keys (SETRANGE), delete keys (DEL), run scripts (EVAL)"),
    ] {
        let rule = format!("ACL SETUSER {user} resetkeys ~PATTERN resetchannels -@all +get +ttl");
        assert_found(&pair, name, "warn", detail, &rule);
    }
    assert_found(&pair, "wrong", "fail", "the login was refused", "catalog show wrong");
    assert_found(&pair, "down", "fail", "cannot be reached", "catalog show down");
    // Asking has changed nothing, and the way out is one.
    assert_eq!((redis.admin(&["DBSIZE"]), redis.admin(&["GET", "app:a"]).trim()), (before, "unchanged"));
    let (_, _, rule) = findings(&pair, "writer").remove(0);
    redis.admin(&rule.replace("PATTERN", "app:*").split(' ').collect::<Vec<_>>());
    assert_well(&pair, "writer");
}
