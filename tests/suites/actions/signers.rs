#![forbid(unsafe_code)]
//! Who may sign: several people, hardware keys, and keys that `gloveport catalog keygen` makes. A changed byte,
//! a stranger's key and another purpose are in `catalogue_trust`.

use super::{gloveport, printed, source};
use ed25519_compact::{KeyPair, Seed};
use gloveport_contract::packet::{Event, Request};
use gloveport_tests::helper::Preparation;
use gloveport_tests::signing::{self, Key};
use gloveport_tests::{Helper, Scene, programs};
use std::fs;
use std::path::Path;
use std::process::Command;

fn prepared() -> Preparation {
    let scene = Scene::new();
    let hello = scene.probing("hello", &["print", "hello"]);
    let preparation = scene.prepare(&[hello]);
    preparation.write();
    preparation
}

fn trust(preparation: &Preparation, lines: &[String]) {
    fs::write(preparation.scene.state().join("trusted_signers"), lines.join(""))
        .expect("writing trusted_signers");
}

fn assert_runs(helper: &Helper) {
    assert_eq!(helper.run(helper.call("hello", &[])).stdout, "hello\n");
}

/// What the helper says about having no catalogue.
fn reason(helper: &Helper) -> String {
    let mut connection = helper.connect();
    connection.send(&Request::Status { page: 0 });
    match connection.receive() {
        Some((Event::StatusReply { digest: None, reason: Some(reason), .. }, _)) => reason,
        other => panic!("a catalogue is in force: {other:?}"),
    }
}

#[test]
fn each_of_several_signers_counts_and_one_who_was_removed_does_not() {
    for signer in [0, 1, 2] {
        let preparation = prepared();
        let keys: Vec<Key> =
            (0..3).map(|n| Key::make(&preparation.scene.root, &format!("key-{n}"))).collect();
        let lines: Vec<String> =
            keys.iter().enumerate().map(|(n, key)| key.signer(&format!("reviewer-{n}"))).collect();
        trust(&preparation, &[vec!["# who may sign\n\n".to_owned()], lines].concat());
        keys[signer].sign(signing::NAMESPACE, &preparation.catalog_file());
        assert_runs(&preparation.start_as_it_is());
    }
    let preparation = prepared();
    let key = Key::make(&preparation.scene.root, "removed");
    trust(&preparation, &[preparation.key.signer("operator")]);
    key.sign(signing::NAMESPACE, &preparation.catalog_file());
    assert!(reason(&preparation.start_as_it_is()).contains("trusted_signers"));
}

#[test]
fn an_option_that_is_not_understood_is_never_ignored() {
    let preparation = prepared();
    let line =
        preparation.key.signer("operator").replace("namespaces=", "valid-before=\"20200101\",namespaces=");
    trust(&preparation, &[line]);
    assert!(reason(&preparation.start_as_it_is()).contains("valid-before"));
}

/// A field of the SSH wire format.
fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).expect("a short field").to_be_bytes());
    out.extend(bytes);
}

