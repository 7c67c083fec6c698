//! Private keys.

use std::fmt;

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair},
};
use rcgen::{KeyPair, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize};
use rustls::pki_types::{
    PrivateKeyDer, PrivatePkcs8KeyDer,
    pem::{self as pem_text, PemObject},
};
use zeroize::Zeroizing;

use crate::{certificate::Fingerprint, encrypted_key};

/// 64 characters a line and `\n`, as OpenSSL writes.
pub(crate) const PEM_LINES: pem::EncodeConfig = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
/// The PEM label of an encrypted key.
pub(crate) const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";

/// What is no private key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error("there is no private key (\"-----BEGIN PRIVATE KEY-----\") in it")]
    Missing,
    /// It is broken.
    #[error("the private key is damaged: {0}")]
    Damaged(String),
    /// The bytes are no key that we can use.
    #[error("this private key cannot be used (RSA of 2048 bits or more, or P-256, P-384 or P-521, in PKCS#8, is expected): {0}")]
    Unusable(String),
    /// It is encrypted, and no passphrase was given.
    #[error("the private key is encrypted, and there is no passphrase for it")]
    PassphraseNeeded,
    /// Nothing sensible comes out.
    #[error("the passphrase does not open the private key: it is another one, or the file is damaged")]
    WrongPassphrase,
    /// It is encrypted in a way that we do not read.
    #[error("the private key is encrypted by {0}; PBES2 with PBKDF2 and AES-128 or AES-256 in CBC mode is expected (openssl pkcs8 -topk8)")]
    Encryption(String),
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

/// A private key that can sign. Our copy of its bytes is wiped when it is dropped; it is never printed.
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
        let pair = KeyPair::try_from(&PrivateKeyDer::from(PrivatePkcs8KeyDer::from(der)))
            .map_err(|error| KeyError::Unusable(error.to_string()))?;
        Ok(Self { pkcs8: Zeroizing::new(der.to_vec()), pair })
    }

    /// Takes the first key of a PEM text: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        Self::from_pem_with(text, None)
    }

    /// As [`PrivateKey::from_pem`]; a passphrase opens an encrypted key (PKCS#8).
    pub fn from_pem_with(text: &[u8], passphrase: Option<&str>) -> Result<Self, KeyError> {
        match PrivateKeyDer::from_pem_slice(text) {
            Ok(PrivateKeyDer::Pkcs8(key)) => Self::from_pkcs8(key.secret_pkcs8_der()),
            Ok(other) => Self::from_pkcs8(&to_pkcs8(&other)?),
            Err(pem_text::Error::NoItemsFound) => Self::from_encrypted_pem(text, passphrase),
            Err(error) => Err(KeyError::Damaged(error.to_string())),
        }
    }

    fn from_encrypted_pem(text: &[u8], passphrase: Option<&str>) -> Result<Self, KeyError> {
        let sections = pem::parse_many(text).map_err(|error| KeyError::Damaged(error.to_string()))?;
        let section = sections.iter().find(|section| section.tag() == ENCRYPTED_LABEL).ok_or(KeyError::Missing)?;
        let passphrase = passphrase.ok_or(KeyError::PassphraseNeeded)?;
        // Other bytes that happen to end like a padding are no key.
        Self::from_pkcs8(&encrypted_key::decrypt(section.contents(), passphrase)?).map_err(|_| KeyError::WrongPassphrase)
    }

    /// The PKCS#8 form in PEM.
    pub fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(pem::encode_config(&pem::Pem::new("PRIVATE KEY", self.pkcs8.as_slice()), PEM_LINES))
    }

    /// The encrypted PKCS#8 form in PEM; without the passphrase nobody reads the key.
    pub fn to_encrypted_pem(&self, passphrase: &str) -> Result<Zeroizing<String>, KeyError> {
        let der = encrypted_key::encrypt(&self.pkcs8, passphrase)?;
        Ok(Zeroizing::new(pem::encode_config(&pem::Pem::new(ENCRYPTED_LABEL, der), PEM_LINES)))
    }

    /// The PKCS#8 form.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public key that belongs to it, as X.509 SubjectPublicKeyInfo in DER.
    pub fn public_key_info(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    /// SHA-256 of the public key.
    pub fn public_key_fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.public_key_info())
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

