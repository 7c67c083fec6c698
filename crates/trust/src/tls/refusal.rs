//! Why a handshake has failed, and whose certificate was the reason.

use std::{cell::Cell, error::Error, fmt, mem, sync::Arc};

use rustls::{AlertDescription, CertificateError, Connection, InvalidMessage, IoState, OtherError, pki_types::CertificateDer};

use super::PeerError;
use crate::certificate::Certificate;

thread_local! {
    /// The certificate that a verifier has refused. rustls' error does not say whose it was, and an error of our own would cost the peer
    /// the alert that fits the reason. The verifier runs within [`process`], so that nobody else's certificate is found here.
    static REFUSED: Cell<Option<Box<Certificate>>> = const { Cell::new(None) };
}

/// Why a peer's bytes are not taken.
#[derive(Debug)]
pub struct Refusal {
    /// What the peer has shown, where that was the reason.
    pub certificate: Option<Box<Certificate>>,
    /// The reason.
    pub error: rustls::Error,
}

/// Has a session look at what was read. An alert for the peer may wait to be written behind a refusal.
pub fn process(session: &mut Connection) -> Result<IoState, Refusal> {
    REFUSED.take();
    session.process_new_packets().map_err(|error| Refusal { certificate: REFUSED.take(), error })
}

/// Notes what a verifier refuses.
pub(super) fn note(certificate: &CertificateDer<'_>) {
    REFUSED.set(read(certificate));
}

/// What cannot be read has no name.
fn read(certificate: &CertificateDer<'_>) -> Option<Box<Certificate>> {
    Certificate::from_der(certificate).ok().map(Box::new)
}

impl From<PeerError> for rustls::Error {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Revoked => CertificateError::Revoked.into(),
            other => CertificateError::Other(OtherError(Arc::new(other))).into(),
        }
    }
}

impl Refusal {
    /// A certificate that is refused.
    pub(super) fn of(certificate: &CertificateDer<'_>, error: rustls::Error) -> Self {
        Self { certificate: read(certificate), error }
    }

    /// A refusal for another reason than a certificate.
    pub fn without_certificate(error: rustls::Error) -> Self {
        Self { certificate: None, error }
    }

    /// The name in the certificate that was shown.
    pub fn name(&self) -> Option<&str> {
        self.certificate.as_ref().map(|certificate| certificate.told_name())
    }

    /// Returns true if the peer's certificate is refused here because it is revoked.
    pub fn is_of_revoked_peer(&self) -> bool {
        matches!(self.error, rustls::Error::InvalidCertificate(CertificateError::Revoked))
    }

    /// Returns true if the peer refuses the own certificate because it is revoked.
    pub fn is_of_own_revoked(&self) -> bool {
        matches!(self.error, rustls::Error::AlertReceived(AlertDescription::CertificateRevoked))
    }

    /// Which kind of reason it is, whatever names the peer has put into its certificate: for logs that tell each kind once in a while.
    pub fn kind(&self) -> String {
        let kind = mem::discriminant(&self.error);
        match &self.error {
            rustls::Error::InvalidCertificate(error) => format!("{kind:?} {:?}", mem::discriminant(error)),
            _ => format!("{kind:?}"),
        }
    }

    fn of_certificate(&self, f: &mut fmt::Formatter<'_>, error: &CertificateError) -> fmt::Result {
        let certificate = self.certificate.as_deref();
        let issuer = certificate.and_then(Certificate::issuer).unwrap_or("nobody");
        match (error, certificate) {
            (CertificateError::UnknownIssuer, _) => {
                write!(f, "its certificate leads to no authority that is trusted here: it was issued by {issuer}")
            }
            // Whoever shows a certificate without its key is not noted, and falls through.
            (CertificateError::BadSignature, Some(_)) => {
                write!(f, "its certificate leads to no authority that is trusted here: the signature is not that of {issuer}")
            }
            (CertificateError::Other(_), Some(certificate)) if certificate.is_authority() => fmt::Display::fmt(&PeerError::Authority, f),
            (CertificateError::Other(other), _) => write!(f, "{}", other.0),
            (CertificateError::Revoked, _) => fmt::Display::fmt(&PeerError::Revoked, f),
            (_, Some(certificate)) if is_about_time(error) => {
                fmt::Display::fmt(&PeerError::Expired(certificate.not_before(), certificate.not_after()), f)
            }
            (CertificateError::NotValidForNameContext { expected, presented }, _) => {
                let presented = if presented.is_empty() {
                    "no host".to_owned()
                } else {
                    presented.iter().map(|name| told_host(name)).collect::<Vec<_>>().join(", ")
                };
                write!(
                    f,
                    "its certificate is not made out for {0}, but for {presented}; bodkin cert issue --san {0} makes one that is",
                    expected.to_str()
                )
            }
            (CertificateError::NotValidForName, _) => f.write_str("its certificate is not made out for this host"),
            (other, _) => write!(f, "its certificate is refused: {other}"),
        }
    }
}

/// The name in rustls' and webpki's `DnsName("name")` and `IpAddress(name)`, in which they tell what a certificate is made out for.
pub fn told_host(presented: &str) -> &str {
    let inner = presented.split_once('(').map_or(presented, |(_, inner)| inner.trim_end_matches(')'));
    inner.trim_matches('"')
}

fn is_about_time(error: &CertificateError) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    matches!(error, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use rustls::Error::{AlertReceived, InvalidCertificate, NoCertificatesPresented};
        match &self.error {
            InvalidCertificate(error) => self.of_certificate(f, error),
            NoCertificatesPresented => f.write_str("it has shown no certificate"),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => f.write_str("it does not speak TLS"),
            AlertReceived(AlertDescription::UnknownCA) => f.write_str("it does not trust the authority of our certificate"),
            AlertReceived(AlertDescription::CertificateRevoked) => f.write_str("it refuses our certificate, which is revoked there"),
            AlertReceived(alert) => write!(f, "it has ended the connection by the alert {alert:?}"),
            other => fmt::Display::fmt(other, f),
        }
    }
}

impl Error for Refusal {}
