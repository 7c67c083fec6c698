//! TLS to NATS servers: the CA certificates that verify a server, and the client certificate that this node presents.
//!
//! [`NatsTls`] reads the client certificate and its key again for each connection, so that renewed files count without a
//! restart. A server decides whether it accepts the certificate; with TLS 1.3 its refusal arrives after the handshake.
//! [`Presented::explain`] turns such a refusal into its reason and the remedy.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_nats::client::Fault;
use bodkin_trust::{
    Certificate, Identity,
    file::{FileError, read_certificates, read_key},
    tls::{Refusal, ServerCheck, TlsError, client, now},
};
use rustls::{AlertDescription, ClientConfig};

/// Names of the settings of a client certificate, for error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateSettings {
    /// Names the file of the certificate.
    pub certificate: &'static str,
    /// Names the file of its key.
    pub key: &'static str,
}

/// Files of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate (PEM), followed by those that lead to its CA.
    pub certificate: PathBuf,
    /// The private key (PEM, not encrypted), readable to its owner only.
    pub key: PathBuf,
}

/// Why there is no TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum NatsTlsError {
    /// A file of the client certificate cannot be used.
    #[error("{setting}: {error}{}", remedy(.error))]
    File {
        /// Setting that names the file.
        setting: &'static str,
        /// What is wrong with it.
        error: FileError,
    },
    /// The TLS library refuses the certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Returns the remedy for a file that cannot be used; empty if its error already names one.
fn remedy(error: &FileError) -> &'static str {
    match error {
        FileError::System { .. } => "; put the file there, or correct the setting",
        FileError::TooLarge { .. } | FileError::Content { .. } => "; replace the file",
        FileError::Rights { .. } => "",
    }
}

/// How connections to NATS servers use TLS.
pub struct NatsTls {
    anchors: Vec<Certificate>,
    settings: CertificateSettings,
    files: Option<CertificateFiles>,
    current: Mutex<Current>,
}

/// Configuration of the last connection, and the identity that it presents.
struct Current {
    identity: Option<Identity>,
    config: Arc<ClientConfig>,
}

impl NatsTls {
    /// Verifies servers with the CA certificates `anchors`, and presents the client certificate of `files`, if any.
    ///
    /// # Errors
    /// A file is missing, damaged, or readable to others; the key does not belong to the certificate; or there is no CA
    /// certificate. A certificate that has expired or is not yet valid is no error: the server decides.
    pub fn new(anchors: Vec<Certificate>, files: Option<CertificateFiles>, settings: CertificateSettings) -> Result<Self, NatsTlsError> {
        let identity = files.as_ref().map(|files| files.read(settings)).transpose()?;
        let current = Mutex::new(configure(&anchors, identity)?);
        Ok(Self { anchors, settings, files, current })
    }

    /// Returns the client certificate as it is in its file now, with the file; `None` if none is configured.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn certificate(&self) -> Result<Option<(PathBuf, Certificate)>, NatsTlsError> {
        self.load().map(|(_, presented)| presented.certificate)
    }

    /// Reads the files, and returns the configuration of the next connection with what it presents.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn load(&self) -> Result<(Arc<ClientConfig>, Presented), NatsTlsError> {
        // An assignment leaves the value whole.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files {
            let identity = files.read(self.settings)?;
            // A configuration resumes its sessions; another certificate needs a full handshake.
            if !current.identity.as_ref().is_some_and(|current| is_same(current, &identity)) {
                *current = configure(&self.anchors, Some(identity))?;
            }
        }
        let own = current.identity.as_ref().map(|identity| identity.certificate().clone());
        let certificate = self.files.as_ref().zip(own).map(|(files, own)| (files.certificate.clone(), own));
        Ok((current.config.clone(), Presented { settings: self.settings, certificate }))
    }
}

impl fmt::Debug for NatsTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsTls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl CertificateFiles {
    fn read(&self, settings: CertificateSettings) -> Result<Identity, NatsTlsError> {
        let certificate = |error| NatsTlsError::File { setting: settings.certificate, error };
        let key = |error| NatsTlsError::File { setting: settings.key, error };
        let chain = read_certificates(&self.certificate).map_err(certificate)?;
        let private = read_key(&self.key, None).map_err(key)?;
        Identity::new(chain, private).map_err(|error| key(FileError::content(&self.key, error)))
    }
}

fn is_same(one: &Identity, other: &Identity) -> bool {
    one.chain() == other.chain() && one.key().pkcs8() == other.key().pkcs8()
}

