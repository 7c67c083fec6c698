//! Private keys.

use std::fmt;

use rcgen::{KeyPair, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use zeroize::Zeroizing;

/// 64 characters a line and `\n`, as OpenSSL writes.
pub(crate) const PEM_LINES: pem::EncodeConfig = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);

/// What is no private key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error("there is no private key (\"-----BEGIN PRIVATE KEY-----\") in it")]
    Missing,
    /// The bytes are no key that we can use.
    #[error("this private key cannot be used (RSA of 2048 bits or more, or P-256, P-384 or P-521, in PKCS#8, is expected): {0}")]
    Unusable(String),
    /// The cryptographic library has refused to make one.
    #[error("no key could be made: {0}")]
    NotMade(String),
}

/// The size of an RSA key to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySize {
    /// For systems: 2048 bits.
    Bits2048,
    /// For authorities: 3072 bits.
    Bits3072,
}

/// A private key that can sign. Its memory is wiped when it is dropped; it is never printed.
pub struct PrivateKey {
    pkcs8: Zeroizing<Vec<u8>>,
    pair: KeyPair,
}

impl PrivateKey {
    /// Makes an RSA key; 2048 bits take some tens of milliseconds of a core, 3072 some hundreds.
    pub fn generate(size: KeySize) -> Result<Self, KeyError> {
        let size = match size {
            KeySize::Bits2048 => RsaKeySize::_2048,
            KeySize::Bits3072 => RsaKeySize::_3072,
        };
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size).map_err(|error| KeyError::NotMade(error.to_string()))?;
        Ok(Self { pkcs8: Zeroizing::new(pair.serialize_der()), pair })
    }

    /// Takes a PKCS#8 key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let pair = KeyPair::try_from(der).map_err(|error| KeyError::Unusable(error.to_string()))?;
        Ok(Self { pkcs8: Zeroizing::new(pair.serialize_der()), pair })
    }

    /// Takes the first key of a PEM text, whichever unencrypted form it has (PKCS#8, PKCS#1, SEC1).
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let der = PrivateKeyDer::from_pem_slice(text).map_err(|_| KeyError::Missing)?;
        let pair = KeyPair::try_from(&der).map_err(|error| KeyError::Unusable(error.to_string()))?;
        Ok(Self { pkcs8: Zeroizing::new(pair.serialize_der()), pair })
    }

    /// The PKCS#8 form in PEM.
    pub fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(pem::encode_config(&pem::Pem::new("PRIVATE KEY", self.pkcs8.as_slice()), PEM_LINES))
    }

    /// The PKCS#8 form.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public key that belongs to it, as X.509 SubjectPublicKeyInfo in DER.
    pub fn public_key_info(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    /// What rustls takes.
    pub(crate) fn to_rustls(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.pkcs8.to_vec()).into()
    }

    /// What issues and signs requests.
    pub(crate) fn pair(&self) -> &KeyPair {
        &self.pair
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}
