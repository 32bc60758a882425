#![forbid(unsafe_code)]
//! Redaction, measured: a corpus of made-up secrets as programs print them, and of look-alikes that must stay,
//! sent through the pair as the output of a program.
//!
//! The secrets are made by a generator with a fixed seed; none was ever one.

use gloveport_tests::{Pair, Scene};
use serde_json::{Value, json};

/// A small generator (xorshift64*): the corpus is the same in every run.
struct Made(u64);

impl Made {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let letters = alphabet.as_bytes();
        (0..length).map(|_| char::from(letters[(self.next() % letters.len() as u64) as usize])).collect()
    }

    fn word(&mut self, length: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", length)
    }

    fn upper(&mut self, length: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", length)
    }

    fn hex(&mut self, length: usize) -> String {
        self.of("0123456789abcdef", length)
    }
}

/// A line of output, and the part of it that is the secret.
type Sample = (String, String);

/// Token formats that show what they are.
fn shaped(made: &mut Made) -> Vec<(&'static str, String)> {
    let jwt_part = |made: &mut Made, length| format!("eyJ{}", made.word(length));
    vec![
        ("AWS key id", format!("AKIA{}", made.upper(16))),
        ("AWS session key id", format!("ASIA{}", made.upper(16))),
        ("Google API key", format!("AIza{}", made.word(35))),
        ("Google OAuth token", format!("ya29.{}", made.word(80))),
        ("GitHub token", format!("ghp_{}", made.word(36))),
        ("GitHub app token", format!("ghs_{}", made.word(36))),
        ("GitHub fine-grained", format!("github_pat_{}_{}", made.word(22), made.word(59))),
        ("GitLab token", format!("glpat-{}", made.word(20))),
        (
            "Slack bot token",
            format!("xoxb-{}-{}-{}", made.of("0123456789", 12), made.of("0123456789", 12), made.word(24)),
        ),
        (
            "Slack webhook",
            format!(
                "https://hooks.slack.com/services/T{}/B{}/{}",
                made.upper(9),
                made.upper(9),
                made.word(24)
            ),
        ),
        ("Telegram bot token", format!("{}:AA{}", made.of("123456789", 9), made.word(33))),
        (
            "Discord webhook",
            format!("https://discord.com/api/webhooks/{}/{}", made.of("0123456789", 18), made.word(68)),
        ),
        ("JSON Web Token", format!("{}.{}.{}", jwt_part(made, 33), jwt_part(made, 60), made.word(43))),
        ("Stripe key", format!("sk_live_{}", made.word(24))),
        ("OpenAI key", format!("sk-proj-{}", made.word(48))),
        ("npm token", format!("npm_{}", made.word(36))),
        ("PyPI token", format!("pypi-AgEIcHlwaS5vcmc{}", made.word(80))),
        ("Hugging Face token", format!("hf_{}", made.word(34))),
        ("Vault token", format!("hvs.{}", made.word(90))),
        ("DigitalOcean token", format!("dop_v1_{}", made.hex(64))),
        ("SendGrid key", format!("SG.{}.{}", made.word(22), made.word(43))),
        ("gloveport token", format!("gp_{}", made.word(43))),
        ("password hash", format!("$6$rounds=5000${}${}", made.word(16), made.word(86))),
    ]
}

/// Where a shaped token turns up.
const PLACES: [&str; 6] = [
    "{}",
    "export SOMETHING={}",
    "2026-01-31T10:00:00Z app[12]: using {} for upload",
    "{\"value\": \"{}\", \"n\": 1}",
    "curl -H 'X-Anything: {}' https://example.org/",
    "<setting>{}</setting>",
];

/// Values that only their key gives away.
const KEYED: [&str; 27] = [
    "password={}",
    "DB_PASSWORD={}",
    "password: {}",
    "\"password\": \"{}\",",
    "'passwd' => '{}',",
    "passwd: {}",
    "<password>{}</password>",
    "export MYSQL_PWD={}",
    "client_secret = \"{}\"",
    "secret_key_base: {}",
    "api_key={}",
    "apikey: {}",
    "X-Api-Key: {}",
    "AWS_SECRET_ACCESS_KEY={}",
    "aws_secret_access_key = {}",
    "AccountKey={};EndpointSuffix=core.windows.net",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "Authorization: token {}",
    "Cookie: session={}",
    "postgres://app:{}@db.example.org:5432/app",
    "https://user:{}@git.example.org/repo.git",
    "redis://:{}@localhost:6379/0",
    "mysqld --user=x --password={} --port=3306",
    "tool --token {} --verbose",
    "{\\\"access_token\\\": \\\"{}\\\"}",
    "machine example.org login someone password {}",
];

fn secrets() -> Vec<Sample> {
    let mut made = Made(0x5EED);
    let mut samples = Vec::new();
    for place in PLACES {
        for (_, token) in shaped(&mut made) {
            samples.push((place.replace("{}", &token), token));
        }
    }
    for (round, key) in KEYED.iter().cycle().take(KEYED.len() * 3).enumerate() {
        let value = match round / KEYED.len() {
            0 => made.word(24),
            1 => format!("{}/{}=", made.word(20), made.word(19)),
            _ => format!("{}-{}", made.of("abcdefghijklmnopqrstuvwxyz", 6), made.hex(8)),
        };
        samples.push((key.replacen("{}", &value, 1), value));
    }
    samples
}

