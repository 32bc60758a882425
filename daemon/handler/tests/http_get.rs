//! `http_get` against a real nginx, with TLS, and against a server made to lie.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Answer, call};
use flate2::Compression;
use flate2::write::GzEncoder;
use gloveport_tests::scratch::Scratch;
use gloveport_tests::servers::{Server, answers, certificates, free_port};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

struct Nginx {
    server: Server,
    http: String,
    https: String,
    port: u16,
}

fn start() -> Nginx {
    let scratch = Scratch::new();
    certificates(&scratch.0);
    let (port, tls) = (free_port(), free_port());
    let root = scratch.root();
    scratch.write("www/api/hello.txt", "hällo\n");
    scratch.write("www/api/binary", [0xff, 0x00]);
    scratch.write("www/api/big", "0123456789".repeat(100_000));
    scratch.write("www/apix/secret", "outside\n");
    scratch.write("www/api/json", r#"{"a": 1}"#);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    (0..8).for_each(|_| bomb.write_all(&vec![b'0'; 1 << 20]).unwrap());
    scratch.write("www/api/bomb", bomb.finish().unwrap());
    let config = scratch.write(
        "nginx.conf",
        format!(
            r#"daemon off; master_process off; pid {root}/nginx.pid; error_log {root}/error.log;
            events {{ worker_connections 64; }}
            http {{
                access_log off; client_body_temp_path {root}/t1; proxy_temp_path {root}/t2;
                fastcgi_temp_path {root}/t3; uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
                types {{ text/plain txt; }}
                server {{
                    listen 127.0.0.1:{port}; listen 127.0.0.1:{tls} ssl;
                    ssl_certificate {root}/server.pem; ssl_certificate_key {root}/server.key;
                    root {root}/www;
                    gzip on; gzip_min_length 1; gzip_types text/plain;
                    location /api/bomb {{ gzip off; add_header Content-Encoding gzip; }}
                    location /api/redirect {{ return 302 http://169.254.169.254/latest/; }}
                    location /api/teapot {{ return 418 "short\n"; }}
                    location /api/echo {{ return 200 "$http_x_id|$http_authorization|$http_host|$args\n"; }}
                }}
            }}"#
        ),
    );
    let mut server = Server::start(scratch, &["nginx", "-c", &config]);
    server.wait_for("nginx", || answers(port));
    Nginx {
        server,
        http: format!("http://127.0.0.1:{port}"),
        https: format!("https://localhost:{tls}"),
        port,
    }
}

impl Nginx {
    fn config(&self) -> Value {
        json!({
            "url_prefixes": [format!("{}/api", self.http), format!("{}/api", self.https)],
            "addresses": ["loopback"], "headers": ["X-Id", "X-Missing"],
        })
    }

    fn get(&self, url: &str) -> Answer {
        call("http_get", self.config(), json!({ "url": url }))
            .env("SSL_CERT_FILE", self.server.scratch.path("ca.pem"))
            .run()
    }
}

#[test]
fn what_is_under_the_prefix_is_fetched() {
    let nginx = start();
    for base in [&nginx.http, &nginx.https] {
        let answer = nginx.get(&format!("{base}/api/hello.txt")).ok();
        assert_eq!(
            (&answer["status"], &answer["body"], &answer["encoding"]),
            (&json!(200), &json!("hällo\n"), &json!("utf-8"))
        );
        assert_eq!(answer["headers"]["content-type"], "text/plain");
        assert_eq!(answer["truncated"], false);
    }
    let answer = nginx.get(&format!("{}/api/binary", nginx.http)).ok();
    assert_eq!((&answer["encoding"], &answer["body"]), (&json!("base64"), &json!("/wA=")));
    // Any status is an answer.
    assert_eq!(nginx.get(&format!("{}/api/none", nginx.http)).ok()["status"], 404);
    let answer = nginx.get(&format!("{}/api/teapot", nginx.http)).ok();
    assert_eq!((&answer["status"], &answer["body"]), (&json!(418), &json!("short\n")));
    let answer = nginx.get(&format!("{}/api/echo?a=%2Fb", nginx.http)).ok();
    assert_eq!(answer["body"], format!("||127.0.0.1:{}|a=%2Fb\n", nginx.port));
}

#[test]
fn what_is_not_under_it_is_refused() {
    let nginx = start();
    let port = nginx.port;
    for url in [
        format!("{}/apix/secret", nginx.http),
        format!("{}/", nginx.http),
        format!("{}/api/../apix/secret", nginx.http),
        format!("{}/api/%2e%2e/apix/secret", nginx.http),
        format!("{}/api/..%2fapix/secret", nginx.http),
        format!("{}/api//hello.txt", nginx.http),
        format!("http://localhost:{port}/api/hello.txt"),
        format!("http://127.0.0.1:{port}@evil/api/hello.txt"),
        format!("http://user@127.0.0.1:{port}/api/hello.txt"),
        format!("http://[::ffff:127.0.0.1]:{port}/api/hello.txt"),
        format!("http://127.1:{port}/api/hello.txt"),
        format!("http://0x7f.1:{port}/api/hello.txt"),
        format!("https://127.0.0.1:{port}/api/hello.txt"),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/latest/".to_owned(),
    ] {
        nginx.get(&url).refusal();
    }
}

#[test]
fn the_address_behind_a_name_decides() {
    let nginx = start();
    let with = |addresses: Value, url: &str| {
        let mut config = nginx.config();
        config["addresses"] = addresses;
        call("http_get", config, json!({ "url": url }))
            .env("SSL_CERT_FILE", nginx.server.scratch.path("ca.pem"))
            .run()
    };
    for url in [format!("{}/api/hello.txt", nginx.http), format!("{}/api/hello.txt", nginx.https)] {
        for addresses in
            [json!([]), json!(["public"]), json!(["private", "link_local"]), json!(["10.0.0.0/8"])]
        {
            let reason = with(addresses, &url).refusal();
            assert!(reason.contains("do not allow"), "{reason}");
        }
        with(json!(["127.0.0.0/8"]), &url).ok();
    }
    let metadata = json!({ "url_prefixes": ["http://169.254.169.254/"], "addresses": ["public", "loopback", "private"] });
    let reason =
        call("http_get", metadata, json!({ "url": "http://169.254.169.254/latest/" })).run().refusal();
    assert!(reason.contains("do not allow"), "{reason}");
    let mapped = json!({ "url_prefixes": [format!("http://[::ffff:127.0.0.1]:{}/", nginx.port)] });
    let url = format!("http://[::ffff:127.0.0.1]:{}/api/hello.txt", nginx.port);
    assert!(call("http_get", mapped, json!({ "url": url })).run().refusal().contains("do not allow"));
}

#[test]
fn a_redirect_is_an_answer_and_not_followed() {
    let nginx = start();
    let answer = nginx.get(&format!("{}/api/redirect", nginx.http)).ok();
    assert_eq!(
        (&answer["status"], &answer["headers"]["location"]),
        (&json!(302), &json!("http://169.254.169.254/latest/"))
    );
}

#[test]
fn sizes_are_bounded_after_decompression() {
    let nginx = start();
    let started = Instant::now();
    let mut config = nginx.config();
    config["max_bytes"] = json!("64KiB");
    for path in ["bomb", "big"] {
        let url = format!("{}/api/{path}", nginx.http);
        let answer = call("http_get", config.clone(), json!({ "url": url })).run();
        assert!(answer.length <= 64 * 1024);
        let answer = answer.ok();
        assert_eq!(answer["truncated"], true);
        assert!(
            answer["bytes"].as_u64().unwrap() > 60_000,
            "{path}: {} {}",
            answer["bytes"],
            answer["headers"]
        );
    }
    assert!(started.elapsed() < Duration::from_secs(10));
    // The twin: a compressed body that fits arrives as what it was.
    let answer = nginx.get(&format!("{}/api/hello.txt", nginx.http)).ok();
    assert_eq!(
        (&answer["headers"]["content-encoding"], &answer["body"]),
        (&json!("gzip"), &json!("hällo\n"))
    );
}

#[test]
fn only_declared_headers_are_sent() {
    let nginx = start();
    let url = format!("{}/api/echo", nginx.http);
    let with =
        |headers: Value| call("http_get", nginx.config(), json!({ "url": url, "headers": headers })).run();
    assert!(with(json!(["x-id: 7"])).ok()["body"].as_str().unwrap().starts_with("7||"));
    for header in ["Authorization: x", "Host: evil", "X-Id: a\r\nHost: evil", "X-Id : 7", "X-Id: ü"] {
        with(json!([header])).refusal();
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let nginx = start();
    let other = Scratch::new();
    certificates(&other.0);
    let url = format!("{}/api/hello.txt", nginx.https);
    let answer = call("http_get", nginx.config(), json!({ "url": url }))
        .env("SSL_CERT_FILE", other.path("ca.pem"))
        .run();
    answer.refusal();
    // The system's authorities know nothing of the test's either.
    call("http_get", nginx.config(), json!({ "url": url })).run().refusal();
}

#[test]
fn a_server_that_lies_or_is_no_web_server_is_an_error() {
    for reply in [
        &b"SSH-2.0-x\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        b"",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(reply);
        });
        let config = json!({ "url_prefixes": [base], "addresses": ["loopback"] });
        call("http_get", config, json!({ "url": base })).run().refusal();
    }
}
