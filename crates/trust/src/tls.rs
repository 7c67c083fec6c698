//! rustls' configurations, and what is asked of a peer's certificate.
//!
//! TLS 1.3 and 1.2 over http/1.1. A server asks for a client's certificate; it must lead to one of the anchors, count now and
//! not be revoked. A resumed session does not show the certificate again: whoever serves it asks [`PeerCheck::check`] once more,
//! because time has passed. [`process`] tells whose certificate was refused.

mod link;
mod refusal;
mod relay;
mod verifier;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bodkin_arrowhead::{pinned::PinnedNames, utc::UtcTime};
use rustls::{
    CipherSuite, ClientConfig, RootCertStore, ServerConfig,
    client::WebPkiServerVerifier,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, UnixTime},
    server::{ServerSessionMemoryCache, WebPkiClientVerifier},
};

use self::verifier::{ClientVerifier, ServerVerifier};
pub use self::{
    link::{LINK_PROTOCOL, LinkTls},
    refusal::{Refusal, process, told_host},
    relay::{AdmittedKeys, RELAY_PROTOCOL, relay_server, towards_relay},
};
use crate::{
    certificate::{Certificate, KeyKind},
    identity::Identity,
    revocation::Revocations,
};

/// The only protocol that is spoken over TLS (RFC 7301).
pub const PROTOCOL: &[u8] = b"http/1.1";
/// Sessions that each port keeps for resumption, each with its client's chain (about 5 KiB); the oldest go first.
pub const SESSIONS_MAX: usize = 1024;
/// Sessions that a client of TLS 1.3 may resume behind one full handshake. Each resumption gives as many new ones.
const TICKETS: usize = 1;
/// Shortest RSA key of a peer.
const RSA_BITS_MIN: usize = crate::authority::RSA_BITS_MIN;

/// Whether a server serves clients without a certificate too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificate {
    /// None is served.
    Required,
    /// They are served, as nobody.
    Optional,
}

/// What a client asks of a server's certificate, besides that it leads to an anchor and counts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCheck {
    /// It is made out for the host that was connected to.
    HostName,
    /// Nothing: Arrowhead's `disable.hostname.verifier`.
    ChainOnly,
}

/// Why no configuration can be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is nothing to trust.
    #[error("there is no authority's certificate to trust")]
    NoAnchor,
    /// The library refuses what was given.
    #[error("TLS cannot be configured: {0}")]
    Library(String),
}

/// Why a peer that leads to an anchor is refused all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// What it has shown is no certificate.
    #[error("the certificate cannot be read: {0}")]
    Malformed(String),
    /// Its time is over, or has not come.
    #[error("the certificate counts from {0} to {1} only")]
    Expired(UtcTime, UtcTime),
    /// It was revoked.
    #[error("the certificate is revoked")]
    Revoked,
    /// It was shown to whoever believed other authorities.
    #[error("an authority that was trusted when the certificate was shown is not any more")]
    Withdrawn,
    /// It is an authority's.
    #[error("the certificate is an authority's, not a system's")]
    Authority,
    /// It is another system's.
    #[error("the certificate is that of another system than those that are expected here")]
    NotPinned,
    /// Its key can be found by others.
    #[error("the certificate's key is too weak: {0}")]
    WeakKey(KeyKind),
}

/// What is asked of a peer's certificate whose chain was verified.
#[derive(Clone, Debug, Default)]
pub struct PeerCheck {
    /// What no longer counts.
    pub revocations: Arc<Revocations>,
    /// The only systems that are expected; `None`: all are.
    pub pinned: Option<PinnedNames>,
}

impl PeerCheck {
    /// Reads a certificate, and refuses one that does not count.
    pub fn check(&self, certificate: &CertificateDer<'_>, now: UtcTime) -> Result<Certificate, PeerError> {
        let certificate = Certificate::from_der(certificate).map_err(|error| PeerError::Malformed(error.to_string()))?;
        self.check_again(&certificate, now)?;
        if certificate.is_authority() {
            return Err(PeerError::Authority);
        }
        let name = certificate.common_name().unwrap_or_default();
        if self.pinned.as_ref().is_some_and(|pinned| !pinned.accept(name)) {
            return Err(PeerError::NotPinned);
        }
        match certificate.key_kind() {
            KeyKind::Rsa(..RSA_BITS_MIN) => Err(PeerError::WeakKey(certificate.key_kind())),
            _ => Ok(certificate),
        }
    }

