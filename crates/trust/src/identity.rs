//! A certificate's chain and the key that belongs to it.

use std::{path::Path, sync::Arc};

use crate::{
    certificate::{Certificate, CertificateError},
    file::{self, FileError},
    key::{KeyError, PrivateKey},
    keystore,
};

/// Why a chain and a key are no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificates are none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The key is none.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// They do not belong together.
    #[error("the private key does not belong to the certificate of {0}")]
    Mismatch(String),
}

/// Who a process is: its certificate, those that lead to the authority, and its key.
#[derive(Clone, Debug)]
pub struct Identity {
    chain: Vec<Certificate>,
    key: Arc<PrivateKey>,
}

impl Identity {
    /// Puts a chain (the own certificate first; at least one) and its key together.
    pub fn new(chain: Vec<Certificate>, key: impl Into<Arc<PrivateKey>>) -> Result<Self, IdentityError> {
        let (own, key) = (chain.first().ok_or(CertificateError::Missing)?, key.into());
        if own.public_key_info() != key.public_key_info() {
            return Err(IdentityError::Mismatch(own.told_name().to_owned()));
        }
        Ok(Self { chain, key })
    }

    /// Reads PEM texts: certificates, the own one first, and a key. Both may be the same text.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        Self::new(Certificate::from_pem(certificates)?, PrivateKey::from_pem(key)?)
    }

    /// Reads a file by what is in it: a PKCS#12 key store, a PEM text of chain and key, or one of the chain, with the key beside it
    /// in the file of the same name that ends in `.key`. A file with a key is refused if others may read it. The password opens the
    /// key store or the encrypted key.
    pub fn read(path: &Path, password: Option<&str>) -> Result<Self, FileError> {
        let content = file::read_any(path)?;
        if keystore::is_key_store(&content) {
            let password = password.ok_or_else(|| FileError::content(path, "it is a key store: give its password"))?;
            return keystore::read_identity(&content, password).map_err(|error| FileError::content(path, error));
        }
        if !file::holds_pem_key(&content) {
            return file::read_identity(path, &path.with_extension("key"), password);
        }
        let key = PrivateKey::from_pem_with(&content, password).map_err(|error| FileError::content(path, error))?;
        let chain = Certificate::from_pem(&content).map_err(|error| FileError::content(path, error))?;
        Self::new(chain, key).map_err(|error| FileError::content(path, error))
    }

    /// The own certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.chain[0]
    }

    /// The own certificate and those that lead to the authority.
    pub fn chain(&self) -> &[Certificate] {
        &self.chain
    }

    /// The key.
    pub fn key(&self) -> &Arc<PrivateKey> {
        &self.key
    }

    /// The chain in PEM, the own certificate first.
    pub fn chain_to_pem(&self) -> String {
        self.chain.iter().map(Certificate::to_pem).collect()
    }
}