fn fields(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    parts.iter().for_each(|part| field(&mut out, part));
    out
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = ALPHABET[(number >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A hardware key, played in software.
struct Token {
    pair: KeyPair,
    application: &'static [u8],
}

/// Somebody touched the token.
const PRESENT: u8 = 1;

impl Token {
    const KIND: &[u8] = b"sk-ssh-ed25519@openssh.com";

    fn new() -> Self {
        Self { pair: KeyPair::from_seed(Seed::new([42; 32])), application: b"ssh:" }
    }

    fn public(&self) -> Vec<u8> {
        fields(&[Self::KIND, self.pair.pk.as_ref(), self.application])
    }

    fn signer(&self) -> String {
        let public = base64(&self.public());
        format!("operator namespaces=\"{}\" sk-ssh-ed25519@openssh.com {public}\n", signing::NAMESPACE)
    }

    /// Signs a file as `ssh-keygen -Y sign` with such a key does (PROTOCOL.sshsig, PROTOCOL.u2f).
    fn sign(&self, file: &Path, flags: u8) {
        let message = hmac_sha256::Hash::hash(&fs::read(file).expect("a catalogue"));
        let namespace = signing::NAMESPACE.as_bytes();
        let signed = [b"SSHSIG".to_vec(), fields(&[namespace, b"", b"sha256", &message])].concat();
        let counter = 7_u32.to_be_bytes();
        let application = hmac_sha256::Hash::hash(self.application);
        let by_token =
            [application.as_slice(), &[flags], &counter, &hmac_sha256::Hash::hash(&signed)].concat();
        let signature = self.pair.sk.sign(by_token, None);
        let inner = [fields(&[Self::KIND, signature.as_ref()]), vec![flags], counter.to_vec()].concat();
        let outer = fields(&[&self.public(), namespace, b"", b"sha256", &inner]);
        let blob = [b"SSHSIG\0\0\0\x01".to_vec(), outer].concat();
        let text = base64(&blob);
        let lines: Vec<&str> =
            text.as_bytes().chunks(70).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        let lines = lines.join("\n");
        let armour = format!("-----BEGIN SSH SIGNATURE-----\n{lines}\n-----END SSH SIGNATURE-----\n");
        fs::write(format!("{}.sig", file.display()), armour).expect("writing a signature");
    }
}

#[test]
fn a_catalogue_that_a_touched_hardware_key_signed_is_in_force() {
    let preparation = prepared();
    let token = Token::new();
    trust(&preparation, &[token.signer()]);
    token.sign(&preparation.catalog_file(), PRESENT);
    assert_runs(&preparation.start_as_it_is());
}

#[test]
fn a_hardware_key_that_nobody_touched_or_of_another_application_does_not_count() {
    let preparation = prepared();
    let token = Token::new();
    trust(&preparation, &[token.signer()]);
    token.sign(&preparation.catalog_file(), 0);
    assert!(reason(&preparation.start_as_it_is()).contains("touch"));
    let preparation = prepared();
    trust(&preparation, &[Token::new().signer()]);
    Token { application: b"ssh:other", ..Token::new() }.sign(&preparation.catalog_file(), PRESENT);
    assert!(reason(&preparation.start_as_it_is()).contains("trusted_signers"));
}

#[test]
fn openssh_and_the_helper_agree_about_the_played_hardware_key() {
    let preparation = prepared();
    let token = Token::new();
    let file = preparation.catalog_file();
    token.sign(&file, PRESENT);
    let signers = preparation.scene.file("signers", token.signer());
    let output = Command::new("ssh-keygen")
        .args(["-Y", "verify", "-n", signing::NAMESPACE, "-I", "operator", "-f", &signers, "-s"])
        .arg(format!("{}.sig", file.display()))
        .stdin(fs::File::open(&file).expect("the catalogue"))
        .output()
        .expect("ssh-keygen");
    assert!(output.status.success(), "{}", printed(&output));
    let helper = Command::new(programs::built("gloveport-helper"))
        .arg("--check")
        .args([file, signers.into()])
        .output();
    let helper = helper.expect("the helper");
    assert!(helper.status.success() && printed(&helper).starts_with("ok "), "{}", printed(&helper));
}

#[test]
fn the_vectors_of_the_helper_hold_for_the_program_as_installed() {
    let scene = Scene::new();
    let vectors = programs::repository().join("helper/testdata/sshsig");
    let file = scene.file("catalog.json", fs::read(vectors.join("message")).expect("a vector"));
    let signers = scene.file("signers", fs::read(vectors.join("trusted_signers")).expect("a vector"));
    let verdict = |signature: &str| {
        scene.file("catalog.json.sig", fs::read(vectors.join(signature)).expect("a vector"));
        let mut command = Command::new(programs::built("gloveport-helper"));
        let output = command.arg("--check").args([&file, &signers]).output().expect("the helper");
        (output.status.success(), printed(&output))
    };
    for good in ["sha512.sig", "sha256.sig", "sk.sig"] {
        assert!(verdict(good).0, "{good}: {}", verdict(good).1);
    }
    for bad in ["sk_untouched.sig", "other_namespace.sig", "stranger.sig", "rsa.sig", "small_order_r.sig"] {
        assert!(!verdict(bad).0, "{bad}: {}", verdict(bad).1);
    }
}

#[test]
fn a_key_of_the_host_is_made_once_and_trusted_and_signs_what_is_built() {
    let scene = Scene::new();
    let made = gloveport(&scene, &["catalog", "keygen"]);
    assert!(made.status.success(), "{}", printed(&made));
    let state = scene.state();
    let key = fs::read(state.join("host_key")).expect("the key");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(state.join("host_key")).expect("the key").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let signers = fs::read_to_string(state.join("trusted_signers")).expect("the signers");
    assert!(signers.contains("namespaces=\"gloveport-catalog\" ssh-ed25519 "), "{signers}");
    assert!(printed(&gloveport(&scene, &["catalog", "keygen"])).contains("was there already"));
    assert_eq!(fs::read(state.join("host_key")).expect("the key"), key);
    let there = gloveport(&scene, &["catalog", "keygen", &state.join("host_key").display().to_string()]);
    assert!(
        there.status.code() == Some(1) && printed(&there).contains("never replaced"),
        "{}",
        printed(&there)
    );

    let directory = source(&scene, "sources", "name: a\ndescription: d\nrisk: read\nexec: [/bin/true]\n");
    let built = gloveport(&scene, &["catalog", "build", &directory.display().to_string()]);
    assert!(built.status.success(), "{}", printed(&built));
    assert!(!state.join("catalog.json").exists(), "nothing is in force before it is signed");
    let digest =
        fs::read_dir(state.join("catalogs")).expect("catalogs").flatten().next().expect("a catalogue");
    let file = digest.path().join("catalog.json").display().to_string();
    scene.install("gloveport-helper");
    let signed = gloveport(&scene, &["catalog", "sign", &file]);
    assert!(signed.status.success(), "{}", printed(&signed));
    let verified = gloveport(&scene, &["catalog", "verify"]);
    assert!(verified.status.success(), "{}", printed(&verified));
    fs::write(&file, fs::read_to_string(&file).expect("it").replace("/bin/true", "/bin/tru3"))
        .expect("writing");
    assert_eq!(gloveport(&scene, &["catalog", "verify"]).status.code(), Some(1));
}
