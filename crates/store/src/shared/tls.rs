//! TLS to the database, by the names that every client of PostgreSQL knows: `sslmode`, `sslrootcert`, `sslcert`, `sslkey` in its URL.
//!
//! The files are read for each connection, so that new ones count without a restart. Nothing is negotiated away: a server that speaks no TLS is refused.

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

/// Largest file of certificates or of a key.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How a database is spoken to over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseTls {
    /// Whose certificates are believed, for the host that was connected to; `None`: whoever answers, for nobody is asked who he is.
    pub authorities: Option<PathBuf>,
    /// What this node shows: its chain and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFault {
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{} is larger than {FILE_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{} holds no {what} in PEM", .path.display())]
    NoPem { path: PathBuf, what: &'static str },
    #[error("others may read the key {} (its rights are {mode:o}): chmod 600 it", .path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{0}")]
    Library(#[from] rustls::Error),
}

impl DatabaseTls {
    /// Reads the files.
    pub fn connector(&self) -> Result<Connector, TlsFault> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let builder = match &self.authorities {
            Some(path) => builder.with_root_certificates(roots(path)?),
            None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))),
        };
        let config = match &self.identity {
            Some((certificate, key)) => builder.with_client_auth_cert(chain(certificate)?, private_key(key)?)?,
            None => builder.with_no_client_auth(),
        };
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let none = || TlsFault::NoPem { path: path.to_owned(), what: "certificate" };
    let certificates = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>().map_err(|_| none())?;
    if certificates.is_empty() { Err(none()) } else { Ok(certificates) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    let metadata = fs::metadata(path).map_err(|error| TlsFault::File { path: path.to_owned(), error })?;
    let mode = metadata.mode() & 0o777;
    // As libpq does: a key of root's may be read by a group.
    let allowed = if metadata.uid() == 0 { 0o640 } else { 0o600 };
    if mode & !allowed != 0 {
        return Err(TlsFault::Open { path: path.to_owned(), mode });
    }
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| TlsFault::NoPem { path: path.to_owned(), what: "key that is not encrypted" })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFault> {
    let file = |error| TlsFault::File { path: path.to_owned(), error };
    if fs::metadata(path).map_err(file)?.len() > FILE_BYTES_MAX {
        return Err(TlsFault::TooLarge(path.to_owned()));
    }
    fs::read(path).map_err(file)
}

/// Makes the handshake of each connection.
#[derive(Clone)]
pub(crate) struct Connector(TlsConnector);

/// A handshake with one host.
pub(crate) struct Handshake {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Secured;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let host = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake { connector: self.0.clone(), host })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Secured;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secured>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Secured(self.connector.connect(self.host, socket).await?)) })
    }
}

/// A connection in TLS.
pub(crate) struct Secured(client::TlsStream<Socket>);

impl TlsStream for Secured {
    /// A password is not bound to the channel: `verify-full` says who reads it.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Whoever has the key of the certificate that is shown.
struct Anybody(Arc<CryptoProvider>);

impl fmt::Debug for Anybody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anybody")
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
