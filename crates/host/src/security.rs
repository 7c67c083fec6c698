//! Secure mode: who the core systems are, whom they believe, and how both change while connections are open.

mod curve;
mod handshake;
mod material;
mod names;
mod node;
mod outgoing;
pub(crate) mod reload;
mod trust;
mod tunnel;
mod turns;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{
    caller::Caller,
    common_name::CloudCommonName,
    name::{CloudName, SystemName},
    utc::UtcTime,
};
use bodkin_trust::{
    Certificate, DirectoryError, TrustDirectory, base64,
    file::FileError,
    tls::{self, PeerError, Refusal, ServerCheck, TlsError},
};
use rustls::Connection;
use tokio::sync::watch;

pub use self::{curve::CurveKeys, handshake::SecurePort, names::machine_name, outgoing::SubscriberError, trust::Trust};

pub(crate) use self::{node::NodeMaterial, outgoing::host_name};

/// A certificate counts until the end of its last second.
const LAST_SECOND: Duration = Duration::from_secs(1);

/// How a cloud is made secure.
#[derive(Clone, Debug)]
pub struct SecurityConfig {
    /// Where certificates and keys are kept, and what opens the authority's key. An empty or absent one is filled.
    pub directory: TrustDirectory,
    /// The key stores that are used instead; `None`: none.
    pub key_stores: Option<KeyStores>,
    /// Certificates (PEM) of authorities for devices: what they certify may come to a certificate of the cloud by onboarding, and
    /// nothing else. `None`: none.
    pub device_authorities: Option<PathBuf>,
    /// The cloud's name, where the operator has given one: others are refused.
    pub cloud: Option<CloudName>,
    /// Who runs it, likewise.
    pub operator: Option<CloudName>,
    /// Whether subscribers' certificates have to be made out for the address that they registered. Upstream's
    /// `disable.hostname.verifier` is the contrary.
    pub verify_host_names: bool,
    /// Host names and IP addresses that the core systems' certificates are made out for, besides this machine's own.
    pub host_names: Vec<String>,
}

impl SecurityConfig {
    /// What is asked of the certificates of those that are connected to.
    fn server_check(&self) -> ServerCheck {
        if self.verify_host_names { ServerCheck::HostName } else { ServerCheck::ChainOnly }
    }
}

/// Key stores as an Arrowhead cloud has them.
#[derive(Clone, Debug)]
pub struct KeyStores {
    /// Where `NAME.p12` of each core system is (those of the Gatekeeper and the Gateway may be missing, and then there is none), and `revoked.crl` if anything is revoked.
    pub folder: PathBuf,
    /// The certificates of the authorities whose systems are believed: the cloud's.
    pub trust_store: PathBuf,
    /// The password of all of them.
    pub password_file: Option<PathBuf>,
}

/// Why secure mode cannot be entered, or new files are not taken.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// A file or a certificate is wrong.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A key store is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A core system's certificate is not its own.
    #[error("the certificate of {system} is made out for {name}; {expected} is expected")]
    Name {
        /// The core system.
        system: &'static str,
        /// What came.
        name: String,
        /// What was expected.
        expected: String,
    },
    /// A core system's certificate does not count.
    #[error("the certificate of {system}: {error}")]
    Certificate {
        /// The core system.
        system: &'static str,
        /// Why.
        error: PeerError,
    },
    /// The directory holds another cloud's certificates than the operator expects.
    #[error(
        "the certificates in {place} are those of {found}, and {expected} was asked for: leave out --cloud and --operator, or use another --trust"
    )]
    OtherName {
        /// Where they are.
        place: PathBuf,
        /// Whose certificates there are.
        found: CloudCommonName,
        /// Who was asked for.
        expected: CloudCommonName,
    },
    /// A key store of the Gatekeeper or the Gateway has come or gone.
    #[error("gatekeeper.p12 or gateway.p12 was {} since the start: start again to be a cloud {} it", if *.is_there { "put there" } else { "taken away" },
        if *.is_there { "with" } else { "without" })]
    Gatekeeper {
        /// Whether it is there now.
        is_there: bool,
    },
    /// The directory holds another cloud's certificates than at the start.
    #[error("the certificates are those of {found} now, and this is {running}: start again to be another cloud")]
    OtherCloud {
        /// Whose certificates there are.
        found: CloudCommonName,
        /// Who runs.
        running: CloudCommonName,
    },
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What operations are told.
    pub caller: Caller,
    /// What was shown; `None` in insecure mode, and of nobody in secure mode.
    certificate: Option<Arc<Certificate>>,
    /// [`Trust::withdrawals`] when it was verified.
    withdrawals: u64,
}

impl Peer {
    /// The name in the certificate that was shown.
    pub fn name(&self) -> &str {
        self.certificate.as_ref().and_then(|certificate| certificate.common_name()).unwrap_or("nobody")
    }

    /// Whether its certificate's time is over.
    pub fn is_over(&self, now: UtcTime) -> bool {
        self.certificate.as_ref().is_some_and(|certificate| now.whole_seconds() > certificate.not_after())
    }

    /// Whether it has shown the certificate of this system of the own cloud.
    pub fn is(&self, system: &SystemName) -> bool {
        matches!(&self.caller, Caller::Certified(name) if name.system.as_ref() == Some(system))
    }

    /// Whether it has shown a certificate.
    pub fn has_certificate(&self) -> bool {
        self.certificate.is_some()
    }

    /// Whether it has shown a certificate of the cloud's authority that names no system of the cloud.
    fn is_stranger(&self) -> bool {
        self.has_certificate() && matches!(&self.caller, Caller::Certified(name) if name.system.is_none() && !name.is_device)
    }

