//! Whom Bodkin's own relay lets in: by the authorities that it believes, and by keys.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_store::Store;
use bodkin_trust::{
    Certificate, Identity, base64,
    tls::{self, AdmittedKeys, PeerCheck, TlsError},
};
use rustls::{ServerConfig, pki_types::CertificateDer};

use super::server::Admission;
use crate::security::{Security, Trust};

/// The core system whose certificate a relay inside a cloud shows: the Gatekeeper, whose key the other clouds have, or where there is none for it the one that every cloud has.
fn shown(trust: &Trust) -> CoreSystem {
    if trust.systems().contains(&CoreSystem::Gatekeeper) { CoreSystem::Gatekeeper } else { CoreSystem::ServiceRegistry }
}

/// Who is let in by a relay that stands by itself.
#[derive(Clone, Debug, Default)]
pub struct Guests {
    /// Everybody whom these authorities have certified.
    pub authorities: Vec<Certificate>,
    /// Whoever has one of these keys (SubjectPublicKeyInfo, DER), whatever its certificate says.
    pub keys: BTreeSet<Vec<u8>>,
}

/// A relay that stands by itself, with a list of its guests.
pub struct ListedAdmission(ArcSwap<Listed>);

struct Listed {
    tls: Arc<ServerConfig>,
    guests: Guests,
}

impl ListedAdmission {
    /// Shows `identity` and lets `guests` in.
    ///
    /// # Errors
    /// TLS cannot be configured with them.
    pub fn new(identity: &Identity, guests: Guests) -> Result<Self, TlsError> {
        Listed::new(identity, guests).map(|listed| Self(ArcSwap::from_pointee(listed)))
    }

    /// Shows and lets in others from now on. Those who are connected and are no guests any more are told and closed.
    ///
    /// # Errors
    /// TLS cannot be configured with them; then everything stays as it is.
    pub fn replace(&self, identity: &Identity, guests: Guests) -> Result<(), TlsError> {
        self.0.store(Arc::new(Listed::new(identity, guests)?));
        Ok(())
    }
}

impl Listed {
    fn new(identity: &Identity, guests: Guests) -> Result<Self, TlsError> {
        let tls = tls::relay_server(identity, &guests.authorities, Arc::new(guests.keys.clone()), PeerCheck::default())?;
        Ok(Self { tls, guests })
    }
}

impl Admission for ListedAdmission {
    fn tls(&self) -> Arc<ServerConfig> {
        self.0.load().tls.clone()
    }

    fn still_admits(&self, chain: &[CertificateDer<'_>]) -> bool {
        let listed = self.0.load();
        is_admitted(chain, &listed.guests.keys, &listed.guests.authorities, &PeerCheck::default())
    }
}

/// A relay inside a cloud: its own systems, and the gatekeepers of the clouds that it knows.
pub struct CloudAdmission {
    security: Arc<Security>,
    neighbours: Arc<Neighbours>,
    /// Made of what counted then.
    made: Mutex<Option<(Arc<Trust>, Arc<ServerConfig>)>>,
}

impl CloudAdmission {
    /// Of the cloud that has this store.
    ///
    /// # Errors
    /// TLS cannot be configured with the cloud's certificates.
    pub fn new(security: Arc<Security>, store: Store) -> Result<Self, TlsError> {
        let admission = Self { security, neighbours: Arc::new(Neighbours(store)), made: Mutex::default() };
        admission.current()?;
        Ok(admission)
    }

    /// The configuration of the certificates that count now; it is made anew when they have changed.
    fn current(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let trust = self.security.trust();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = made.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &trust)) {
            return Ok(config.clone());
        }
        let config = tls::relay_server(trust.identity(shown(&trust)), trust.anchors(), self.neighbours.clone(), trust.check.clone())?;
        *made = Some((trust, config.clone()));
        Ok(config)
    }
}

impl Admission for CloudAdmission {
    /// With certificates that cannot be used the former ones go on.
    fn tls(&self) -> Arc<ServerConfig> {
        self.current().unwrap_or_else(|error| {
            tracing::error!(%error, "the relay goes on with its former certificates");
            let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.as_ref().expect("one was made at the start").1.clone()
        })
    }

    fn still_admits(&self, chain: &[CertificateDer<'_>]) -> bool {
        let trust = self.security.trust();
        is_admitted(chain, &*self.neighbours, trust.anchors(), &trust.check)
    }
}

/// The gatekeepers' keys of the clouds that are known.
struct Neighbours(Store);

impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Neighbours")
    }
}

impl AdmittedKeys for Neighbours {
    fn admits(&self, key: &[u8]) -> bool {
        let (key, snapshot) = (base64::encode(key), self.0.snapshot());
        snapshot.clouds().any(|cloud| cloud.authentication_info.as_deref() == Some(key.as_str()))
    }
}

fn is_admitted(chain: &[CertificateDer<'_>], keys: &dyn AdmittedKeys, authorities: &[Certificate], check: &PeerCheck) -> bool {
    let Some(own) = chain.first() else { return false };
    let has_key = Certificate::from_der(own).is_ok_and(|read| keys.admits(read.public_key_info()));
    has_key || (tls::leads_to(authorities, chain, tls::now()) && check.check(own, tls::now()).is_ok())
}
