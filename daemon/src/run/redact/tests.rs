#![forbid(unsafe_code)]
//! Every secret here is made up; each look-alike is what ordinary programs print.

use super::*;

fn redactor() -> Redactor {
    Redaction::new(&Redact::default(), [].into_iter()).expect("the built-in rules compile").start()
}

fn with_patterns(patterns: &[&str]) -> Redactor {
    let redact = Redact { builtin: Vec::new(), patterns: patterns.iter().map(ToString::to_string).collect() };
    Redaction::new(&redact, [].into_iter()).expect("patterns").start()
}

fn run_in(mut redactor: Redactor, chunks: &[&[u8]]) -> (String, u64) {
    let mut out = Vec::new();
    chunks.iter().for_each(|chunk| redactor.push(chunk, &mut out));
    let count = redactor.finish(&mut out);
    (String::from_utf8_lossy(&out).into_owned(), count)
}

fn shown(text: &str) -> String {
    run_in(redactor(), &[text.as_bytes()]).0
}

/// A made-up value of that length, of letters and digits.
fn made_up(length: usize) -> String {
    "aZ3kQ9xW1bV7mC5nR2tY8uJ4".chars().cycle().take(length).collect()
}

/// Texts with a secret, and the part that must not come through.
fn secrets_with_surroundings() -> Vec<(String, String)> {
    let shaped = |shape: &str, length: usize| {
        let secret = format!("{shape}{}", made_up(length));
        (format!("before {secret} after"), secret)
    };
    let keyed =
        |before: &str, secret: &str, after: &str| (format!("{before}{secret}{after}"), secret.to_owned());
    let upper = format!("AKIA{}", "Q7W3E5R2T4Y6U7I2");
    let jwt = format!("eyJ{}.eyJ{}.{}", made_up(20), made_up(30), made_up(43));
    let random = made_up(32);
    vec![
        keyed("id ", &upper, ""),
        shaped("AIza", 35),
        shaped("ya29.", 60),
        shaped("GOCSPX-", 28),
        shaped("ghp_", 36),
        shaped("ghs_", 36),
        shaped("github_pat_", 59),
        shaped("glpat-", 20),
        shaped("gldt-", 20),
        shaped("xoxb-123456789012-", 24),
        shaped("xapp-1-A0123456789-", 40),
        shaped("gp_", 43),
        shaped("sk-proj-", 40),
        shaped("npm_", 36),
        shaped("$6$saltsalt$", 60),
        keyed("bot ", &format!("123456789:AA{}", made_up(33)), " ok"),
        keyed("discord ", &format!("M{}.G{}.{}", made_up(25), made_up(5), made_up(38)), ""),
        keyed("azure ", &format!("abc8Q~{}", made_up(34)), ""),
        keyed("jwt ", &jwt, ", next"),
        keyed("https://", &format!("hooks.slack.com/services/T000/B000/{}", made_up(24)), ""),
        keyed("password=", "hunter2", " user=x"),
        keyed("DB_PASSWORD=", "hunter2", ""),
        keyed("MYSQL_PWD=", "hunter2", ""),
        keyed("spring.datasource.password: ", "hunter2", ""),
        keyed("{\"password\": \"", "two words", "\", \"user\": \"x\"}"),
        keyed("{\\\"client_secret\\\":\\\"", "s3cr3t", "\\\"}"),
        keyed("{'token': '", "s3cr3t", "'}"),
        keyed("token: ", "s3cr3t", ""),
        keyed("token: ", "aBcDeFgHiJ", " and more"),
        keyed("password: ", "hunter", " user: x"),
        keyed("login failed (password: ", "hunter2", ") for joe"),
        keyed("/etc/app.conf:12:password: ", "hunter2", ""),
        keyed("/root/secret:7:token=", "abc", " x"),
        keyed("/run/secrets/db_password:", "hunter2", ""),
        keyed("https://host/cb?token=", "abc", ""),
        keyed("secret: ", "/u8Kq+c/x9", ""),
        keyed("api-key => ", "s3cr3t", ""),
        keyed("<password>", "hunter2", "</password>"),
        keyed("Uid=sa;Pwd=", "hunter2", ""),
        keyed("AccountKey=", &format!("{}==", made_up(86)), ";EndpointSuffix=core"),
        keyed("aws_secret_access_key = ", &made_up(40), ""),
        keyed("aws_session_token=", &made_up(300), ""),
        keyed("mysql --password ", "hunter2", " -h db"),
        keyed("curl --api-token ", "s3cr3t", ""),
        keyed("machine h login joe password ", "hunter2", ""),
        keyed("Authorization: Basic ", "dXNlcjpwYXNz", ""),
        keyed("curl -H 'Authorization: Bearer ", "abc", "' https://x"),
        keyed("\"authorization\": \"token ", "abc", "\""),
        keyed("proxy-authorization=", "abc", ""),
        keyed("Set-Cookie: ", "sid=1; HttpOnly", ""),
        keyed("Bearer ", &made_up(20), ""),
        keyed("passwd=", "hunter2", ""),
        keyed("a\nDB_PASSWD: ", "hunter2", ""),
        keyed("postgres://user:", "hunter2", "@db/x"),
        keyed("redis://:", "p@ss", "@db"),
        keyed("postgres://user:", "hun/ter?2#x", "@db/x"),
        keyed("secret_key_base: ", &made_up(64), ""),
        keyed("https://", &made_up(20), "@host/x"),
        keyed("session=", &random, ";"),
        keyed("sig=", &format!("{}%3D", made_up(43)), "&se=1"),
    ]
}