    /// A system that has shown a certificate of the directory's authority, which is issued for this test.
    #[cfg(test)]
    pub(crate) fn issued_for_test(directory: &TrustDirectory, system: &str) -> Self {
        let name =
            bodkin_arrowhead::common_name::SystemCommonName { system: SystemName::from_stored(system), cloud: directory.cloud().unwrap() };
        let authority = directory.authority().unwrap();
        let profile = bodkin_trust::Profile::system(&name, &[], tls::now(), Duration::from_secs(86_400));
        let key = authority.certificate().public_key_info().to_vec();
        let certificate = authority.certify(&profile, &key).unwrap();
        let caller = Caller::certified(&name.to_string(), &name.cloud);
        Self { caller, certificate: Some(Arc::new(certificate)), withdrawals: 0 }
    }

    /// The serial number of the certificate that was shown.
    #[cfg(test)]
    pub(crate) fn serial(&self) -> Option<String> {
        self.certificate.as_ref().map(|certificate| certificate.serial_text())
    }

    /// Whoever connects in insecure mode.
    pub fn anonymous() -> Self {
        Self { caller: Caller::Anonymous, certificate: None, withdrawals: 0 }
    }
}

/// The running cloud's certificates and keys.
#[derive(Debug)]
pub struct Security {
    config: SecurityConfig,
    current: ArcSwap<Trust>,
    /// Told behind every change.
    changes: watch::Sender<()>,
    /// Serial numbers that other nodes of the cloud have revoked, whether the files here say so or not. Held while files are read.
    revoked: Mutex<BTreeSet<String>>,
}

impl Security {
    /// Reads the certificates and keys, and makes those that are missing. Takes seconds where there are none.
    pub fn open(config: SecurityConfig) -> Result<Arc<Self>, SecurityError> {
        let trust = Trust::read(&config, &BTreeSet::new())?;
        config.try_authority(trust.renewal_due)?;
        Ok(Arc::new(Self { config, current: ArcSwap::from_pointee(trust), changes: watch::Sender::new(()), revoked: Mutex::default() }))
    }

    /// What counts now.
    pub fn trust(&self) -> Arc<Trust> {
        self.current.load_full()
    }

    /// Tells of every change.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Reads the files again. If they are wrong everything stays as it is.
    pub fn reload(&self) -> Result<(), SecurityError> {
        let revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        let (trust, running) = (Trust::read(&self.config, &revoked)?, self.trust());
        if trust.cloud != running.cloud {
            return Err(SecurityError::OtherCloud { found: trust.cloud, running: running.cloud.clone() });
        }
        if trust.systems() != running.systems() {
            return Err(SecurityError::Gatekeeper { is_there: trust.systems().len() > running.systems().len() });
        }
        self.current.store(Arc::new(trust.succeed(&running)));
        self.changes.send_replace(());
        Ok(())
    }

    /// Refuses these certificates of the cloud's authority from now on, and closes their connections. Reads no file, so a directory that is read-only or
    /// full delays no revocation.
    ///
    /// Returns false if all of them were revoked before.
    pub fn revoke(&self, serials: BTreeSet<String>) -> bool {
        let mut revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        let (running, trust) = (self.trust(), self.trust().revoking(&serials));
        let is_new = trust.check.revocations.len() > running.check.revocations.len();
        if is_new {
            self.current.store(Arc::new(trust));
            self.changes.send_replace(());
        }
        revoked.extend(serials);
        is_new
    }

    /// Who has shown what at the end of a handshake that was begun with `verified_by`. A resumed session shows what it showed at its
    /// begin, which may not count any more.
    fn peer(&self, session: &Connection, verified_by: &Trust) -> Result<Peer, Refusal> {
        let (trust, withdrawals) = (self.current.load(), verified_by.withdrawals);
        let chain = session.peer_certificates().unwrap_or_default();
        let Some(shown) = chain.first() else {
            return Ok(Peer { caller: Caller::unidentified(), certificate: None, withdrawals });
        };
        let certificate = trust.check.admit(shown, tls::now())?;
        if withdrawals != trust.withdrawals {
            return Err(Refusal { certificate: Some(Box::new(certificate)), error: PeerError::Withdrawn.into() });
        }
        let name = certificate.common_name().unwrap_or_default();
        let caller = if trust.is_device(chain) {
            Caller::device(name)
        } else {
            Caller::certified_with(name, base64::encode(certificate.public_key_info()), &trust.cloud)
        };
        Ok(Peer { caller, certificate: Some(Arc::new(certificate)), withdrawals })
    }

    /// Whether a peer's certificate still counts. Where an authority is believed no more, everybody has to show it again: of a
    /// certificate alone it is not known which authority it leads to.
    pub fn check(&self, peer: &Peer) -> Result<(), PeerError> {
        let (Some(certificate), trust) = (&peer.certificate, self.current.load()) else { return Ok(()) };
        if peer.withdrawals != trust.withdrawals {
            return Err(PeerError::Withdrawn);
        }
        trust.check.check_again(certificate, tls::now())
    }

    /// Waits until a peer's certificate does not count any more.
    pub async fn until_refused(&self, peer: &Peer) -> PeerError {
        let Some(certificate) = &peer.certificate else { return std::future::pending().await };
        let mut changes = self.changes.subscribe();
        loop {
            if let Err(error) = self.check(peer) {
                return error;
            }
            let life = certificate.not_after().since(tls::now()) + LAST_SECOND;
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(life) => {}
            }
        }
    }
}

/// Tells that a connection was closed because its certificate does not count any more.
pub fn tell_refused(peer: &Peer, error: &PeerError) {
    tracing::warn!(certificate = peer.name(), %error, "an open connection was closed");
}
