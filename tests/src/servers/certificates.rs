#![forbid(unsafe_code)]
//! Certificates for servers and clients of a test.

use super::must;
use std::path::Path;

/// An authority, and certificates of a server for 127.0.0.1 and localhost and of a client.
///
/// # Panics
/// Without openssl(1).
pub fn certificates(directory: &Path) {
    let at = |name: &str| directory.join(name).display().to_string();
    let key = |name: &str| {
        must(
            "openssl",
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &at(name)],
        );
    };
    key("ca.key");
    must(
        "openssl",
        &[
            "req",
            "-x509",
            "-new",
            "-key",
            &at("ca.key"),
            "-subj",
            "/CN=test authority",
            "-days",
            "2",
            "-out",
            &at("ca.pem"),
        ],
    );
    std::fs::write(at("server.ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").expect("writing a file");
    std::fs::write(at("client.ext"), "extendedKeyUsage=clientAuth\n").expect("writing a file");
    for name in ["server", "client"] {
        let file = |kind: &str| at(&format!("{name}.{kind}"));
        key(&format!("{name}.key"));
        must(
            "openssl",
            &["req", "-new", "-key", &file("key"), "-subj", &format!("/CN={name}"), "-out", &file("csr")],
        );
        must(
            "openssl",
            &[
                "x509",
                "-req",
                "-in",
                &file("csr"),
                "-CA",
                &at("ca.pem"),
                "-CAkey",
                &at("ca.key"),
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                &file("ext"),
                "-out",
                &file("pem"),
            ],
        );
    }
}
