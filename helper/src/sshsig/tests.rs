#![forbid(unsafe_code)]
//! `helper/testdata/sshsig` holds signatures of `message` made by OpenSSH's ssh-keygen 9.2, and three that
//! were made by hand and that ssh-keygen accepts: one of a security key, the same without a touch, and one
//! whose point R has a small order. The last two must not count here.

use super::*;
use crate::signers;
use ed25519_compact::{KeyPair, Seed};

const MESSAGE: &[u8] = include_bytes!("../../testdata/sshsig/message");
pub(crate) const SIGNERS: &str = include_str!("../../testdata/sshsig/trusted_signers");

macro_rules! vector {
    ($name:literal) => {
        include_bytes!(concat!("../../testdata/sshsig/", $name)).as_slice()
    };
}

fn verify_vector(armoured: &[u8]) -> Result<String, SigError> {
    let signers = signers::parse(SIGNERS).unwrap();
    verify(MESSAGE, armoured, NAMESPACE, &signers).map(|signer| signer.principal.clone())
}

#[test]
fn signatures_of_ssh_keygen_count_with_either_hash() {
    for armoured in [vector!("sha512.sig"), vector!("sha256.sig")] {
        assert_eq!(verify_vector(armoured).as_deref(), Ok("reviewer@example.com"));
    }
}

#[test]
fn a_security_key_counts_only_when_it_was_touched() {
    assert_eq!(verify_vector(vector!("sk.sig")).as_deref(), Ok("security-key@example.com"));
    assert_eq!(verify_vector(vector!("sk_untouched.sig")), Err(SigError::NotPresent));
}

#[test]
fn another_purpose_another_person_and_another_algorithm_do_not_count() {
    assert_eq!(verify_vector(vector!("other_namespace.sig")), Err(SigError::Namespace));
    assert_eq!(verify_vector(vector!("stranger.sig")), Err(SigError::Unknown));
    assert_eq!(verify_vector(vector!("rsa.sig")), Err(SigError::Algorithm));
}

#[test]
fn a_signature_whose_point_has_a_small_order_does_not_count() {
    assert_eq!(verify_vector(vector!("small_order_r.sig")), Err(SigError::Mismatch));
}

#[test]
fn every_changed_byte_of_message_or_signature_is_found() {
    let signers = signers::parse(SIGNERS).unwrap();
    for at in 0..MESSAGE.len() {
        let mut message = MESSAGE.to_vec();
        message[at] ^= 1;
        let result = verify(&message, vector!("sha512.sig"), NAMESPACE, &signers);
        assert_eq!(result, Err(SigError::Mismatch), "{at}");
    }
    let longer = [MESSAGE, b"\n"].concat();
    assert_eq!(verify(&longer, vector!("sha512.sig"), NAMESPACE, &signers), Err(SigError::Mismatch));
    let blob = unarmour(vector!("sha512.sig")).unwrap();
    for at in 0..blob.len() {
        let mut changed = blob.clone();
        changed[at] ^= 1;
        assert!(verify_vector(armour(&changed).as_bytes()).is_err(), "{at}");
    }
    for length in 0..blob.len() {
        assert!(verify_vector(armour(&blob[..length]).as_bytes()).is_err(), "{length}");
    }
}

/// A signature to be spoilt, field by field. As made by [`Parts::good`] it counts.
struct Parts {
    magic: Vec<u8>,
    version: u32,
    key_kind: Vec<u8>,
    key_bytes: Vec<u8>,
    key_rest: Vec<u8>,
    namespace: Vec<u8>,
    reserved: Vec<u8>,
    hash: Vec<u8>,
    signature_kind: Vec<u8>,
    cut_signature: usize,
    signature_rest: Vec<u8>,
    rest: Vec<u8>,
}

impl Parts {
    fn pair() -> KeyPair {
        KeyPair::from_seed(Seed::new([7; 32]))
    }

    fn good() -> Self {
        Self {
            magic: MAGIC.to_vec(),
            version: 1,
            key_kind: b"ssh-ed25519".to_vec(),
            key_bytes: Self::pair().pk.to_vec(),
            key_rest: Vec::new(),
            namespace: NAMESPACE.into(),
            reserved: Vec::new(),
            hash: b"sha512".to_vec(),
            signature_kind: b"ssh-ed25519".to_vec(),
            cut_signature: 0,
            signature_rest: Vec::new(),
            rest: Vec::new(),
        }
    }

    fn result(&self) -> Result<String, SigError> {
        verify_vector(self.sign(MESSAGE).as_bytes())
    }

    /// Signs what the fields say, so that each spoilt field is refused for itself.
    fn sign(&self, message: &[u8]) -> String {
        let digest = match self.hash.as_slice() {
            b"sha256" => hmac_sha256::Hash::hash(message).to_vec(),
            _ => hmac_sha512::Hash::hash(message).to_vec(),
        };
        let mut signed = MAGIC.to_vec();
        for field in [&self.namespace, &self.reserved, &self.hash, &digest] {
            string(&mut signed, field);
        }
        let signature = Self::pair().sk.sign(&signed, None);
        let mut inner = Vec::new();
        string(&mut inner, &self.signature_kind);
        string(&mut inner, &signature[self.cut_signature..]);
        inner.extend(&self.signature_rest);
        let mut key = Vec::new();
        string(&mut key, &self.key_kind);
        string(&mut key, &self.key_bytes);
        key.extend(&self.key_rest);
        let mut blob = self.magic.clone();
        blob.extend(self.version.to_be_bytes());
        for field in [&key, &self.namespace, &self.reserved, &self.hash, &inner] {
            string(&mut blob, field);
        }
        blob.extend(&self.rest);
        armour(&blob)
    }
}

