//! The four keys of a message: two private, two public; RSA of 2048 to 8192 bits.

use std::fmt;

use aws_lc_rs::{
    digest,
    rsa::{OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey},
    signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA512, RsaKeyPair},
};

use crate::{base64, key::PrivateKey};

/// A key that is none, or not of the kind that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key cannot be used: an RSA key of 2048 to 8192 bits is needed")]
pub struct UnusableKey;

/// Signs. The sender's private key.
pub struct SigningKey(pub(super) RsaKeyPair);

/// Verifies signatures. The sender's public key.
pub struct VerifyingKey(pub(super) ParsedPublicKey);

/// Seals. The recipient's public key.
pub struct SealingKey {
    pub(super) key: OaepPublicEncryptingKey,
    identity: KeyIdentity,
}

/// What a public key is known by: SHA-256 of its DER form.
pub type KeyIdentity = [u8; 32];

/// Opens. The recipient's private key.
pub struct OpeningKey(pub(super) OaepPrivateDecryptingKey);

impl SigningKey {
    /// Takes a private key.
    pub fn new(key: &PrivateKey) -> Result<Self, UnusableKey> {
        RsaKeyPair::from_pkcs8(key.pkcs8()).map(Self).map_err(|_| UnusableKey)
    }
}

impl OpeningKey {
    /// Takes a private key.
    pub fn new(key: &PrivateKey) -> Result<Self, UnusableKey> {
        let key = PrivateDecryptingKey::from_pkcs8(key.pkcs8()).map_err(|_| UnusableKey)?;
        OaepPrivateDecryptingKey::new(key).map(Self).map_err(|_| UnusableKey)
    }
}

impl VerifyingKey {
    /// Takes X.509 SubjectPublicKeyInfo in DER.
    pub fn new(public_key_info: &[u8]) -> Result<Self, UnusableKey> {
        ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA512, public_key_info).map(Self).map_err(|_| UnusableKey)
    }

    /// Takes what Arrowhead calls `authenticationInfo`: Base64 of the DER form.
    pub fn from_authentication_info(text: &str) -> Result<Self, UnusableKey> {
        Self::new(&base64::decode(text).ok_or(UnusableKey)?)
    }
}

impl SealingKey {
    /// Takes X.509 SubjectPublicKeyInfo in DER.
    pub fn new(public_key_info: &[u8]) -> Result<Self, UnusableKey> {
        let key = PublicEncryptingKey::from_der(public_key_info).map_err(|_| UnusableKey)?;
        let key = OaepPublicEncryptingKey::new(key).map_err(|_| UnusableKey)?;
        let hash = digest::digest(&digest::SHA256, public_key_info);
        Ok(Self { key, identity: hash.as_ref().try_into().expect("SHA-256 has 32 bytes") })
    }

    /// Whose key it is.
    pub fn identity(&self) -> KeyIdentity {
        self.identity
    }

    /// Takes what Arrowhead calls `authenticationInfo`: Base64 of the DER form.
    pub fn from_authentication_info(text: &str) -> Result<Self, UnusableKey> {
        Self::new(&base64::decode(text).ok_or(UnusableKey)?)
    }
}

macro_rules! never_printed {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

never_printed! { SigningKey VerifyingKey SealingKey OpeningKey }
