//! Certificate signing requests (PKCS#10): a public key and the proof that its owner has the private one.
//!
//! The subject and the extensions that a request asks for are not taken: what a certificate says is decided by whoever issues it.

use rcgen::{CertificateParams, DistinguishedName, DnType};
use x509_parser::{
    certification_request::X509CertificationRequest,
    oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA},
    prelude::FromDer,
};

use crate::{
    certificate::{KeyKind, common_name},
    der,
    key::PrivateKey,
};

/// Largest request that is read.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;
/// The PEM labels of a request: everybody's, and that of Java's keytool.
pub(crate) const REQUEST_LABELS: [&str; 2] = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"];

/// Why a request is not granted.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is none.
    #[error("there is no certificate signing request (\"-----BEGIN CERTIFICATE REQUEST-----\") in it")]
    Missing,
    /// It is larger than any.
    #[error("it has {0} bytes; a certificate signing request has {REQUEST_BYTES_MAX} at the most")]
    TooLarge(usize),
    /// It is none.
    #[error("this is no certificate signing request: {0}")]
    Malformed(String),
    /// Whoever has made it has not the key.
    #[error("the request is not signed by its own key, or by an algorithm that is not taken (RSA or ECDSA P-256, P-384 with SHA-2 is)")]
    Signature,
    /// The key can be found by others.
    #[error("a key of the kind {0} is not certified")]
    WeakKey(KeyKind),
    /// The library has refused to write.
    #[error("the request could not be made: {0}")]
    NotMade(#[from] rcgen::Error),
}

/// A request whose signature was verified and whose key is strong enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    common_name: Option<String>,
    key_kind: KeyKind,
    public_key_info: Vec<u8>,
}

impl SigningRequest {
    /// Reads a request in PEM or DER.
    pub fn read(bytes: &[u8]) -> Result<Self, RequestError> {
        if bytes.len() > REQUEST_BYTES_MAX {
            return Err(RequestError::TooLarge(bytes.len()));
        }
        if bytes.first() == Some(&der::SEQUENCE) {
            return Self::from_der(bytes);
        }
        let sections = pem::parse_many(bytes).map_err(|error| RequestError::Malformed(error.to_string()))?;
        let section = sections.iter().find(|section| REQUEST_LABELS.contains(&section.tag())).ok_or(RequestError::Missing)?;
        Self::from_der(section.contents())
    }

    /// Reads a request in DER; nothing may follow it.
    pub fn from_der(der: &[u8]) -> Result<Self, RequestError> {
        let (rest, request) = X509CertificationRequest::from_der(der).map_err(|error| RequestError::Malformed(error.to_string()))?;
        if !rest.is_empty() {
            return Err(RequestError::Malformed(format!("{} bytes follow it", rest.len())));
        }
        let info = &request.certification_request_info;
        let key_kind = KeyKind::of(&info.subject_pki);
        if !key_kind.is_strong() {
            return Err(RequestError::WeakKey(key_kind));
        }
        let algorithm = &request.signature_algorithm.algorithm;
        let is_sha1 = [OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA].contains(algorithm);
        if is_sha1 || request.verify_signature().is_err() {
            return Err(RequestError::Signature);
        }
        Ok(Self { common_name: common_name(&info.subject), key_kind, public_key_info: info.subject_pki.raw.to_vec() })
    }

    /// Makes a request in PEM for a key; the name is what its owner would like to be called.
    pub fn make(key: &PrivateKey, common_name: &str) -> Result<String, RequestError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let request = params.serialize_request(key.pair())?;
        Ok(pem::encode_config(&pem::Pem::new(REQUEST_LABELS[0], request.der().as_ref()), crate::key::PEM_LINES))
    }

    /// The name that it asks for; only to be told.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The kind of its key.
    pub fn key_kind(&self) -> KeyKind {
        self.key_kind
    }

    /// Its public key as X.509 SubjectPublicKeyInfo in DER.
    pub fn public_key_info(&self) -> &[u8] {
        &self.public_key_info
    }
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;

    use super::*;
    use crate::{certificate::Certificate, example::key};

    const NAME: &str = "sensor.testcloud1.aitia.arrowhead.eu";

    fn der(text: &str) -> Vec<u8> {
        pem::parse(text).unwrap().into_contents()
    }

    #[test]
    fn a_request_carries_its_key_and_a_wish() {
        let text = SigningRequest::make(&key(), NAME).unwrap();
        let request = SigningRequest::read(text.as_bytes()).unwrap();
        assert_eq!((request.common_name(), request.key_kind()), (Some(NAME), KeyKind::Rsa(2048)));
        assert_eq!(request.public_key_info(), key().public_key_info());
        let by_keytool = text.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST");
        for same in [by_keytool.as_bytes(), &der(&text)] {
            assert_eq!(SigningRequest::read(same).unwrap(), request);
        }
    }

    #[test]
    fn only_the_name_of_the_profile_gets_into_the_certificate() {
        let request =
            SigningRequest::read(SigningRequest::make(&key(), "sysop.testcloud1.aitia.arrowhead.eu").unwrap().as_bytes()).unwrap();
        let certificate: Certificate = crate::example::cloud().certify(&crate::example::profile(), request.public_key_info()).unwrap();
        assert_eq!(certificate.common_name(), Some(NAME));
        assert!(!certificate.alternative_names().iter().any(|name| name.contains("sysop")));
    }

    #[test]
    fn who_has_not_the_key_gets_nothing() {
        let mut changed = der(&SigningRequest::make(&key(), NAME).unwrap());
        let at = changed.windows(6).position(|bytes| bytes == b"sensor").unwrap();
        changed[at] = b'x';
        assert!(matches!(SigningRequest::from_der(&changed), Err(RequestError::Signature)));
    }

    #[test]
    fn other_keys_and_other_things_are_refused() {
        let curve = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let strange = CertificateParams::default().serialize_request(&curve).unwrap();
        assert!(matches!(SigningRequest::from_der(strange.der()), Err(RequestError::WeakKey(KeyKind::Other))));
        assert!(matches!(SigningRequest::read(b"nothing"), Err(RequestError::Missing)));
        assert!(matches!(SigningRequest::read(&[0x30; REQUEST_BYTES_MAX + 1]), Err(RequestError::TooLarge(_))));
        let whole = der(&SigningRequest::make(&key(), NAME).unwrap());
        assert!(matches!(SigningRequest::from_der(&[whole.as_slice(), &[0]].concat()), Err(RequestError::Malformed(_))));
        for end in 0..whole.len() {
            assert!(SigningRequest::from_der(&whole[..end]).is_err(), "cut at {end}");
        }
    }
}