/// Signs as `seven@example.com` of the test signers.
pub(crate) fn sign(message: &[u8]) -> String {
    Parts::good().sign(message)
}

fn armour(blob: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in blob.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let index = (bits >> (18 - 6 * at)) & 63;
            text.push(if at <= group.len() { ALPHABET[index as usize].into() } else { '=' });
        }
    }
    let lines: Vec<&str> = text.as_bytes().chunks(70).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"))
}

#[test]
fn the_unspoilt_signature_counts() {
    assert_eq!(Parts::good().result().as_deref(), Ok("seven@example.com"));
    let with_sha256 = Parts { hash: b"sha256".to_vec(), ..Parts::good() };
    assert_eq!(with_sha256.result().as_deref(), Ok("seven@example.com"));
}

#[test]
fn each_field_has_one_form() {
    type Spoil = fn(&mut Parts);
    let spoilt: [(Spoil, SigError); 17] = [
        (|p| p.magic = b"SSHSIH".to_vec(), SigError::Form),
        (|p| p.version = 0, SigError::Form),
        (|p| p.version = 2, SigError::Form),
        (|p| p.key_kind = b"ssh-rsa".to_vec(), SigError::Algorithm),
        (|p| p.key_kind = b"ssh-ed25519\0".to_vec(), SigError::Algorithm),
        (|p| p.key_bytes.push(0), SigError::Key(KeyError::Form)),
        (|p| p.key_bytes.truncate(31), SigError::Key(KeyError::Form)),
        (|p| p.key_rest.push(0), SigError::Key(KeyError::Form)),
        (|p| p.namespace = b"file".to_vec(), SigError::Namespace),
        (|p| p.namespace.push(0), SigError::Namespace),
        (|p| p.reserved.push(0), SigError::Form),
        (|p| p.hash = b"sha1".to_vec(), SigError::Hash),
        (|p| p.hash = b"SHA512".to_vec(), SigError::Hash),
        (|p| p.signature_kind = SK.to_vec(), SigError::Algorithm),
        (|p| p.cut_signature = 1, SigError::Form),
        (|p| p.signature_rest.push(0), SigError::Form),
        (|p| p.rest.push(0), SigError::Form),
    ];
    for (number, (spoil, expected)) in spoilt.into_iter().enumerate() {
        let mut parts = Parts::good();
        spoil(&mut parts);
        assert_eq!(parts.result(), Err(expected), "case {number}");
    }
}

const SK: &[u8] = b"sk-ssh-ed25519@openssh.com";

#[test]
fn a_file_key_is_not_the_security_key_with_the_same_point() {
    let mut application = Vec::new();
    string(&mut application, b"ssh:");
    let parts = Parts { key_kind: SK.to_vec(), key_rest: application.clone(), ..Parts::good() };
    assert_eq!(parts.result(), Err(SigError::Algorithm));
    // The right kind throughout, but signed without flags and counter.
    let parts = Parts { signature_kind: SK.to_vec(), key_kind: SK.to_vec(), key_rest: application, ..parts };
    assert_eq!(parts.result(), Err(SigError::Form));
    let parts = Parts { signature_rest: vec![1, 0, 0, 0, 1], ..parts };
    assert_eq!(parts.result(), Err(SigError::Mismatch));
    let parts = Parts { signature_rest: vec![1, 0, 0, 0, 1, 0], ..parts };
    assert_eq!(parts.result(), Err(SigError::Form));
}

#[test]
fn another_application_is_another_key() {
    let mut application = Vec::new();
    string(&mut application, b"ssh:other");
    let parts = Parts { key_kind: SK.to_vec(), key_rest: application, ..Parts::good() };
    assert_eq!(parts.result(), Err(SigError::Unknown));
}

#[test]
fn a_number_above_the_order_of_the_group_is_another_spelling_and_does_not_count() {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut blob = unarmour(vector!("sha512.sig")).unwrap();
    let s = blob.len() - 32;
    let mut carry = 0;
    for (byte, order) in blob[s..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(verify_vector(armour(&blob).as_bytes()), Err(SigError::Mismatch));
}

#[test]
fn weak_and_impossible_keys_are_none() {
    let identity = [1].into_iter().chain([0; 31]).collect::<Vec<u8>>();
    let order_two = [0xec].into_iter().chain([0xff; 30]).chain([0x7f]).collect::<Vec<u8>>();
    let not_canonical = [0xee].into_iter().chain([0xff; 30]).chain([0x7f]).collect::<Vec<u8>>();
    for key_bytes in [vec![0; 32], identity, order_two, not_canonical, vec![2; 32]] {
        let parts = Parts { key_bytes, ..Parts::good() };
        assert_eq!(parts.result(), Err(SigError::Key(KeyError::Weak)));
    }
}

#[test]
fn the_armour_is_exact() {
    let good = std::str::from_utf8(vector!("sha512.sig")).unwrap();
    assert!(verify_vector(good.trim_end().as_bytes()).is_ok(), "the last newline may be missing");
    let crlf = good.replace('\n', "\r\n");
    for text in [
        "",
        "x",
        &format!("\n{good}"),
        &format!("{good}\n"),
        &format!("{good}{good}"),
        &crlf,
        &good.replacen('\n', "\n\n", 2),
        &good.replace("SIGNATURE", "SIGNATURES"),
        &good.replace("END SSH", "END  SSH"),
        &good.replace('=', ""),
        &good.replacen("U1NI", "U1NI ", 1),
        &format!("{BEGIN}\n{END}\n"),
        &format!("{BEGIN}\n\n{END}\n"),
        &format!("{BEGIN}\n{}\n{END}\n", "AAAA".repeat(20)),
        &armour(&vec![0; LIMIT]),
    ] {
        assert_eq!(verify_vector(text.as_bytes()), Err(SigError::Armour), "{text:?}");
    }
}
