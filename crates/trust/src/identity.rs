//! A certificate's chain and the key that belongs to it.

use crate::{
    certificate::{Certificate, CertificateError},
    key::{KeyError, PrivateKey},
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
#[derive(Debug)]
pub struct Identity {
    chain: Vec<Certificate>,
    key: PrivateKey,
}

impl Identity {
    /// Puts a chain (the own certificate first; at least one) and its key together.
    pub fn new(chain: Vec<Certificate>, key: PrivateKey) -> Result<Self, IdentityError> {
        let own = chain.first().ok_or(CertificateError::Missing)?;
        if own.public_key_info() != key.public_key_info() {
            return Err(IdentityError::Mismatch(own.common_name().unwrap_or("no name").to_owned()));
        }
        Ok(Self { chain, key })
    }

    /// Reads PEM texts: certificates, the own one first, and a key. Both may be the same text.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        Self::new(Certificate::from_pem(certificates)?, PrivateKey::from_pem(key)?)
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
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// The chain in PEM, the own certificate first.
    pub fn chain_to_pem(&self) -> String {
        self.chain.iter().map(Certificate::to_pem).collect()
    }
}
