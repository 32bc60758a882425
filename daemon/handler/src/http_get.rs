#![forbid(unsafe_code)]
//! `http_get`: one GET below a signed prefix. The name is resolved once, each address is checked, and the
//! connection goes to one that passed; a redirect is an answer like any other.

use crate::answer::{Answer, fit, json_length};
use crate::call::Call;
use crate::failure::{Failure, refuse};
use crate::net::tls;
use flate2::read::MultiGzDecoder;
use gloveport_contract::address::AddressClass;
use gloveport_contract::catalog::BuiltinConfig;
use gloveport_contract::url::Url;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

/// How long the whole exchange may take, within the action's own timeout.
const PATIENCE: Duration = Duration::from_secs(60);
/// Response headers that are told beside the declared ones.
const TOLD: [&str; 8] = [
    "content-type",
    "content-length",
    "content-encoding",
    "date",
    "etag",
    "last-modified",
    "location",
    "retry-after",
];
/// Longest value of a header that is told or sent, bytes.
const HEADER: usize = 4096;
/// Addresses that a connection is tried to.
const ADDRESSES: usize = 16;

/// Answers one call.
pub fn run(call: &Call) -> Result<Answer, Failure> {
    let text = call.required("url")?;
    let url = Url::parse(text).map_err(|reason| Failure::refused(format!("url: {reason}")))?;
    check_prefix(&url, &call.config)?;
    let headers = request_headers(call)?;
    let (agent, resolved) = agent(&url, &call.config)?;

    let mut request = agent.get(text);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut response = request.call().map_err(|error| {
        let refused = resolved.lock().ok().and_then(|mut found| found.refused.take());
        Failure::refused(refused.unwrap_or_else(|| format!("{text}: {error}")))
    })?;
    let addresses: Vec<String> = resolved
        .lock()
        .map(|found| found.addresses.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    let mut answer = json!({
        "url": text, "status": response.status().as_u16(), "addresses": addresses,
        "headers": told_headers(&response, &call.config),
    });
    let room = call.budget().saturating_sub(json_length(&answer) + 200);
    let body = body(&mut response, room)?;
    let fitted = fit(&body.bytes, room, body.whole);
    if let Some(object) = answer.as_object_mut() {
        let whole = body.whole && fitted.length == body.bytes.len();
        object.insert("encoding".into(), fitted.encoding.into());
        object.insert("bytes".into(), fitted.length.into());
        object.insert("truncated".into(), (!whole).into());
        object.insert("body".into(), fitted.text.into());
    }
    Ok(Answer::new(answer))
}

fn check_prefix(url: &Url<'_>, config: &BuiltinConfig) -> Result<(), Failure> {
    let under = |prefix: &String| Url::parse(prefix).is_ok_and(|prefix| url.is_within(&prefix));
    if config.url_prefixes.iter().any(under) {
        Ok(())
    } else {
        refuse(format!("url: under none of the prefixes of this action: {}", config.url_prefixes.join(", ")))
    }
}

/// The caller's headers, as `Name: value`: declared names only.
fn request_headers(call: &Call) -> Result<Vec<(&str, &str)>, Failure> {
    let mut headers = Vec::new();
    for line in call.texts("headers")? {
        let (name, value) =
            line.split_once(':').map(|(name, value)| (name, value.trim())).unwrap_or((line, ""));
        if !call.config.headers.iter().any(|declared| declared.eq_ignore_ascii_case(name)) {
            let shown = crate::answer::prefix_of(name, 64);
            return refuse(format!(
                "headers: `{shown}` is not declared by this action; it has: {}",
                if call.config.headers.is_empty() {
                    "none".to_owned()
                } else {
                    call.config.headers.join(", ")
                }
            ));
        }
        if value.len() > HEADER || value.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return refuse(format!(
                "headers: the value of {name} is not plain ASCII of at most {HEADER} bytes"
            ));
        }
        headers.push((name, value));
    }
    Ok(headers)
}

