//! How a new system comes to its certificate: one call, with the secret that the cloud's operator has given it.

use bodkin_trust::{Certificate, first_contact, onboarding::OnboardingSecret};
use http::Method;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use crate::{
    CallError, Limits, Monitor, Security,
    answer::Onboarded,
    request::OnboardingRequest,
    security::{SecurityError, server_name},
};

/// Asks the cloud at `address` (`host:port` of Bodkin's own port, 8440) for a certificate for the key of a signing request in PEM. Only
/// the cloud that the secret names is believed, and only it is told the secret.
///
/// # Errors
/// The server is another, or refuses; [`CallError`] says why.
pub async fn onboard(
    address: &str,
    limits: Limits,
    secret: &OnboardingSecret,
    system_name: Option<&str>,
    csr: &str,
) -> Result<Onboarded, CallError> {
    let anchor = anchor(address, limits, secret).await?;
    let security = Security::new(None, &[anchor]).map_err(|error: SecurityError| not_agreed(address, error))?;
    let request =
        OnboardingRequest { secret: secret.reveal().to_string(), system_name: system_name.map(str::to_owned), csr: csr.to_owned() };
    Monitor::secure(address, limits, &security).onboard(&request).await
}

/// The certificate of the authority that the secret names, as the server shows it.
async fn anchor(address: &str, limits: Limits, secret: &OnboardingSecret) -> Result<Certificate, CallError> {
    let unreachable = |why: String| CallError::Unreachable { address: address.to_owned(), why };
    let name = server_name(address).ok_or_else(|| not_agreed(address, "its address is neither a host name nor an IP address"))?;
    let connector = TlsConnector::from(first_contact::client(secret.anchor).map_err(|error| not_agreed(address, error))?);
    let handshake = async {
        let stream = TcpStream::connect(address).await.map_err(|error| unreachable(error.to_string()))?;
        let stream = connector.connect(name, stream).await;
        let stream = stream
            .map_err(|error| not_agreed(address, format!("it is not the cloud that the secret names, or not under this name: {error}")))?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        first_contact::find(secret.anchor, shown).ok_or_else(|| not_agreed(address, "it does not show its authority's certificate"))
    };
    let limit = limits.connect_timeout;
    timeout(limit, handshake).await.unwrap_or_else(|_| Err(unreachable(format!("no connection within {} ms", limit.as_millis()))))
}

fn not_agreed(address: &str, why: impl ToString) -> CallError {
    CallError::Tls { address: address.to_owned(), why: why.to_string() }
}

impl Monitor {
    /// Asks for a certificate.
    async fn onboard(&self, request: &OnboardingRequest) -> Result<Onboarded, CallError> {
        self.connection().ask(Method::POST, "/api/v1/onboarding", Some(request)).await
    }
}