/// What ordinary programs print and nobody wants to miss: nothing of it may be redacted.
fn look_alikes() -> Vec<String> {
    let mut made = Made(0xF00D);
    let mut lines: Vec<String> = [
        "total 48", "drwxr-xr-x 2 root root 4096 Jan 31 10:00 secrets", "/etc/passwd", "/etc/passwd:1",
        "root:x:0:0:root:/root:/bin/bash", "passwd: files systemd", "password required pam_unix.so", "PasswordAuthentication no",
        "max_tokens=4096", "tokens: 1280", "tokenizer=fast", "token_count: 12", "secretary=Anna", "keyboard=de",
        "key: value", "primary key (id)", "PRIMARY KEY, btree (id)", "monkey=banana", "author: Jane Roe", "authority=local",
        "session opened for user root", "session closed for user root", "signature verified", "The secret of good tea",
        "Please enter your password:", "Enter passphrase for key '/home/a/.ssh/id_ed25519':", "password changed for user jane",
        "Failed password for invalid user admin from 192.0.2.7 port 52144 ssh2", "Accepted publickey for jane from 192.0.2.9",
        "https://example.org/path?query=1#fragment", "https://example.org:8443/a@b", "git@github.com:owner/repo.git",
        "mailto:jane@example.org", "docker-pullable://nginx:1.25@sha256:e3b0c44298fc1c14", "http://host:8080/~jane/a@b?c=d@e", "jane@example.org", "ssh://jane@host.example.org/srv/repo.git", "http://[::1]:8010/mcp",
        "Bearer of good news", "basic auth is disabled", "cookie policy accepted", "0 tokens left", "no secrets found",
        "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOefOC0cU22rqQRZy a@b",
        "SHA256:uNiVztksCsDhcc0u9e8BrrkfQ8YjPYVRg6Zrg0yEDWI a@b (ED25519)", "md5: d41d8cd98f00b204e9800998ecf8427e",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "Content-Type: application/json",
        "UUID=3e6be9de-8139-4a92-8f2a-8e0a1d7a1c3e / ext4 defaults 0 1", "PARTUUID=6a4b2f0e-01", "machine-id: 8d6f6c9b7b8f4f6c9e2a1b3c4d5e6f70",
        "inet 192.0.2.10/24 brd 192.0.2.255 scope global eth0", "link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff",
        "BOOT_IMAGE=/boot/vmlinuz-6.1.0-18-amd64 root=UUID=0a3407de-014b-458b-b5c1-848e92a327a3 ro quiet",
        "Jan 31 10:00:01 host CRON[123]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)",
        "tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:((\"sshd\",pid=1,fd=3))", "libsecret-1-0 0.20.5-3 amd64", "python3-keyring 23.9.3-2 all",
        "gnome-keyring 42.1-1 amd64", "passwd 1:4.13+dfsg1-1 amd64", "libpam-modules 1.5.2-6 amd64", "token-ring: none",
        "password = false", "password: null", "secret: true", "api_key: none", "PASSWORD=", "password: ''", "\"token\": null,", "token: ***",
        "std::string key = map.begin()->first;", "if (key == other) return;", "for key, value in items:", "fn token(&self) -> &str {",
        "processor : 0", "model name : Intel(R) Xeon(R) Processor @ 2.90GHz", "flags : fpu vme de pse tsc msr pae mce cx8 apic sep",
        "NAME=\"Debian GNU/Linux\"", "VERSION_ID=\"12\"", "load average: 0.00, 0.01, 0.05", "Mem: 16384 2048 8192", "eth0: flags=4163<UP>",
    ]
    .map(str::to_owned)
    .to_vec();
    for _ in 0..10 {
        lines.push(format!("commit {}", made.hex(40)));
        lines.push(format!("{}  ./path/to/{}.tar.gz", made.hex(64), made.word(8)));
        lines.push(format!("container {} started", made.hex(12)));
        lines.push(format!("\"Id\": \"sha256:{}\",", made.hex(64)));
        lines.push(format!(
            "[{}.{}] eth0: renamed from veth{}",
            made.of("123456789", 5),
            made.of("0123456789", 6),
            made.hex(7)
        ));
        lines.push(format!("request_id={}-{}-{} status=200", made.hex(8), made.hex(4), made.hex(12)));
    }
    lines
}

/// A pair whose `show` prints a file as it is.
fn pair(content: &[u8], keys: Value) -> Pair {
    let scene = Scene::new();
    let file = scene.file("corpus", content);
    let show = scene.exec("show", &["/bin/cat", &file]);
    let show = show.with(json!({"max_output": "16MiB", "sandbox": {"read": [scene.root]}})).with(keys);
    scene.pair(&[show])
}

