#![forbid(unsafe_code)]
//! What is fuzzed: everything that the helper reads and did not write. Each subject takes any bytes, says in
//! a word what became of them, and panics where a rule is broken that must hold for all bytes.
//!
//! The helper's own tests compile this file too, and replay the corpus: `corpus/SUBJECT/WORD.NAME` must be
//! answered with WORD.

use crate::signers;
use crate::sshsig::{self, NAMESPACE, SigError};
use gloveport_contract::catalog::Catalog;
use gloveport_contract::limits;
use gloveport_contract::packet::{Argument, Event, PacketError, Request, Scalar, Value};
use gloveport_contract::plan::{Refusal, StepKind, is_absolute_path, is_under, plan};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A packet of the socket between the two halves, of either direction.
///
/// # Panics
/// What was decoded does not encode to the same bytes.
pub fn packets(input: &[u8]) -> &'static str {
    let (request, event) = (Request::decode(input), Event::decode(input));
    if let Ok(request) = &request {
        assert_eq!(request.encode().as_deref(), Ok(input), "one packet, one encoding");
    }
    if let Ok(event) = &event {
        assert_eq!(event.encode().as_deref(), Ok(input), "one packet, one encoding");
    }
    match (request, event) {
        (Ok(_), _) => "request",
        (_, Ok(_)) => "event",
        (Err(PacketError::TooLarge), _) => "too-large",
        (Err(PacketError::Malformed), _) => "malformed",
        (Err(PacketError::Trailing), _) => "trailing",
        (Err(PacketError::NotCanonical), _) => "not-canonical",
    }
}

/// A catalogue whose signature has been verified already.
///
/// # Panics
/// What was accepted is another catalogue, or none, after it was written out and read again.
pub fn catalogs(input: &[u8]) -> &'static str {
    let Ok(catalog) = serde_json::from_slice::<Catalog>(input) else { return "malformed" };
    if catalog.check().is_err() {
        return "meaningless";
    }
    for action in &catalog.actions {
        action.sandboxes();
        let _ = plan(action, &[], None);
    }
    let written = serde_json::to_vec(&catalog).expect("what was read can be written");
    let again: Catalog = serde_json::from_slice(&written).expect("what was written can be read");
    assert!(again.check().is_ok() && again == catalog, "a catalogue changes by being copied");
    "accepted"
}

const MESSAGE: &[u8] = include_bytes!("../../testdata/sshsig/message");
const SIGNERS: &str = include_str!("../../testdata/sshsig/trusted_signers");
/// All signatures that were ever made of [`MESSAGE`] and count.
const MADE: [&str; 3] = [
    include_str!("../../testdata/sshsig/sha512.sig"),
    include_str!("../../testdata/sshsig/sha256.sig"),
    include_str!("../../testdata/sshsig/sk.sig"),
];

/// A signature of a message: as a file, or the bytes within its armour, which a change to base64 seldom
/// reaches; or, where it is neither, the lines of `trusted_signers`.
///
/// # Panics
/// A signature counts that nobody made.
pub fn signatures(input: &[u8]) -> &'static str {
    static TRUSTED: LazyLock<Vec<signers::Signer>> =
        LazyLock::new(|| signers::parse(SIGNERS).expect("the signers of the test data"));
    let armoured = match input {
        [b'-', ..] => input.to_vec(),
        [b'S', b'S', b'H', ..] => armour(input).into_bytes(),
        _ => {
            let read = std::str::from_utf8(input).map(signers::parse);
            return if matches!(read, Ok(Ok(_))) { "signers" } else { "no-signers" };
        }
    };
    match sshsig::verify(MESSAGE, &armoured, NAMESPACE, &TRUSTED) {
        Ok(_) => {
            let is_it = |made: &&str| made.trim_end().as_bytes() == armoured.trim_ascii_end();
            assert!(MADE.iter().any(is_it), "a signature counts that nobody made");
            "counts"
        }
        Err(SigError::Armour) => "armour",
        Err(SigError::Form) => "form",
        Err(SigError::Namespace) => "namespace",
        Err(SigError::Hash) => "hash",
        Err(SigError::Algorithm) => "algorithm",
        Err(SigError::Key(_)) => "key",
        Err(SigError::Unknown) => "unknown",
        Err(SigError::NotPresent) => "not-present",
        Err(SigError::Mismatch) => "mismatch",
    }
}

/// What `ssh-keygen` puts around a signature (RFC 4648, lines of 70 characters).
fn armour(blob: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in blob.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        text.extend((0..4).map(|at| match ALPHABET.get((bits >> (18 - 6 * at)) as usize & 63) {
            Some(character) if at <= group.len() => char::from(*character),
            _ => '=',
        }));
    }
    let lines: Vec<_> = text.as_bytes().chunks(70).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