/// An agent that does one request and nothing on its own account: no redirect, no proxy, no cookie.
fn agent(url: &Url<'_>, config: &BuiltinConfig) -> Result<(Agent, Arc<Mutex<Found>>), Failure> {
    let mut tls = TlsConfig::builder().unversioned_rustls_crypto_provider(tls::provider());
    if url.https {
        let roots = tls::system_authorities()?;
        let roots = roots.iter().map(|der| Certificate::from_der(der).to_owned());
        tls = tls.root_certs(RootCerts::new_with_certs(&roots.collect::<Vec<_>>()));
    }
    let agent = Agent::config_builder()
        .tls_config(tls.build())
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("gloveport/", env!("CARGO_PKG_VERSION")))
        // One encoding that is undone here, within the limit on the size.
        .accept_encoding("gzip")
        .timeout_global(Some(PATIENCE))
        .build();
    let found = Arc::new(Mutex::new(Found::default()));
    let resolver = Checked {
        host: url.host.to_owned(),
        port: url.port,
        rules: config.addresses.iter().filter_map(|rule| AddressClass::parse(&rule.0)).collect(),
        found: Arc::clone(&found),
    };
    Ok((Agent::with_parts(agent, DefaultConnector::default(), resolver), found))
}

/// What resolving the name gave.
#[derive(Debug, Default)]
struct Found {
    /// Those that the rules hold for; the connection goes to the first of them that answers.
    addresses: Vec<SocketAddr>,
    /// Why there is none.
    refused: Option<String>,
}

/// The resolver of one request: the host that was checked, and the addresses that the action's rules hold for.
#[derive(Debug)]
struct Checked {
    host: String,
    port: u16,
    rules: Vec<AddressClass>,
    found: Arc<Mutex<Found>>,
}

impl Checked {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let all: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| format!("url: {} cannot be resolved: {error}", self.host))?
            .collect();
        let rules: &[AddressClass] =
            if self.rules.is_empty() { &[AddressClass::Public] } else { &self.rules };
        let held = |address: &SocketAddr| rules.iter().any(|rule| rule.holds(address.ip()));
        let allowed: Vec<SocketAddr> = all.iter().copied().filter(held).take(ADDRESSES).collect();
        if allowed.is_empty() {
            let shown: Vec<String> = all.iter().take(4).map(|address| address.ip().to_string()).collect();
            return Err(format!(
                "url: {} is at {}, and the action's `addresses` do not allow that",
                self.host,
                shown.join(", ")
            ));
        }
        Ok(allowed)
    }
}

impl Resolver for Checked {
    fn resolve(
        &self,
        _: &ureq::http::Uri,
        _: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut resolved = self.empty();
        let addresses = self.addresses();
        if let Ok(mut found) = self.found.lock() {
            match addresses {
                Ok(addresses) => {
                    addresses.iter().for_each(|address| resolved.push(*address));
                    found.addresses = addresses;
                }
                Err(reason) => found.refused = Some(reason),
            }
        }
        if resolved.is_empty() { Err(ureq::Error::HostNotFound) } else { Ok(resolved) }
    }
}

fn told_headers(response: &Response<Body>, config: &BuiltinConfig) -> Map<String, Value> {
    let declared = config.headers.iter().map(String::as_str);
    let names = TOLD.into_iter().chain(declared).map(str::to_ascii_lowercase);
    let mut told = Map::new();
    for name in names {
        if let Some(value) = response.headers().get(&name) {
            let value = String::from_utf8_lossy(value.as_bytes());
            told.insert(name, crate::answer::prefix_of(&value, HEADER).into());
        }
    }
    told
}

/// A body, as far as it was read.
struct Content {
    bytes: Vec<u8>,
    /// Nothing of it was left out.
    whole: bool,
}

/// Reads at most `most` bytes, counted after decompression.
fn body(response: &mut Response<Body>, most: usize) -> Result<Content, Failure> {
    let encoding =
        response.headers().get("content-encoding").map(|value| value.as_bytes().to_ascii_lowercase());
    let raw = response.body_mut().with_config().limit(u64::MAX).reader();
    let mut reader: Box<dyn Read + '_> = match encoding.as_deref() {
        Some(b"gzip" | b"x-gzip") => Box::new(MultiGzDecoder::new(raw)),
        None | Some(b"identity") => Box::new(raw),
        Some(other) => {
            return refuse(format!(
                "the server sent the encoding {}, which is not read",
                String::from_utf8_lossy(other)
            ));
        }
    };
    let mut bytes = Vec::new();
    reader
        .by_ref()
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::system("reading the body", error))?;
    let whole = bytes.len() <= most;
    bytes.truncate(most);
    Ok(Content { bytes, whole })
}
