//! What is asked of a peer's certificate in a handshake.

use std::{fmt, sync::Arc};

use bodkin_arrowhead::utc::UtcTime;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};

use super::{PeerCheck, ServerCheck, refusal};

/// Asks of clients what webpki asks, then [`PeerCheck`].
pub(super) struct ClientVerifier {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) check: PeerCheck,
}

/// Asks of servers what webpki asks, but for the host's name where [`ServerCheck`] does without, then [`PeerCheck`].
#[derive(Debug)]
pub(super) struct ServerVerifier {
    pub(super) verifier: Arc<WebPkiServerVerifier>,
    pub(super) server_check: ServerCheck,
    pub(super) check: PeerCheck,
}

impl PeerCheck {
    /// Checks what webpki has verified, and notes whose certificate is refused, by whomever.
    fn check_verified<T>(
        &self,
        certificate: &CertificateDer<'_>,
        verified: Result<T, rustls::Error>,
        now: UnixTime,
    ) -> Result<T, rustls::Error> {
        let checked = verified.and_then(|verified| match self.check(certificate, UtcTime::from_unix_seconds(now.as_secs())) {
            Ok(_) => Ok(verified),
            Err(error) => Err(error.into()),
        });
        checked.inspect_err(|_| refusal::note(certificate))
    }
}

impl fmt::Debug for ClientVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientVerifier")
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check.check_verified(certificate, self.verifier.verify_client_cert(certificate, intermediates, now), now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            match self.verifier.verify_server_cert(certificate, intermediates, server_name, ocsp_response, now) {
                // The name is looked at last, when everything else holds.
                Err(rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )) if self.server_check == ServerCheck::ChainOnly => Ok(ServerCertVerified::assertion()),
                verified => verified,
            };
        self.check.check_verified(certificate, verified, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