/// A call of an action of `catalog.json`: its name on a line, then a line for each argument. `NAME=TEXT`, in
/// which `\n` is a line break and `\0` a NUL; `NAME:123`, `NAME:true`, `NAME:null`; `NAME[]=TEXT` and
/// `NAME[]:123` for each element of a list.
///
/// # Panics
/// A plan starts what the catalogue does not name, or leads to a path that it does not allow.
pub fn arguments(input: &[u8]) -> &'static str {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../catalog.json")).expect("a catalogue that was built")
    });
    let mut lines = input.split(|byte| *byte == b'\n');
    let name = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let Some(action) = CATALOG.action(&name) else { return "no-action" };
    let given = read_arguments(lines);
    let plan = match plan(action, &given, None) {
        Ok(plan) => plan,
        Err(Refusal::Argument { .. }) => return "argument",
        Err(Refusal::Command(_)) => return "command",
    };
    for step in &plan.steps {
        let program = step.argv.first().expect("a program");
        match step.kind {
            StepKind::Program { path, .. } => assert!(is_absolute_path(path), "{path}"),
            StepKind::Script { interpreter, .. } => assert_eq!(program, interpreter.as_bytes()),
            StepKind::Handler(_) => assert_eq!(program, b"gloveport-handler"),
        }
        assert!(step.argv.len() <= limits::ARGV, "{} elements", step.argv.len());
        assert!(!step.argv.iter().any(|element| element.contains(&0)), "a NUL would cut an argument");
    }
    for path in &plan.paths {
        assert!(is_absolute_path(&path.path), "{}", path.path);
        assert!(path.roots.is_empty() || path.roots.iter().any(|root| is_under(&path.path, root)));
    }
    assert!(is_absolute_path(&plan.cwd.path), "{}", plan.cwd.path);
    "planned"
}

fn read_arguments<'i>(lines: impl Iterator<Item = &'i [u8]>) -> Vec<Argument> {
    let mut single = Vec::new();
    let mut lists: BTreeMap<String, Vec<Scalar>> = BTreeMap::new();
    for line in lines {
        let Some(at) = line.iter().position(|byte| matches!(byte, b'=' | b':')) else { continue };
        let (name, value) = line.split_at(at);
        let name = String::from_utf8_lossy(name).into_owned();
        let value = read_value(value);
        match (name.strip_suffix("[]"), value) {
            (None, Some(scalar)) => single.push(Argument { name, value: scalar.into() }),
            (None, None) => single.push(Argument { name, value: Value::Null }),
            (Some(list), Some(scalar)) => lists.entry(list.to_owned()).or_default().push(scalar),
            (Some(list), None) => {
                lists.entry(list.to_owned()).or_default();
            }
        }
    }
    single.extend(lists.into_iter().map(|(name, list)| Argument { name, value: Value::List(list) }));
    single
}

/// A value behind `=` or `:`; `None` is null.
fn read_value(value: &[u8]) -> Option<Scalar> {
    match value {
        b":true" => Some(Scalar::Boolean(true)),
        b":false" => Some(Scalar::Boolean(false)),
        [b':', number @ ..] => std::str::from_utf8(number).ok()?.parse().ok().map(Scalar::Integer),
        [_, text @ ..] => {
            let mut bytes = Vec::with_capacity(text.len());
            let mut rest = text.iter();
            while let Some(byte) = rest.next() {
                match (byte, rest.as_slice().first()) {
                    (b'\\', Some(b'n')) => bytes.push(b'\n'),
                    (b'\\', Some(b'0')) => bytes.push(0),
                    _ => {
                        bytes.push(*byte);
                        continue;
                    }
                }
                rest.next();
            }
            Some(Scalar::Text(bytes))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_corpus_is_answered_as_its_names_say() {
        type Subject = fn(&[u8]) -> &'static str;
        let subjects: [(&str, Subject); 4] = [
            ("packets", packets),
            ("catalogs", catalogs),
            ("signatures", signatures),
            ("arguments", arguments),
        ];
        for (name, subject) in subjects {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
            let mut inputs = 0;
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let file = path.file_name().unwrap().to_str().unwrap();
                let (word, _) = file.split_once('.').unwrap();
                assert_eq!(subject(&fs::read(&path).unwrap()), word, "{}", path.display());
                inputs += 1;
            }
            assert!(inputs > 0, "{} is empty", directory.display());
        }
    }
}
