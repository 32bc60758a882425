//! fastmcp's proxies, mounted under the hosts' names.

use super::{Gateway, Host, failures_are_apart, free_port, load_is_borne, start, tokens_are_apart};
use gloveport_tests::{clients, processes};
use serde_json::json;
use std::time::Duration;

const NAMES: [&str; 2] = ["web_say", "db_say"];

#[test]
fn hosts_behind_a_gateway_keep_their_names_their_tokens_and_their_failures_apart() {
    let (web, db) = (Host::new(1), Host::new(2));
    tokens_are_apart(&web, &db);
    let port = free_port();
    let mut command = clients::python("fastmcp", "fastmcp_gateway.py");
    command.arg(port.to_string());
    command.args(
        [("web", &web), ("db", &db)].map(|(name, host)| format!("{name}={}={}", host.url(), host.token)),
    );
    let gateway = Gateway::of(start(command, port), port, &[]);
    failures_are_apart(&gateway, NAMES, &web);
    load_is_borne(&gateway, NAMES, &web, 5);

    // It asks the hosts anew for every list: one that is away is left out of it.
    web.go();
    assert_eq!(gateway.tools(), json!(["db_say"]));
    web.come();
    processes::wait_until("the host is listed again", Duration::from_secs(30), || {
        gateway.tools() == json!(["db_say", "web_say"])
    });
}
