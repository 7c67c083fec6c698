//! What secure mode works with: identities, what is asked of peers, and TLS configurations made of them.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    core_service::CoreSystem,
    name::SystemName,
    utc::UtcTime,
};
use bodkin_trust::{
    Certificate, Identity, base64,
    revocation::{Revocations, Revoked},
    tls::{self, ClientCertificate, PeerCheck},
};
use rustls::{ClientConfig, ServerConfig, pki_types::CertificateDer};

use super::{CurveKeys, SecurityConfig, SecurityError, material::Material, tunnel::TunnelTls};
use crate::server::Port;

/// Everything that secure mode works with, as of one look at the files.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The cloud's name.
    pub cloud: CloudCommonName,
    /// What is asked of peers' certificates.
    pub check: PeerCheck,
    /// Whose systems are believed.
    anchors: Vec<Certificate>,
    /// Whose devices are believed on Bodkin's own port.
    device_anchors: Vec<Certificate>,
    /// How often since the start an authority was taken from those that are believed.
    pub(super) withdrawals: u64,
    /// Of [`Self::systems`], in their order.
    identities: Vec<Arc<Identity>>,
    /// Of the ports that are served, in the order of [`Port::ALL`].
    servers: Vec<Arc<ServerConfig>>,
    /// The Event Handler's, towards subscribers.
    pub(super) towards_subscribers: Arc<ClientConfig>,
    /// The Orchestrator's, towards services that are asked how long they take.
    pub(super) towards_services: Arc<ClientConfig>,
    /// The Gateway's, towards the ends of tunnels; `None`: there is no Gateway.
    pub(super) tunnels: Option<TunnelTls>,
    /// Keys of the ZMTP port, where it can be.
    pub curve: Option<CurveKeys>,
    /// When the first of the certificates is to be made anew.
    pub(super) renewal_due: UtcTime,
    /// What was read.
    pub(super) files: Vec<PathBuf>,
}

impl Trust {
    /// Reads everything, with certificates that other nodes of the cloud have revoked. What nobody would believe is refused.
    pub(super) fn read(config: &SecurityConfig, revoked: &BTreeSet<String>) -> Result<Self, SecurityError> {
        let now = tls::now();
        let Material { cloud, anchors, device_anchors, mut revocations, identities, curve, files } = Material::read(config, now)?;
        extend(&mut revocations, &anchors, revoked);
        let check = PeerCheck { revocations: Arc::new(revocations), pinned: None };
        for (system, identity) in CoreSystem::ALL.into_iter().zip(&identities) {
            check_identity(identity, system.name(), &cloud, &check, now)?;
        }
        let server = |port: Port| {
            match port {
                Port::System(system) => tls::server(&identities[system as usize], &anchors, ClientCertificate::Required, check.clone()),
                // Upstream has no such port, and no name for it.
                Port::Monitor => {
                    let own = &identities[CoreSystem::ServiceRegistry as usize];
                    let believed = [anchors.as_slice(), &device_anchors].concat();
                    tls::server(own, &believed, ClientCertificate::Optional, check.clone())
                }
            }
        };
        let servers = Port::served(identities.len()).iter().copied().map(server).collect::<Result<_, _>>()?;
        let event_handler = &identities[CoreSystem::EventHandler as usize];
        let towards_subscribers = tls::client_with_check(Some(event_handler), &anchors, config.server_check(), check.clone())?;
        let orchestrator = &identities[CoreSystem::Orchestrator as usize];
        let towards_services = tls::client_with_check(Some(orchestrator), &anchors, config.server_check(), check.clone())?;
        let gateway = identities.get(CoreSystem::Gateway as usize);
        let tunnels = gateway.map(|gateway| TunnelTls::new(gateway, &anchors, config.server_check(), &check)).transpose()?;
        let renewal_due = identities.iter().map(|identity| identity.certificate().renewal_due()).min().expect("there are some");
        let withdrawals = 0;
        Ok(Self {
            cloud,
            check,
            anchors,
            device_anchors,
            withdrawals,
            identities,
            servers,
            towards_subscribers,
            towards_services,
            tunnels,
            curve,
            renewal_due,
            files,
        })
    }

