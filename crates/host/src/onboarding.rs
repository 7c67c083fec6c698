//! Issuing to new systems what a grant allows.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use bodkin_arrowhead::{common_name::SystemCommonName, utc::UtcTime};
use bodkin_store::{certificate_line::NotBrought, onboarding::Spent};
use bodkin_trust::{
    Certificate, DirectoryError, Fingerprint, Profile, TrustDirectory, directory::LEAF_LIFETIME, ledger::Ledger, request::SigningRequest,
};
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{
    attempts::Attempts,
    shared::account::{Account, AccountError},
};

/// Requests that are looked at at the same time; further ones wait. Each may cost the check of a signature and a signature.
const PLACES: usize = 2;

/// What onboarding works with.
#[derive(Debug)]
pub struct Onboarding {
    directory: TrustDirectory,
    /// The account that other nodes share; `None`: it is this node's own.
    account: Option<Account>,
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
    /// Another node has the key.
    #[error("This node has no key of the cloud's authority. Ask {}", if .0.is_empty() { "the node that has it, which does not serve now".to_owned() } else { .0.join(" or ") })]
    NoKey(Vec<String>),
    /// The other nodes could not be told.
    #[error("the account of certificates that the nodes share: {0}")]
    Account(AccountError),
    /// The directory or the authority does not do its work.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

impl From<AccountError> for IssueError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Directory(error) => Self::Directory(error),
            error => Self::Account(error),
        }
    }
}

/// Why a revocation is not known to all.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    /// It is not revoked.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// It is not known here, and the other nodes could not be asked.
    #[error("this node knows of no such certificate, and cannot ask the others: {0}")]
    NotKnown(AccountError),
    /// The other nodes could not be told.
    #[error("it is revoked at this node, and at the others as soon as they receive the change: {0}")]
    Elsewhere(AccountError),
}

impl Onboarding {
    /// Issues by the authority of this directory, on the account that other nodes share, if they do.
    pub fn new(directory: TrustDirectory, account: Option<Account>) -> Self {
        Self {
            directory,
            account,
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

    /// What this node is called, where several share the account.
    pub fn node(&self) -> Option<&str> {
        self.account.as_ref().map(Account::node)
    }

    /// Revokes what the ledger names by this serial number, here and at all nodes that share the account, and signs the list anew. Blocks for some
    /// milliseconds; the authority's key is read for it.
    pub fn revoke(&self, serial: &str, now: UtcTime) -> Result<(), RevokeError> {
        let serials = [serial.to_owned()];
        let Some(account) = &self.account else { return Ok(self.directory.revoke(&serials, now)?) };
        match self.directory.note_revoked(&serials, now) {
            // Another node may have issued it a moment ago.
            Err(DirectoryError::Unknown(_)) => {
                Handle::current().block_on(account.take()).map_err(RevokeError::NotKnown)?;
                self.directory.note_revoked(&serials, now)?;
            }
            noted => noted?,
        }
        Handle::current().block_on(account.bring_own()).map_err(RevokeError::Elsewhere)
    }

    /// Issues a certificate for the key of a request; gives its chain. Everything that it says is the grant's. The authority's key is
    /// read for it, and not kept in memory. Blocks for some milliseconds.
    pub fn issue(&self, spent: &Spent, request: &SigningRequest, now: UtcTime) -> Result<Vec<Certificate>, IssueError> {
        let name = SystemCommonName { system: spent.system.clone(), cloud: self.directory.cloud()? };
        let authority = self.directory.authority().map_err(|error| self.without_key(error))?;
        let profile = Profile::system(&name, &spent.grant.alternative_names, now, LEAF_LIFETIME);
        let _issuing = self.issuing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for_many = spent.grant.systems.only().is_none();
        if is_for_many && self.is_taken(&name.to_string(), now)? {
            return Err(IssueError::Taken(name.to_string()));
        }
        let Some(account) = &self.account else { return Ok(self.directory.certify(&authority, &profile, request.public_key_info())?) };
        let issued =
            self.directory.certify_told(&authority, &profile, request.public_key_info(), |line| account.bring_issue(line, is_for_many));
        issued.map_err(|error| match error {
            AccountError::NotBrought(NotBrought::NameTaken) => IssueError::Taken(name.to_string()),
            error => error.into(),
        })
    }

    /// Another node may do what this one cannot.
    fn without_key(&self, error: DirectoryError) -> IssueError {
        match &self.account {
            Some(account) if !self.directory.has_key() => IssueError::NoKey(account.issuers()),
            _ => error.into(),
        }
    }

    /// Whoever knows the secret of a grant for many must not become one of them that is there already.
    fn is_taken(&self, name: &str, now: UtcTime) -> Result<bool, DirectoryError> {
        let ledger = self.directory.ledger()?;
        Ok(ledger.issued().iter().any(|issued| issued.name == name && issued.revoked_at.is_none() && now <= issued.not_after))
    }
}
