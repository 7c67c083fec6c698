//! TLS of a system that has no certificate yet: it believes the one authority whose fingerprint it was given.
//!
//! A server shows its chain up to the cloud's authority. If that certificate is among those shown, it becomes the anchor of the same
//! handshake, and everything is verified as ever: signatures, times, the host's name.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use crate::{
    certificate::{Certificate, Fingerprint},
    tls::{PROTOCOL, TlsError},
};

/// A client's configuration that believes the authority of this fingerprint, and shows no certificate.
pub fn client(anchor: Fingerprint) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = PinnedVerifier { anchor, algorithms: provider.signature_verification_algorithms, provider: provider.clone() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Library(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// The certificate of this fingerprint among those that were shown.
pub fn find(anchor: Fingerprint, shown: &[CertificateDer<'_>]) -> Option<Certificate> {
    shown.iter().filter_map(|der| Certificate::from_der(der).ok()).find(|certificate| certificate.fingerprint() == anchor)
}

#[derive(Debug)]
struct PinnedVerifier {
    anchor: Fingerprint,
    algorithms: WebPkiSupportedAlgorithms,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // A leaf is no authority, whatever its fingerprint.
        let anchor = find(self.anchor, intermediates).filter(Certificate::is_authority);
        let anchor = anchor.ok_or(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(anchor.der().clone())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone()).build();
        let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
        verifier.verify_server_cert(certificate, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

    use super::*;
    use crate::example::{cloud, now, root, sensor};

    fn verify(anchor: Fingerprint, shown: &[&Certificate], name: &str) -> Result<(), rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = PinnedVerifier { anchor, algorithms: provider.signature_verification_algorithms, provider };
        let shown: Vec<CertificateDer<'_>> = shown.iter().map(|certificate| certificate.der().clone()).collect();
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now().unix_seconds()));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(&shown[0], &shown[1..], &name, &[], time).map(|_| ())
    }

    #[test]
    fn a_chain_to_the_named_authority_is_believed_and_no_other() {
        let sensor = sensor();
        let (own, cloud, root) = (sensor.certificate(), cloud().certificate(), root().certificate());
        let name = own.common_name().unwrap();
        let refused = |result: Result<(), rustls::Error>| matches!(result, Err(rustls::Error::InvalidCertificate(_)));
        assert_eq!(verify(cloud.fingerprint(), &[own, cloud, root], name), Ok(()));
        assert!(refused(verify(cloud.fingerprint(), &[own], name)), "the authority is not shown");
        assert!(refused(verify(own.fingerprint(), &[own, own], name)), "a system is no authority");
        assert!(refused(verify(Fingerprint([7; 32]), &[own, cloud, root], name)));
        let elsewhere = verify(cloud.fingerprint(), &[own, cloud, root], "elsewhere.example");
        let wrong_name =
            |error: &CertificateError| matches!(error, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. });
        assert!(matches!(&elsewhere, Err(rustls::Error::InvalidCertificate(error)) if wrong_name(error)), "{elsewhere:?}");
    }
}
