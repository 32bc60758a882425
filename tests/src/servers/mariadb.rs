#![forbid(unsafe_code)]
//! MariaDB.

use super::{Server, answers, certificates, free_port, must};
use crate::scratch::Scratch;
use std::fs;

/// A MariaDB with an empty data directory. Its superuser has no password and is reached over the socket.
#[derive(Debug)]
pub struct MariaDb {
    /// Its process and its directory, with `ca.pem`, `server.pem` and `client.pem`.
    pub server: Server,
    /// Its Unix socket.
    pub socket: String,
    /// Its port, with and without TLS.
    pub port: u16,
}

impl MariaDb {
    /// Starts one and runs these statements in it.
    ///
    /// # Panics
    /// Where it is not installed, or does not come up.
    pub fn start(setup: &str) -> Self {
        let scratch = Scratch::new();
        certificates(&scratch.0);
        let root = scratch.root().to_owned();
        must("chmod", &["-R", "a+rX", &root]);
        let is_root = must("id", &["-u"]).trim() == "0";
        let data = scratch.path("data");
        fs::create_dir(&data).expect("making a directory");
        let mut user: Vec<&str> = Vec::new();
        if is_root {
            // MariaDB does not run as root, and the package of the server alone brings no account for it.
            must("chown", &["nobody", &root, &data]);
            user.push("--user=nobody");
        }
        let data = format!("--datadir={data}");
        // Its own: a server that starts removes what it takes for left-over temporary tables of another.
        let temporary = format!("--tmpdir={root}");
        let install = [
            "--no-defaults",
            &data,
            &temporary,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ];
        must("mariadb-install-db", &[&install[..], &user].concat());
        let port = free_port();
        let socket = scratch.path("maria.sock");
        let options = [
            temporary,
            format!("--socket={socket}"),
            format!("--port={port}"),
            format!("--pid-file={root}/pid"),
            format!("--ssl-ca={root}/ca.pem"),
            format!("--ssl-cert={root}/server.pem"),
            format!("--ssl-key={root}/server.key"),
            format!("--secure-file-priv={root}/data"),
        ];
        must("chmod", &["a+r", &format!("{root}/server.key")]);
        let fixed = [
            "mariadbd",
            "--no-defaults",
            &data,
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=8M",
            "--plugin-load-add=auth_ed25519",
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let program = [&fixed[..], &options, &user].concat();
        let mut server = Server::start(scratch, &program);
        server.wait_for("mariadbd", || answers(port));
        let maria = Self { server, socket, port };
        maria.admin(setup);
        maria
    }

    /// Runs statements as the superuser; rows are lines, columns separated by tabs. They end at `//` where
    /// there is one: the body of a function holds semicolons.
    pub fn admin(&self, sql: &str) -> String {
        let end = if sql.contains("//") { "--delimiter=//" } else { "--delimiter=;" };
        must(
            "mariadb",
            &["--no-defaults", "-uroot", "-N", end, &format!("--socket={}", self.socket), "-e", sql],
        )
    }

    /// Whether a statement of that account is running.
    pub fn is_busy_for(&self, user: &str) -> bool {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{user}' AND command <> 'Sleep'"
        );
        self.admin(&sql).trim() != "0"
    }
}
