#![forbid(unsafe_code)]
//! Greeting, TLS and login. Known are the plugins `mysql_native_password`, `unix_socket` (`auth_socket`)
//! and `caching_sha2_password`; a password goes out in the clear only inside TLS or a Unix socket.

use super::wire::{Broken, Connection, Fields, put_string};
use crate::credential::Credential;
use crate::failure::Failure;
use crate::net;
use hmac_sha256::Hash;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::time::Duration;

// What the client can do, by the protocol's bits. Not among them, so that no server can ask for it: LOCAL
// INFILE (0x80), several statements in one (0x1_0000), compression (0x20).
const LONG_PASSWORD: u32 = 0x1;
const LONG_FLAG: u32 = 0x4;
const WITH_DATABASE: u32 = 0x8;
const PROTOCOL_41: u32 = 0x200;
const TLS: u32 = 0x800;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x8_0000;
const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;

/// utf8mb4_general_ci: literals are UTF-8 for the server, as they are for the classifier.
const CHARSET: u8 = 45;
/// Exchanges after which a login that does not end is given up.
const ROUNDS: usize = 8;

/// All that is needed to log in, and to log in again for a `KILL`.
pub struct Login {
    /// `host:port`, or the path of a socket.
    pub server: String,
    /// The database to begin in.
    pub database: Option<String>,
    /// The account.
    pub credential: Credential,
    /// How long the server may be silent.
    pub patience: Duration,
}

struct Greeting {
    thread: u32,
    scramble: Vec<u8>,
    plugin: Vec<u8>,
    capabilities: u32,
}

impl Login {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached, has no TLS where it is asked for, or refuses the account.
    pub fn connect(&self) -> Result<Connection, Failure> {
        let failed = |error: Broken| error.of(&format!("the login at {}", self.server));
        let mut connection = Connection::new(net::connect(&self.server, self.patience)?);
        let packet = connection.receive().map_err(failed)?;
        let greeting = greeting(&packet).ok_or(Broken::PROTOCOL).map_err(failed)?;
        if greeting.capabilities & NEEDED != NEEDED {
            return Err(Failure::refused(format!("{} is too old a server", self.server)));
        }
        let mut flags = NEEDED | LONG_PASSWORD | LONG_FLAG | TRANSACTIONS;
        if self.database.is_some() {
            flags |= WITH_DATABASE;
        }
        let secure = self.credential.ca.is_some();
        if secure {
            if greeting.capabilities & TLS == 0 {
                return Err(Failure::refused(format!(
                    "{} offers no TLS, and the credential asks for it by `ca`",
                    self.server
                )));
            }
            flags |= TLS;
            connection.send(&preamble(flags)).map_err(failed)?;
            let host = net::host_of(&self.server);
            connection = connection.over(|plain| net::tls::upgrade(plain, host, &self.credential))?;
        }
        let private = secure || self.server.starts_with('/');
        connection.thread = greeting.thread;
        connection.send(&self.response(flags, &greeting)).map_err(failed)?;
        self.exchange(&mut connection, greeting, private)?;
        Ok(connection)
    }

    fn response(&self, flags: u32, greeting: &Greeting) -> Vec<u8> {
        let user = self.credential.user.as_deref().unwrap_or_default();
        let answer = self.answer(&greeting.plugin, &greeting.scramble).unwrap_or_default();
        let mut packet = preamble(flags);
        packet.extend_from_slice(user.as_bytes());
        packet.push(0);
        // One byte of length: an answer is 0, 20 or 32 bytes long, and this is the variable form too.
        put_string(&mut packet, &answer);
        if let Some(database) = &self.database {
            packet.extend_from_slice(database.as_bytes());
            packet.push(0);
        }
        packet.extend_from_slice(&greeting.plugin);
        packet.push(0);
        packet
    }

