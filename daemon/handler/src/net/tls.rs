#![forbid(unsafe_code)]
//! TLS with declared or the system's authorities. One cryptographic provider, ring, for all handlers.

use super::Stream;
use crate::credential::Credential;
use crate::failure::Failure;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::sync::Arc;

/// Where distributions keep their bundle of authorities.
const BUNDLES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// The provider of every connection.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The system's authorities, or those of the file that the action's `SSL_CERT_FILE` names.
///
/// # Errors
/// There is no such file, or it holds no certificate.
pub fn system_authorities() -> Result<Vec<CertificateDer<'static>>, Failure> {
    if let Ok(file) = std::env::var("SSL_CERT_FILE") {
        return certificates(&file, "SSL_CERT_FILE");
    }
    match BUNDLES.iter().find(|path| std::path::Path::new(path).exists()) {
        Some(path) => certificates(path, "the system's authorities"),
        None => Err(Failure::refused(format!(
            "the system has no certificate authorities in {}: install ca-certificates",
            BUNDLES.join(", ")
        ))),
    }
}

/// Goes on with TLS. `host` is the name or the address that the server's certificate must be for.
///
/// # Errors
/// A certificate cannot be read, or the host cannot stand in one.
pub fn upgrade(
    plain: Box<dyn Stream>,
    host: &str,
    credential: &Credential,
) -> Result<Box<dyn Stream>, Failure> {
    let config = client_config(credential)?;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Failure::configuration(format!("`{host}` cannot be the name in a certificate")))?;
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| Failure::refused(format!("TLS with {host}: {error}")))?;
    Ok(Box::new(StreamOwned::new(connection, plain)))
}

fn client_config(credential: &Credential) -> Result<ClientConfig, Failure> {
    let failed = |error: rustls::Error| Failure::configuration(format!("TLS: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in certificates(credential.ca.as_deref().unwrap_or_default(), "ca")? {
        roots.add(certificate).map_err(failed)?;
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots);
    match (&credential.cert, &credential.key) {
        (Some(cert), Some(key)) => {
            let pem = pem(key, "key")?;
            let key = PrivateKeyDer::from_pem_slice(&pem)
                .map_err(|_| Failure::configuration("key: holds no private key in PEM form"))?;
            builder.with_client_auth_cert(certificates(cert, "cert")?, key).map_err(failed)
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(source: &str, what: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let pem = pem(source, what)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Failure::configuration(format!("{what}: holds no certificate in PEM form"))),
    }
}

/// PEM text as it stands, or the file that a path names.
fn pem(source: &str, what: &str) -> Result<Vec<u8>, Failure> {
    if source.trim_start().starts_with("-----BEGIN") {
        return Ok(source.as_bytes().to_vec());
    }
    std::fs::read(source).map_err(|error| {
        Failure::configuration(format!(
            "{what}: {source}: {error}; a handler reads /etc/ssl/certs, /etc/pki and /etc/gloveport/tls, \
             or give the PEM text itself"
        ))
    })
}
