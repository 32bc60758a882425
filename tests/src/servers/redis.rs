#![forbid(unsafe_code)]
//! Redis.

use super::{Server, answers, certificates, free_port, must};
use crate::scratch::Scratch;

/// A Redis that keeps nothing.
#[derive(Debug)]
pub struct Redis {
    /// Its process and its directory, with `ca.pem`, `server.pem` and `client.pem`.
    pub server: Server,
    /// Its Unix socket.
    pub socket: String,
    /// Its port.
    pub port: u16,
    /// Its port with TLS.
    pub tls_port: u16,
}

impl Redis {
    /// Starts one with the accounts of `users`, lines of an ACL file, and further words on its command line.
    ///
    /// # Panics
    /// Where it is not installed, or does not come up.
    pub fn start(users: &str, further: &[&str]) -> Self {
        let scratch = Scratch::new();
        certificates(&scratch.0);
        let (port, tls_port) = (free_port(), free_port());
        let at = |name: &str| scratch.path(name);
        let socket = at("redis.sock");
        let (port_text, tls_text) = (port.to_string(), tls_port.to_string());
        let (ca, cert, key, dir) =
            (at("ca.pem"), at("server.pem"), at("server.key"), scratch.root().to_owned());
        let acl = scratch.write("users.acl", users);
        let mut program = vec![
            "redis-server",
            "--bind",
            "127.0.0.1",
            "--port",
            &port_text,
            "--tls-port",
            &tls_text,
            "--unixsocket",
            &socket,
            "--unixsocketperm",
            "777",
            "--dir",
            &dir,
            "--save",
            "",
            "--aclfile",
            &acl,
            "--tls-ca-cert-file",
            &ca,
            "--tls-cert-file",
            &cert,
            "--tls-key-file",
            &key,
            "--tls-auth-clients",
            "optional",
        ];
        program.extend(further);
        let mut server = Server::start(scratch, &program);
        server.wait_for("redis-server", || answers(port));
        Self { server, socket, port, tls_port }
    }

    /// Runs a command as the default account; what redis-cli prints.
    pub fn admin(&self, words: &[&str]) -> String {
        must("redis-cli", &[&["-s", &self.socket], words].concat())
    }
}