fn configure(anchors: &[Certificate], identity: Option<Identity>) -> Result<Current, NatsTlsError> {
    let config = client(identity.as_ref(), anchors, ServerCheck::HostName)?;
    Ok(Current { identity, config })
}

/// Client certificate that a connection presents to its server.
#[derive(Clone, Debug)]
pub(crate) struct Presented {
    settings: CertificateSettings,
    /// The client certificate and its file, if one is configured.
    certificate: Option<(PathBuf, Certificate)>,
}

impl Presented {
    /// Returns the error of a connection with its reason and the remedy, if the client certificate is the reason.
    pub fn explain(&self, error: io::Error) -> io::Error {
        match self.reason(&error, now()) {
            Some(reason) => io::Error::new(error.kind(), reason),
            None => error,
        }
    }

    fn reason(&self, error: &io::Error, now: UtcTime) -> Option<String> {
        let inner = error.get_ref();
        let alert = inner.and_then(|inner| inner.downcast_ref::<Refusal>()).and_then(|refusal| match refusal.error {
            rustls::Error::AlertReceived(alert) => Some(alert),
            _ => None,
        });
        let denied = inner.and_then(|inner| inner.downcast_ref::<Fault>()).filter(|fault| matches!(fault, Fault::Denied(_)));
        let Some((file, certificate)) = &self.certificate else {
            let CertificateSettings { certificate, key } = self.settings;
            return alert
                .filter(|alert| may_miss_certificate(*alert))
                .map(|alert| format!("the server requires a client certificate (TLS alert {alert:?}): set {certificate} and {key}"));
        };
        let named = format!("client certificate {} of {}", file.display(), certificate.told_name());
        if let Some(fault) = denied {
            return Some(format!(
                "{fault}; the TLS handshake accepted {named}: with verify_and_map the server needs a user with its subject or an alternative name, such as user: \"CN={}\"",
                certificate.told_name()
            ));
        }
        if let Some(alert) = alert.filter(|alert| is_about_certificate(*alert)) {
            let reason = out_of_date(certificate, now).unwrap_or_else(|| refusal(alert, certificate));
            return Some(format!("the server refuses {named} (TLS alert {alert:?}): {reason}"));
        }
        // A server may close without an alert, or the alert is lost with the connection.
        let is_closed = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe
        );
        out_of_date(certificate, now).filter(|_| is_closed).map(|reason| format!("{error}; {named}: {reason}"))
    }
}

/// Says that a certificate is not valid now, and what to do; `None` if it is valid.
fn out_of_date(certificate: &Certificate, now: UtcTime) -> Option<String> {
    if now < certificate.not_before() {
        return Some(format!("it is not valid before {}; correct this machine's clock, or replace the file", certificate.not_before()));
    }
    (now > certificate.not_after())
        .then(|| format!("it has expired at {}; put a renewed certificate and its key in the files", certificate.not_after()))
}

fn refusal(alert: AlertDescription, certificate: &Certificate) -> String {
    match alert {
        AlertDescription::CertificateRevoked => "it is revoked; put another certificate and its key in the files".to_owned(),
        AlertDescription::CertificateExpired => {
            "it is valid by this machine's clock, and not by the server's; correct the clocks, or renew the certificate".to_owned()
        }
        // DecryptError: the server has a CA certificate of the same name with another key.
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError => format!(
            "its issuer {} is not in the server's ca_file, or it is not made out for clients; use a certificate that the server's CA has issued, or add the issuer to ca_file",
            certificate.issuer().unwrap_or("without a name")
        ),
        _ => "the server's log says why".to_owned(),
    }
}

/// Returns true for alerts that a server sends because of the client's certificate.
fn is_about_certificate(alert: AlertDescription) -> bool {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked, CertificateUnknown, DecryptError,
        UnknownCA, UnsupportedCertificate,
    };
    matches!(
        alert,
        AccessDenied
            | BadCertificate
            | CertificateExpired
            | CertificateRequired
            | CertificateRevoked
            | CertificateUnknown
            | DecryptError
            | UnknownCA
            | UnsupportedCertificate
    )
}

/// Returns true for alerts of servers that require a client certificate: of TLS 1.3, and of TLS 1.2.
fn may_miss_certificate(alert: AlertDescription) -> bool {
    matches!(alert, AlertDescription::CertificateRequired | AlertDescription::BadCertificate)
}

#[cfg(test)]
mod tests;
