//! Out of the sandbox by sockets, by metadata, by another kernel interface.

use super::{outside, printed};
use gloveport_tests::{Helper, Scene};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
use serde_json::json;
use std::net::TcpListener;

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let port = listener.local_addr().expect("an address").port().to_string();
    (listener, port)
}

#[test]
fn only_a_declared_port_is_reached_and_only_by_connecting() {
    let scene = Scene::new();
    let ((declared, open), (undeclared, closed)) = (listener(), listener());
    let port: u16 = open.parse().expect("a port");
    let attempt = |name: &str, words: &[&str]| {
        scene.probing(name, words).with(json!({"sandbox": {"network": [{"connect": [port]}]}}))
    };
    let here = "127.0.0.1";
    let actions = [
        attempt("connect", &["connect", here, &open]),
        attempt("other_port", &["connect", here, &closed]),
        attempt("fastopen", &["fastopen", here, &closed]),
        attempt("fastopen_declared", &["fastopen", here, &open]),
        attempt("mptcp", &["mptcp", here, &closed]),
        attempt("udp", &["udp", here, &closed]),
        attempt("bind", &["bind", here, "0"]),
        attempt("listen", &["listen"]),
        attempt("unix", &["unix", "/run/dbus/system_bus_socket"]),
    ];
    let helper = scene.helper(&actions);
    assert_eq!(printed(&helper, "connect"), "ok");
    assert!(declared.accept().is_ok());
    assert_eq!(printed(&helper, "other_port"), "errno EACCES");
    for action in &actions[2..] {
        assert_eq!(printed(&helper, action.name()), "errno EPERM", "{}", action.name());
    }
    assert!(undeclared.accept().is_err(), "somebody got through to the undeclared port");
    // Outside these are ways to it: the second one past Landlock's rule about ports, too.
    for words in [["connect", here, &closed], ["fastopen", here, &closed]] {
        let said = outside(&helper, &words);
        assert!(said == "ok" || said == "errno EINPROGRESS", "{words:?}: {said}");
    }
}

#[test]
fn an_abstract_socket_of_somebody_else_is_out_of_reach() {
    let scene = Scene::new();
    let name = format!("gloveport-test-{}", std::process::id());
    let there = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&there, &SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name")).expect("binding");
    listen(&there, 8).expect("listening");
    let action =
        scene.probing("abstract", &["abstract", &name]).with(json!({"sandbox": {"network": ["unix"]}}));
    let helper = scene.helper(&[action]);
    assert_eq!(printed(&helper, "abstract"), "errno EPERM");
    assert_eq!(outside(&helper, &["abstract", &name]), "ok");
}

/// A file of run_as's in a declared directory, with the metadata calls as actions.
fn metadata(writes: bool) -> (Helper, String) {
    let scene = Scene::new();
    let own = scene.own_directory("own");
    let file = scene.own_file("own/file", "");
    let keys =
        if writes { json!({"sandbox": {"write": [own]}}) } else { json!({"sandbox": {"read": [own]}}) };
    let actions = [scene.probing("chmod", &["chmod", &file, "511"]).with(keys)];
    (scene.helper(&actions), file)
}

#[test]
fn a_program_that_writes_nothing_changes_no_metadata_either() {
    let (helper, _) = metadata(false);
    assert_eq!(printed(&helper, "chmod"), "errno EPERM");
    let (helper, file) = metadata(true);
    assert_eq!(printed(&helper, "chmod"), "ok");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).expect("the file").permissions());
    assert_eq!(mode & 0o777, 0o777);
}

#[test]
fn what_is_written_cannot_be_executed() {
    let scene = Scene::new();
    let own = scene.own_directory("own");
    let program = format!("{own}/program");
    std::fs::copy(scene.probe(), &program).expect("copying");
    let helper_program = scene.program("helper-program", std::fs::read(scene.probe()).expect("the probe"));
    let children = json!({"sandbox": {"write": [own], "exec": [helper_program]}});
    let actions = [
        scene.probing("written", &["exec2", &program, "print", "SECOND"]).with(children.clone()),
        scene.probing("declared", &["exec2", &helper_program, "print", "SECOND"]).with(children),
    ];
    let helper = scene.helper(&actions);
    assert_eq!(printed(&helper, "written"), "errno EACCES");
    assert_eq!(printed(&helper, "declared"), "SECOND");
}