    /// Follows the server until it says yes or no.
    fn exchange(
        &self,
        connection: &mut Connection,
        greeting: Greeting,
        private: bool,
    ) -> Result<(), Failure> {
        let failed = |error: Broken| error.of(&format!("the login at {}", self.server));
        let mut plugin = greeting.plugin;
        for _ in 0..ROUNDS {
            let packet = connection.receive().map_err(failed)?;
            match packet.split_first() {
                Some((0x00, _)) => return Ok(()),
                Some((0xfe, rest)) => {
                    let mut fields = Fields(rest);
                    plugin = fields.until_nul().ok_or(Broken::PROTOCOL).map_err(failed)?.to_vec();
                    let scramble = fields.0.strip_suffix(&[0]).unwrap_or(fields.0);
                    let answer = self.answer(&plugin, scramble).ok_or_else(|| self.unknown(&plugin))?;
                    connection.send(&answer).map_err(failed)?;
                }
                // Of caching_sha2_password: 3 means that the answer was right, 4 asks for the password.
                Some((0x01, [3])) if plugin == b"caching_sha2_password" => {}
                Some((0x01, [4])) if plugin == b"caching_sha2_password" && private => {
                    let mut password = self.password().to_vec();
                    password.push(0);
                    connection.send(&password).map_err(failed)?;
                }
                Some((0x01, [4])) if plugin == b"caching_sha2_password" => {
                    return Err(Failure::refused(format!(
                        "{} asks for the password itself: that takes TLS (`ca` in the credential) or a Unix socket",
                        self.server
                    )));
                }
                _ => return Err(failed(Broken::PROTOCOL)),
            }
        }
        Err(failed(Broken::PROTOCOL))
    }

    fn unknown(&self, plugin: &[u8]) -> Failure {
        Failure::refused(format!(
            "{} wants the login plugin `{}`, which is not known here; give the account mysql_native_password or unix_socket",
            self.server,
            String::from_utf8_lossy(plugin)
        ))
    }

    fn password(&self) -> &[u8] {
        self.credential.password.as_deref().unwrap_or_default().as_bytes()
    }

    /// What a plugin wants to see first; nothing where it is not known.
    fn answer(&self, plugin: &[u8], scramble: &[u8]) -> Option<Vec<u8>> {
        let password = self.password();
        match plugin {
            b"mysql_native_password" if password.is_empty() => Some(Vec::new()),
            b"mysql_native_password" => Some(native(password, scramble)),
            b"caching_sha2_password" if password.is_empty() => Some(Vec::new()),
            b"caching_sha2_password" => Some(caching_sha2(password, scramble)),
            // The server asks the kernel who stands at the other end of the socket.
            b"unix_socket" | b"auth_socket" => Some(Vec::new()),
            _ => None,
        }
    }
}

fn greeting(packet: &[u8]) -> Option<Greeting> {
    let mut fields = Fields(packet.strip_prefix(&[10])?);
    fields.until_nul()?;
    let thread = fields.u32()?;
    let mut scramble = fields.bytes(8)?.to_vec();
    fields.bytes(1)?;
    let low = fields.u16()?;
    fields.bytes(3)?;
    let high = fields.u16()?;
    let length = usize::from(fields.u8()?);
    fields.bytes(10)?;
    let rest = fields.bytes(length.saturating_sub(8).max(13))?;
    scramble.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
    let plugin = fields.until_nul().unwrap_or(fields.0).to_vec();
    Some(Greeting { thread, scramble, plugin, capabilities: u32::from(low) | u32::from(high) << 16 })
}

/// What a request for TLS and a response have in common.
fn preamble(flags: u32) -> Vec<u8> {
    let mut packet = flags.to_le_bytes().to_vec();
    packet.extend_from_slice(&0xff_ffff_u32.to_le_bytes());
    packet.push(CHARSET);
    packet.extend_from_slice(&[0; 23]);
    packet
}

/// SHA1(password) xor SHA1(scramble, SHA1(SHA1(password))).
fn native(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let once = sha1(password);
    let mask = sha1(&[scramble, sha1(once.as_ref()).as_ref()].concat());
    xor(once.as_ref(), mask.as_ref())
}

/// SHA256(password) xor SHA256(SHA256(SHA256(password)), scramble).
fn caching_sha2(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    let once = Hash::hash(password);
    let mask = Hash::hash(&[&Hash::hash(&once), scramble].concat());
    xor(&once, &mask)
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}