fn shown(pair: &Pair) -> String {
    let result = pair.call("show", json!({}));
    assert!(!result.is_error(), "{:#}", result.0);
    result.step(0)["stdout"].as_str().expect("output").to_owned()
}

#[test]
fn the_recall_and_the_false_positives_over_the_corpus_are_known() {
    let secrets = secrets();
    let look_alikes = look_alikes();
    let lines: Vec<&str> =
        secrets.iter().map(|(line, _)| line.as_str()).chain(look_alikes.iter().map(String::as_str)).collect();
    let output = shown(&pair((lines.join("\n") + "\n").as_bytes(), json!({})));
    let shown: Vec<&str> = output.lines().collect();
    assert_eq!(shown.len(), lines.len(), "redaction keeps lines");
    let missed: Vec<&Sample> = secrets
        .iter()
        .zip(&shown)
        .filter(|((_, secret), shown)| shown.contains(secret.as_str()))
        .map(|(sample, _)| sample)
        .collect();
    let marked: Vec<(&String, &&str)> =
        look_alikes.iter().zip(&shown[secrets.len()..]).filter(|(line, shown)| line != *shown).collect();
    println!(
        "redaction: recall {}/{}, false positives {}/{}",
        secrets.len() - missed.len(),
        secrets.len(),
        marked.len(),
        look_alikes.len()
    );
    let faults = format!("shown although secret: {missed:#?}\nredacted although harmless: {marked:#?}");
    assert!(missed.is_empty() && marked.is_empty(), "{faults}");
}

/// A private key as a program prints it: only its form is one.
fn private_key(kind: &str, made: &mut Made) -> (String, String) {
    let body: Vec<String> = (0..12).map(|_| made.word(64)).collect();
    let secret = body[5].clone();
    (
        format!("-----BEGIN {kind}PRIVATE KEY-----\n{}\n-----END {kind}PRIVATE KEY-----\n", body.join("\n")),
        secret,
    )
}

#[test]
fn private_keys_go_across_lines_and_what_follows_stays() {
    let mut made = Made(7);
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let (key, secret) = private_key(kind, &mut made);
        let output = shown(&pair(format!("before\n{key}after\n").as_bytes(), json!({})));
        assert!(!output.contains(&secret), "{kind}: {output}");
        assert!(output.contains("before\n") && output.contains("after\n"), "{kind}: {output}");
    }
    // One that never ends, and one in a JSON string.
    let (key, secret) = private_key("", &mut made);
    let (begin, _) = key.split_once("-----END").expect("an end");
    assert!(!shown(&pair(begin.as_bytes(), json!({}))).contains(&secret));
    let json = json!({"key": key}).to_string();
    let output = shown(&pair(json.as_bytes(), json!({})));
    assert!(!output.contains(&secret), "{output}");
}

#[test]
fn a_line_of_five_megabytes_invalid_bytes_and_the_ends_of_chunks_hide_nothing() {
    let mut made = Made(11);
    let token = format!("ghp_{}", made.word(36));
    // Around every place where a read of 64 KiB may end, and at some of any kind.
    let mut line = Vec::new();
    let mut count = 0;
    while line.len() < 5_000_000 {
        let next = if count % 2 == 0 { 65_536 - 20 } else { 65_536 + 9_973 };
        line.extend(std::iter::repeat_n(b'x', next - token.len()));
        line.extend_from_slice(b" \xff\xfe ");
        line.extend_from_slice(token.as_bytes());
        line.extend_from_slice(b" ");
        count += 1;
    }
    let output = shown(&pair(&line, json!({})));
    assert!(
        !output.contains(&token) && output.matches("[redacted]").count() == count,
        "{} of {count}",
        output.matches("[redacted]").count()
    );
    assert!(output.len() > 4_900_000, "{}", output.len());
    // With patterns of the action's own a line that cannot be held fails closed.
    let own = json!({"redact": {"builtin": [], "patterns": ["cust-[0-9]+"]}});
    let mut long = vec![b'y'; 3_000_000];
    long.extend_from_slice(b" cust-4711\nnext cust-12 line\n");
    let output = shown(&pair(&long, own));
    assert!(!output.contains("4711") && output.ends_with("next [redacted] line\n"), "{}", output.len());
    assert!(output.len() < 100, "{}", output.len());
}

#[test]
fn patterns_of_the_actions_own_join_the_built_in_ones_or_stand_alone() {
    let text = "customer cust-4711 password=hunter2\n";
    let with = |redact: Value| shown(&pair(text.as_bytes(), json!({"redact": redact})));
    assert_eq!(with(json!({"patterns": ["cust-[0-9]+"]})), "customer [redacted] password=[redacted]\n");
    assert_eq!(
        with(json!({"builtin": [], "patterns": ["cust-[0-9]+"]})),
        "customer [redacted] password=hunter2\n"
    );
    assert_eq!(with(json!({"builtin": []})), text);
    let counted = pair(text.as_bytes(), json!({})).call("show", json!({}));
    assert_eq!(counted.step(0)["redactions"], 1);
    assert!(counted.text().contains("redact"), "a reader is told: {}", counted.text());
}
