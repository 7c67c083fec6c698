//! Issuing to new systems what a grant allows.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use bodkin_arrowhead::{common_name::SystemCommonName, utc::UtcTime};
use bodkin_store::onboarding::Spent;
use bodkin_trust::{
    Certificate, DirectoryError, Fingerprint, Profile, TrustDirectory, directory::LEAF_LIFETIME, ledger::Ledger, request::SigningRequest,
};
use tokio::sync::Semaphore;

use crate::attempts::Attempts;

/// Requests that are looked at at the same time; further ones wait. Each may cost the check of a signature and a signature.
const PLACES: usize = 2;

/// What onboarding works with.
#[derive(Debug)]
pub struct Onboarding {
    directory: TrustDirectory,
    /// Who is wrong too often.
    pub attempts: Attempts,
    /// Places for those who are looked at.
    pub places: Semaphore,
    /// Held from looking whether a name is taken until the ledger has it.
    issuing: Mutex<()>,
    /// Held while the ledger is read for an operator.
    pub reading: tokio::sync::Mutex<()>,
}

/// Why nothing was issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The name is somebody's.
    #[error("{0} has a certificate that counts. A grant for that name alone would replace it; one for many names does not")]
    Taken(String),
    /// The directory or the authority does not do its work.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

impl Onboarding {
    /// Issues by the authority of this directory.
    pub fn new(directory: TrustDirectory) -> Self {
        Self {
            directory,
            attempts: Attempts::new(Instant::now()),
            places: Semaphore::new(PLACES),
            issuing: Mutex::new(()),
            reading: tokio::sync::Mutex::new(()),
        }
    }

    /// What new systems are told to believe: the certificate of the cloud's authority.
    pub fn anchor(&self) -> Result<Fingerprint, DirectoryError> {
        Ok(self.directory.anchor()?.fingerprint())
    }

    /// Everything that the authority has issued. Blocks while it is read.
    pub fn ledger(&self) -> Result<Ledger, DirectoryError> {
        self.directory.ledger()
    }

    /// Revokes what the ledger names by this serial number, and signs the list anew. Blocks for some milliseconds; the authority's key is read for it.
    pub fn revoke(&self, serial: &str, now: UtcTime) -> Result<(), DirectoryError> {
        self.directory.revoke(&[serial.to_owned()], now)
    }

    /// Issues a certificate for the key of a request; gives its chain. Everything that it says is the grant's. The authority's key is
    /// read for it, and not kept in memory. Blocks for some milliseconds.
    pub fn issue(&self, spent: &Spent, request: &SigningRequest, now: UtcTime) -> Result<Vec<Certificate>, IssueError> {
        let name = SystemCommonName { system: spent.system.clone(), cloud: self.directory.cloud()? };
        let authority = self.directory.authority()?;
        let profile = Profile::system(&name, &spent.grant.alternative_names, now, LEAF_LIFETIME);
        let _issuing = self.issuing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for_many = spent.grant.systems.only().is_none();
        if is_for_many && self.is_taken(&name.to_string(), now)? {
            return Err(IssueError::Taken(name.to_string()));
        }
        Ok(self.directory.certify(&authority, &profile, request.public_key_info())?)
    }

    /// Whoever knows the secret of a grant for many must not become one of them that is there already.
    fn is_taken(&self, name: &str, now: UtcTime) -> Result<bool, DirectoryError> {
        let ledger = self.directory.ledger()?;
        Ok(ledger.issued().iter().any(|issued| issued.name == name && issued.revoked_at.is_none() && now <= issued.not_after))
    }
}