    /// Takes the place of what counted before.
    pub(super) fn succeed(self, before: &Self) -> Self {
        let has_lost = |of: fn(&Self) -> &[Certificate]| {
            let is_left = |anchor: &Certificate| of(&self).iter().any(|other| other.is_same_authority(anchor));
            !of(before).iter().all(is_left)
        };
        let has_lost_any = has_lost(|trust| &trust.anchors) || has_lost(|trust| &trust.device_anchors);
        Self { withdrawals: before.withdrawals + u64::from(has_lost_any), ..self }
    }

    /// The same with further certificates revoked. Reads no file.
    pub(super) fn revoking(&self, serials: &BTreeSet<String>) -> Self {
        let mut revocations = Revocations::clone(&self.check.revocations);
        extend(&mut revocations, &self.anchors, serials);
        Self { check: PeerCheck { revocations: Arc::new(revocations), ..self.check.clone() }, ..self.clone() }
    }

    /// The authorities that are believed, those of devices too: name and SHA-256 of each.
    pub fn authorities(&self) -> Vec<String> {
        let all = self.anchors.iter().chain(&self.device_anchors);
        all.map(|anchor| format!("{} {}", anchor.told_name(), anchor.fingerprint())).collect()
    }

    /// Whose systems are believed.
    pub(crate) fn anchors(&self) -> &[Certificate] {
        &self.anchors
    }

    /// The core systems that there are certificates for.
    pub fn systems(&self) -> &'static [CoreSystem] {
        let all: &'static [CoreSystem] = &CoreSystem::ALL;
        &all[..self.identities.len()]
    }

    /// Who a core system of [`Self::systems`] is.
    pub fn identity(&self, system: CoreSystem) -> &Arc<Identity> {
        &self.identities[system as usize]
    }

    /// A core system's public key as systems are registered with (reference section 2).
    pub fn authentication_info(&self, system: CoreSystem) -> String {
        base64::encode(self.identity(system).certificate().public_key_info())
    }

    /// Whether a chain that was verified is a device's: it leads to none of the cloud's authorities.
    pub(super) fn is_device(&self, chain: &[CertificateDer<'_>]) -> bool {
        !self.device_anchors.is_empty() && !tls::leads_to(&self.anchors, chain, tls::now())
    }

    /// What connections to a port are made with.
    pub(super) fn server(&self, port: Port) -> Arc<ServerConfig> {
        let at = Port::ALL.iter().position(|other| *other == port).expect("all ports are listed");
        self.servers[at].clone()
    }
}

/// Adds these serial numbers of each authority's certificates.
fn extend(revocations: &mut Revocations, anchors: &[Certificate], serials: &BTreeSet<String>) {
    let now = tls::now();
    for anchor in anchors {
        revocations.extend(anchor, serials.iter().filter_map(|serial| Revoked::parse(serial, now)).collect());
    }
}

/// Whoever showed this identity would be refused if it is not the system's own or does not count.
pub(super) fn check_identity(
    identity: &Identity,
    system: &'static str,
    cloud: &CloudCommonName,
    check: &PeerCheck,
    now: UtcTime,
) -> Result<(), SecurityError> {
    let (certificate, expected) =
        (identity.certificate(), SystemCommonName { system: SystemName::from_stored(system), cloud: cloud.clone() });
    if certificate.system().as_ref() != Ok(&expected) {
        return Err(SecurityError::Name { system, name: certificate.told_name().to_owned(), expected: expected.to_string() });
    }
    check.check(certificate.der(), now).map_err(|error| SecurityError::Certificate { system, error })?;
    Ok(())
}
