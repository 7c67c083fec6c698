//! TLS between clouds and the relay that they meet at: each cloud has authorities of its own, so that who is who is known by keys too.

use std::{collections::BTreeSet, fmt, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        NoServerSessionStorage, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::{PeerCheck, ServerCheck, TlsError, chain, client_with_check, library, provider, refusal, roots, verifier};
use crate::{certificate::Certificate, identity::Identity};

/// What Bodkin's own relay is spoken to in (RFC 7301). A server that does not choose it is a broker, and is spoken to by STOMP.
pub const RELAY_PROTOCOL: &[u8] = b"bodkin-relay/1";

/// Keys that count whatever their certificates lead to.
pub trait AdmittedKeys: fmt::Debug + Send + Sync {
    /// Whether this is one; `key` is the public key as it is in certificates (SubjectPublicKeyInfo, DER).
    fn admits(&self, key: &[u8]) -> bool;
}

/// A client's configuration towards a relay. With a `key` (SubjectPublicKeyInfo, DER) the relay is who has it, and nothing else is asked of its certificate;
/// without, the certificate has to lead to one of the anchors, and is asked what any server's is.
///
/// # Errors
/// There is neither a key nor an anchor, or the library refuses what was given.
pub fn towards_relay(
    identity: &Identity,
    anchors: &[Certificate],
    key: Option<Vec<u8>>,
    server_check: ServerCheck,
    check: PeerCheck,
) -> Result<Arc<ClientConfig>, TlsError> {
    let mut config = match key {
        None => Arc::unwrap_or_clone(client_with_check(Some(identity), anchors, server_check, check)?),
        Some(key) => {
            let provider = provider();
            let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(library)?;
            let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(KeyVerifier { key, provider }));
            builder.with_client_auth_cert(chain(identity), identity.key().to_rustls()).map_err(library)?
        }
    };
    config.alpn_protocols = vec![RELAY_PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// A relay's configuration: its clients have a key that is admitted, or a certificate that leads to one of the anchors, of which there may be none. Both ends show a certificate in every
/// handshake, for no session is resumed.
///
/// # Errors
/// The library refuses what was given.
pub fn relay_server(
    identity: &Identity,
    anchors: &[Certificate],
    admitted: Arc<dyn AdmittedKeys>,
    check: PeerCheck,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = provider();
    let anchored = match anchors {
        [] => None,
        anchors => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(anchors)?, provider.clone()).build();
            let verifier = verifier.map_err(|error| TlsError::Library(error.to_string()))?;
            Some(verifier::ClientVerifier { verifier, check })
        }
    };
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(library)?
        .with_client_cert_verifier(Arc::new(RelayClients { anchored, admitted, provider }))
        .with_single_cert(chain(identity), identity.key().to_rustls())
        .map_err(library)?;
    config.alpn_protocols = vec![RELAY_PROTOCOL.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// A list of keys.
impl AdmittedKeys for BTreeSet<Vec<u8>> {
    fn admits(&self, key: &[u8]) -> bool {
        self.contains(key)
    }
}

fn key_of(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, Error> {
    let read = Certificate::from_der(certificate).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    Ok(read.public_key_info().to_vec())
}

/// Asks of a relay that it has the key of its record.
#[derive(Debug)]
struct KeyVerifier {
    key: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if key_of(certificate)? == self.key {
            return Ok(ServerCertVerified::assertion());
        }
        refusal::note(certificate);
        Err(super::PeerError::NotPinned.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Lets in whose key is admitted, and whom the authorities know.
struct RelayClients {
    anchored: Option<verifier::ClientVerifier>,
    admitted: Arc<dyn AdmittedKeys>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for RelayClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayClients")
    }
}

impl ClientCertVerifier for RelayClients {
    /// None are named: whom a client may show is not ours to choose for it.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.admitted.admits(&key_of(certificate)?) {
            return Ok(ClientCertVerified::assertion());
        }
        match &self.anchored {
            Some(anchored) => anchored.verify_client_cert(certificate, intermediates, now),
            None => {
                refusal::note(certificate);
                Err(super::PeerError::NotPinned.into())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