/// The PKCS#8 form of a key in one of the older forms.
fn to_pkcs8(key: &PrivateKeyDer<'_>) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let unusable = |why: &str| KeyError::Unusable(why.to_owned());
    let der = key.secret_der();
    if let PrivateKeyDer::Pkcs1(_) = key {
        let pair = rsa::KeyPair::from_der(der).map_err(|error| unusable(&error.to_string()))?;
        let pkcs8: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| unusable("it has no PKCS#8 form"))?;
        return Ok(Zeroizing::new(pkcs8.as_ref().to_vec()));
    }
    let curves = [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P521_SHA512_ASN1_SIGNING];
    let pair = curves.into_iter().find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, der).ok());
    let pkcs8 = pair.ok_or_else(|| unusable("it is on another curve"))?.to_pkcs8v1().map_err(|_| unusable("it has no PKCS#8 form"))?;
    Ok(Zeroizing::new(pkcs8.as_ref().to_vec()))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::EcPrivateKeyRfc5915Der;

    use super::*;
    use crate::example::key;

    /// The same key as OpenSSL's older forms have it.
    fn older_form(label: &str, der: &[u8]) -> String {
        pem::encode_config(&pem::Pem::new(label, der), PEM_LINES)
    }

    #[test]
    fn every_form_becomes_pkcs8() {
        let read = PrivateKey::from_pem(key().to_pem().as_bytes()).unwrap();
        assert_eq!(read.pkcs8(), key().pkcs8());

        // PKCS#8 wraps PKCS#1 in an octet string behind 26 bytes, for RSA of 2048 bits.
        let pkcs1 = older_form("RSA PRIVATE KEY", &key().pkcs8()[26..]);
        let read = PrivateKey::from_pem(pkcs1.as_bytes()).unwrap();
        assert_eq!((read.pkcs8(), read.public_key_info()), (key().pkcs8(), key().public_key_info()));

        let curve = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_ASN1_SIGNING).unwrap();
        let sec1: EcPrivateKeyRfc5915Der<'_> = curve.private_key().as_der().unwrap();
        let read = PrivateKey::from_pem(older_form("EC PRIVATE KEY", sec1.as_ref()).as_bytes()).unwrap();
        assert_eq!(PrivateKey::from_pkcs8(read.pkcs8()).unwrap().public_key_info(), read.public_key_info());
    }

    #[test]
    fn an_encrypted_key_opens_by_its_passphrase_only() {
        let sealed = key().to_encrypted_pem("correct horse").unwrap();
        assert!(sealed.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"));
        let opened = PrivateKey::from_pem_with(sealed.as_bytes(), Some("correct horse")).unwrap();
        assert_eq!(opened.pkcs8(), key().pkcs8());
        assert!(matches!(PrivateKey::from_pem(sealed.as_bytes()), Err(KeyError::PassphraseNeeded)));
        assert!(matches!(PrivateKey::from_pem_with(sealed.as_bytes(), Some("battery")), Err(KeyError::WrongPassphrase)));
        assert_ne!(*sealed, *key().to_encrypted_pem("correct horse").unwrap(), "each has a salt of its own");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert!(matches!(PrivateKey::from_pem(b"nothing"), Err(KeyError::Missing)));
        let certificate = crate::example::sensor().certificate().to_pem();
        assert!(matches!(PrivateKey::from_pem(certificate.as_bytes()), Err(KeyError::Missing)));
        let text = key().to_pem();
        assert!(matches!(PrivateKey::from_pem(&text.as_bytes()[..300]), Err(KeyError::Damaged(_))));
        assert!(matches!(PrivateKey::from_pkcs8(&key().pkcs8()[..300]), Err(KeyError::Unusable(_))));
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", key()), "PrivateKey");
    }
}