#[test]
fn every_kind_of_secret_is_found() {
    for (text, secret) in secrets_with_surroundings() {
        let (out, count) = run_in(redactor(), &[text.as_bytes()]);
        assert!(!out.contains(&secret), "{text}\n→ {out}");
        assert!(out.contains("[redacted]") && count >= 1, "{text}\n→ {out}");
    }
}

#[test]
fn what_surrounds_a_secret_stays() {
    assert_eq!(shown("user=a password=b host=c\n"), "user=a password=[redacted] host=c\n");
    assert_eq!(shown("{\"password\": \"x y\", \"n\": 1}"), "{\"password\": \"[redacted]\", \"n\": 1}");
    assert_eq!(shown("postgres://u:p@h/db"), "postgres://u:[redacted]@h/db");
    assert_eq!(shown("Authorization: Bearer abc\r\nHost: x"), "Authorization: Bearer [redacted]\r\nHost: x");
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    for text in [
        "PasswordAuthentication no",
        "password: null,",
        "passwd:         files systemd",
        "/etc/passwd:1",
        "cat: /root/secret: Permission denied",
        "cat: secret: Permission denied",
        "cat: ./token: Is a directory",
        "/etc/passwd: ASCII text",
        "/etc/passwd: ISO-8859 text, with very long lines",
        "/usr/bin/passwd: setuid ELF 64-bit LSB pie executable",
        "/etc/passwd:root:x:0:0:root:/root:/bin/bash",
        "/etc/passwd:1:root:x:0:0:root:/root:/bin/bash",
        "passwd: /usr/bin/passwd",
        "passwd: /usr/bin/passwd /etc/passwd /usr/share/man/man1/passwd.1.gz",
        "passwd: password updated successfully",
        "pam_unix(passwd:session): session opened for user root",
        "pam_unix(passwd:chauthtok): password changed for jane",
        "cat /etc/passwd>/tmp/users",
        "token: is not valid",
        "max_tokens=4096 tokenizer: bpe token_type: bearer",
        "passwordless: yes, secretary: Jane",
        "PWD=/root OLDPWD=/tmp",
        "PASS: 12 FAIL: 3",
        "key: ssh-ed25519 comment",
        "key=/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
        "http://127.0.0.1:8010/mcp and http://host:80/a@b",
        "http://[::1]:8010/a@b and docker-pullable://nginx:1.25@sha256:0011",
        "ssh://git@github.com/x",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "AKIA is a prefix, ghp_short too, eyJ also",
        "Password: ",
        "root:x:0:0:root:/root:/bin/bash",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn a_private_key_goes_with_all_its_lines() {
    let body = format!("{}\n{}\n", made_up(64), made_up(40));
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let text =
            format!("a\n-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----\nb\n");
        assert_eq!(shown(&text), "a\n[redacted]\nb\n");
    }
    let json = format!(
        "\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n\"",
        made_up(64)
    );
    assert!(!shown(&json).contains(&made_up(64)));
}

#[test]
fn a_private_key_without_an_end_is_left_out_up_to_its_longest_length() {
    let rest = "x".repeat(KEY - 1);
    assert_eq!(shown(&format!("a\n-----BEGIN PRIVATE KEY-----{rest}")), "a\n[redacted]");
    let longer = format!("a\n-----BEGIN PRIVATE KEY-----{}end\n", "x\n".repeat(KEY / 2));
    assert_eq!(shown(&longer), "a\n[redacted]end\n");
}

#[test]
fn it_does_not_matter_where_chunks_are_cut() {
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", made_up(64));
    let mut text: String = secrets_with_surroundings().into_iter().map(|(text, _)| text + "\n").collect();
    text.insert_str(text.find("password=").expect("a line of its own"), &key);
    let bytes = text.as_bytes();
    let whole = run_in(redactor(), &[bytes]);
    for cut in 0..bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(run_in(redactor(), &[a, b]), whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(run_in(redactor(), &single), whole);
}

#[test]
fn bytes_that_are_no_utf8_do_not_hide_a_secret() {
    let mut out = Vec::new();
    let mut redactor = redactor();
    redactor.push(b"\xff\xfe password=hunter2\xff\x00 \xc3\n", &mut out);
    redactor.finish(&mut out);
    assert_eq!(out, b"\xff\xfe password=[redacted] \xc3\n");
}

#[test]
fn a_secret_anywhere_in_a_line_of_megabytes_is_found() {
    let secret = format!("ghp_{}", made_up(36));
    for place in [0, 10, WINDOW - HOLD - 20, WINDOW - HOLD, WINDOW - 20, WINDOW, 3 * WINDOW + 17] {
        for filler in ["lorem, ", "日"] {
            let fill = filler.repeat(600_000 / filler.len());
            let at = (place..place + 4).find(|at| fill.is_char_boundary(*at)).expect("boundary");
            let (before, after) = fill.split_at(at);
            let text = format!("{before} {secret} password={} {after}", made_up(9));
            let (out, count) = run_in(redactor(), &[text.as_bytes()]);
            assert!(!out.contains(&secret) && !out.contains(&made_up(9)), "{filler} at {place}");
            assert_eq!((count, out.len()), (2, text.len() - 40 - 9 + 20), "{filler} at {place}");
        }
    }
}

#[test]
fn a_secret_longer_than_a_window_is_left_out_to_its_end() {
    let (out, _) = run_in(redactor(), &[format!("a password={} b\n", "x".repeat(5_000_000)).as_bytes()]);
    assert_eq!(out, "a password=[redacted] b\n");
}

#[test]
fn a_long_line_without_secrets_comes_through_whole() {
    for text in ["x".repeat(300_000), "日".repeat(100_000), "\0".repeat(300_000)] {
        assert!(shown(&text) == text);
    }
}

#[test]
fn patterns_of_the_action_apply_to_each_line() {
    let (out, count) = run_in(with_patterns(&["^acc=[0-9]+$", "B+"]), &[b"acc=12\nxBBx\nacc=1x\n"]);
    assert_eq!((out.as_str(), count), ("[redacted]\nx[redacted]x\nacc=1x\n", 2));
}

#[test]
fn a_line_too_long_for_a_pattern_becomes_a_placeholder() {
    let text = format!("a\n{}\nb\n", "x".repeat(5_000_000));
    let (out, count) = run_in(with_patterns(&["never"]), &[text.as_bytes()]);
    assert_eq!((out.as_str(), count), ("a\n[redacted]\nb\n", 1));
}

#[test]
fn a_pattern_that_is_none_stops_everything() {
    for pattern in ["(", r"\1", "(?=x)", r"\w{1000}{1000}"] {
        let redact = Redact { builtin: Vec::new(), patterns: vec![pattern.into()] };
        assert!(Redaction::new(&redact, [].into_iter()).is_err(), "{pattern}");
    }
}

#[test]
fn literal_values_are_redacted() {
    let redaction = Redaction::new(&Redact::default(), ["a.b+c"].into_iter()).expect("literal");
    assert_eq!(run_in(redaction.start(), &[b"got a.b+c, not aXb+c"]).0, "got [redacted], not aXb+c");
}

#[test]
fn no_rule_means_no_change() {
    assert_eq!(run_in(with_patterns(&[]), &[b"password=x"]), ("password=x".into(), 0));
}

#[test]
fn a_document_stays_json_with_its_strings_redacted() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let document =
        br#"{"z": 1, "password" : "a b", "lines": ["token=x y", "\u65e5\"q\""], "a": {"n": null}}"#;
    let (out, count) = redact_json(document, redactor(), text).expect("json");
    assert_eq!(
        out,
        r#"{"z": 1, "password" : "[redacted] b", "lines": ["token=[redacted] y", "日\"q\""], "a": {"n": null}}"#
    );
    assert_eq!(count, 2);
    assert!(redact_json(b"{\"a\": ", redactor(), text).is_none());
}

#[test]
fn a_private_key_over_several_strings_of_a_document_is_left_out() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let document = format!(
        r#"["a", "-----BEGIN PRIVATE KEY-----", "{}", "-----END PRIVATE KEY-----", "b"]"#,
        made_up(64)
    );
    let (out, _) = redact_json(document.as_bytes(), redactor(), text).expect("json");
    assert_eq!(out, r#"["a", "[redacted]", "", "", "b"]"#);
}
