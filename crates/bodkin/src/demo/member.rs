//! What both participants are besides what they do: who they are, how they call, and how they are called.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use bodkin_arrowhead::form::SystemRequest;
use bodkin_client::{CoreSystems, Limits, Security};
use bodkin_trust::{
    Certificate, Identity, base64,
    file::{read_certificates, read_identity},
    tls::{self, ClientCertificate, PeerCheck},
};
use clap::Args;
use tokio_rustls::TlsAcceptor;

use super::child::die_with;

/// Options of a participant.
#[derive(Args, Clone, Debug)]
pub struct MemberOptions {
    #[arg(long)]
    parent: u32,
    #[arg(long, value_name = "HOST:PORT")]
    service_registry: String,
    /// In a secure cloud: its certificate, its key, and the authority that it believes.
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Authority of another cloud, whose systems may call as well.
    #[arg(long, value_name = "FILE", requires = "ca")]
    guests: Option<PathBuf>,
}

/// A participant of the cloud.
pub struct Member {
    /// The cloud.
    pub cloud: CoreSystems,
    name: &'static str,
    /// In a secure cloud: who it is, and whom it believes.
    secure: Option<(Identity, Vec<Certificate>)>,
    /// Authorities of other clouds, whose systems may call it.
    guests: Vec<Certificate>,
}

impl Member {
    /// Finds the cloud. Ends with the demo from now on.
    pub async fn join(options: &MemberOptions, name: &'static str) -> anyhow::Result<Self> {
        die_with(options.parent)?;
        let registry = &options.service_registry;
        let (Some(cert), Some(key), Some(ca)) = (&options.cert, &options.key, &options.ca) else {
            return Ok(Self { cloud: CoreSystems::discover(registry).await?, name, secure: None, guests: Vec::new() });
        };
        let (identity, anchors) = (read_identity(cert, key, None)?, read_certificates(ca)?);
        let security = Security::new(Some(&identity), &anchors)?;
        let cloud = CoreSystems::discover_securely(registry, Limits::default(), &security).await?;
        let guests = options.guests.as_deref().map_or_else(|| Ok(Vec::new()), read_certificates)?;
        Ok(Self { cloud, name, secure: Some((identity, anchors)), guests })
    }

    /// Who it is, in a secure cloud.
    pub fn identity(&self) -> Option<&Identity> {
        self.secure.as_ref().map(|(identity, _)| identity)
    }

    /// What its own server accepts connections with, in a secure cloud: callers have to show a certificate of the cloud.
    pub fn acceptor(&self) -> anyhow::Result<Option<TlsAcceptor>> {
        let Some((identity, anchors)) = &self.secure else { return Ok(None) };
        let believed: Vec<Certificate> = anchors.iter().chain(&self.guests).cloned().collect();
        let config = tls::server(identity, &believed, ClientCertificate::Required, PeerCheck::default());
        Ok(Some(TlsAcceptor::from(config.context("no TLS for the own server")?)))
    }

    /// The interface that services are offered over.
    pub fn interface(&self) -> &'static str {
        if self.secure.is_some() { "HTTP-SECURE-JSON" } else { "HTTP-INSECURE-JSON" }
    }

    /// How services are secured.
    pub fn service_security(&self) -> &'static str {
        if self.secure.is_some() { "TOKEN" } else { "NOT_SECURE" }
    }

    /// It as requests name it, with the key that tokens for it are sealed to.
    pub fn system(&self, address: SocketAddr) -> SystemRequest {
        SystemRequest {
            system_name: Some(self.name.to_owned()),
            address: Some(address.ip().to_string()),
            port: Some(i64::from(address.port())),
            authentication_info: self.identity().map(|identity| base64::encode(identity.certificate().public_key_info())),
            ..SystemRequest::default()
        }
    }
}