    /// As [`Self::check`], with a refusal that tells whose certificate it is.
    pub fn admit(&self, certificate: &CertificateDer<'_>, now: UtcTime) -> Result<Certificate, Refusal> {
        self.check(certificate, now).map_err(|error| Refusal::of(certificate, error.into()))
    }

    /// Asks of a certificate that was checked before what may have changed since.
    pub fn check_again(&self, certificate: &Certificate, now: UtcTime) -> Result<(), PeerError> {
        if !certificate.is_valid_at(now) {
            return Err(PeerError::Expired(certificate.not_before(), certificate.not_after()));
        }
        if self.revocations.contains(certificate) { Err(PeerError::Revoked) } else { Ok(()) }
    }
}

/// A server's configuration. `anchors` are the certificates of the authorities whose systems are served: the own cloud's.
pub fn server(
    identity: &Identity,
    anchors: &[Certificate],
    clients: ClientCertificate,
    check: PeerCheck,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = provider();
    let mut verifier = WebPkiClientVerifier::builder_with_provider(roots(anchors)?, provider.clone());
    if clients == ClientCertificate::Optional {
        verifier = verifier.allow_unauthenticated();
    }
    let verifier = verifier.build().map_err(|error| TlsError::Library(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(library)?
        .with_client_cert_verifier(Arc::new(ClientVerifier { verifier, check }))
        .with_single_cert(chain(identity), identity.key().to_rustls())
        .map_err(library)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.ignore_client_order = true;
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
    config.send_tls13_tickets = TICKETS;
    Ok(Arc::new(config))
}

/// Whether a client's chain, its own certificate first, leads to one of these authorities now.
pub fn leads_to(anchors: &[Certificate], chain: &[CertificateDer<'_>], now: UtcTime) -> bool {
    let (Some((own, intermediates)), Ok(roots)) = (chain.split_first(), roots(anchors)) else { return false };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.unix_seconds()));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    verifier.is_ok_and(|verifier| verifier.verify_client_cert(own, intermediates, now).is_ok())
}

/// A client's configuration; without an identity it shows no certificate. No server's certificate is revoked for it.
pub fn client(identity: Option<&Identity>, anchors: &[Certificate], server_check: ServerCheck) -> Result<Arc<ClientConfig>, TlsError> {
    client_with_check(identity, anchors, server_check, PeerCheck::default())
}

/// As [`client`], for which a server's certificate may be revoked.
pub fn client_with_check(
    identity: Option<&Identity>,
    anchors: &[Certificate],
    server_check: ServerCheck,
    check: PeerCheck,
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(anchors)?, provider.clone())
        .build()
        .map_err(|error| TlsError::Library(error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(library)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(ServerVerifier { verifier, server_check, check }));
    let mut config = match identity {
        Some(identity) => builder.with_client_auth_cert(chain(identity), identity.key().to_rustls()).map_err(library)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// The time on this machine's clock, as certificates count it.
pub fn now() -> UtcTime {
    UtcTime::from_system_time(SystemTime::now()).unwrap_or(UtcTime::from_unix_seconds(0))
}

/// The cryptography of both ends. AES-128 with SHA-256 comes first: every implementation has it (RFC 8446, section 9.1), and processors
/// compute SHA-256 themselves, but not the SHA-384 that AES-256 goes with, which is a tenth of a handshake's cost.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| {
        let first = [
            CipherSuite::TLS13_AES_128_GCM_SHA256,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ];
        !first.contains(&suite.suite())
    });
    Arc::new(provider)
}

fn library(error: rustls::Error) -> TlsError {
    TlsError::Library(error.to_string())
}

fn chain(identity: &Identity) -> Vec<CertificateDer<'static>> {
    identity.chain().iter().map(|certificate| certificate.der().clone()).collect()
}

fn roots(anchors: &[Certificate]) -> Result<Arc<RootCertStore>, TlsError> {
    if anchors.is_empty() {
        return Err(TlsError::NoAnchor);
    }
    let mut roots = RootCertStore::empty();
    for anchor in anchors {
        roots.add(anchor.der().clone()).map_err(library)?;
    }
    Ok(Arc::new(roots))
}

#[cfg(test)]
mod tests;
