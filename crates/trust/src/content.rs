//! What is in a file of certificates, keys, requests or revocation lists, whichever form it has: to be looked at, not to be believed.

use zeroize::Zeroizing;

use crate::{
    certificate::{Certificate, CertificateError},
    der,
    key::{ENCRYPTED_LABEL, KeyError, PrivateKey},
    keystore::{self, KeyStoreError},
    request::{REQUEST_LABELS, RequestError, SigningRequest},
    revocation::{RevocationError, RevocationList},
};

/// Why a content cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// Nothing that is known here.
    #[error("neither PEM sections nor a certificate, request, revocation list or key store in DER is in it")]
    Unknown,
    /// The PEM text is broken.
    #[error("the PEM text is damaged: {0}")]
    Damaged(#[from] pem::PemError),
    /// There is no password for a key store.
    #[error("this is a key store: give its password")]
    PasswordNeeded,
    /// A certificate is none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A request is none, or none that is granted.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A revocation list is none.
    #[error(transparent)]
    Revocation(#[from] RevocationError),
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key store cannot be opened.
    #[error(transparent)]
    KeyStore(#[from] KeyStoreError),
}

/// The form of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text sections.
    Pem,
    /// One thing in DER.
    Der,
    /// A PKCS#12 key store or trust store.
    KeyStore,
}

impl Form {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pem => "PEM",
            Self::Der => "DER",
            Self::KeyStore => "PKCS#12",
        }
    }
}

/// One thing of a content.
#[derive(Debug)]
pub enum Item {
    /// A certificate.
    Certificate(Box<Certificate>),
    /// A certificate signing request.
    Request(SigningRequest),
    /// A revocation list.
    RevocationList(RevocationList),
    /// A private key.
    Key(PrivateKey),
    /// A private key that is encrypted, and there is no password for it.
    EncryptedKey,
}

/// Reads all of a content.
pub fn read(content: &[u8], password: Option<&str>) -> Result<(Form, Vec<Item>), ContentError> {
    if keystore::is_key_store(content) {
        let contents = keystore::read(content, password.ok_or(ContentError::PasswordNeeded)?)?;
        let keys = contents.keys.into_iter().map(Item::Key);
        return Ok((Form::KeyStore, keys.chain(contents.certificates.into_iter().map(certificate)).collect()));
    }
    if content.first() == Some(&der::SEQUENCE) {
        return Ok((Form::Der, vec![read_der(content)?]));
    }
    let sections = pem::parse_many(content)?;
    let items = sections.iter().filter_map(|section| read_section(section, password).transpose()).collect::<Result<Vec<_>, _>>()?;
    if items.is_empty() { Err(ContentError::Unknown) } else { Ok((Form::Pem, items)) }
}

fn read_der(content: &[u8]) -> Result<Item, ContentError> {
    if let Ok(read) = Certificate::from_der(content) {
        return Ok(certificate(read));
    }
    if let Ok(list) = RevocationList::from_der(content) {
        return Ok(Item::RevocationList(list));
    }
    match SigningRequest::from_der(content) {
        Ok(request) => Ok(Item::Request(request)),
        Err(RequestError::Malformed(_)) => Err(ContentError::Unknown),
        Err(error) => Err(error.into()),
    }
}

/// Sections of other kinds are passed over.
fn read_section(section: &pem::Pem, password: Option<&str>) -> Result<Option<Item>, ContentError> {
    let content = section.contents();
    Ok(Some(match section.tag() {
        "CERTIFICATE" => certificate(Certificate::from_der(content)?),
        "X509 CRL" => Item::RevocationList(RevocationList::from_der(content)?),
        label if REQUEST_LABELS.contains(&label) => Item::Request(SigningRequest::from_der(content)?),
        ENCRYPTED_LABEL if password.is_none() => Item::EncryptedKey,
        label if label.ends_with("PRIVATE KEY") => {
            let text = Zeroizing::new(pem::encode(section));
            Item::Key(PrivateKey::from_pem_with(text.as_bytes(), password)?)
        }
        _ => return Ok(None),
    }))
}

fn certificate(certificate: Certificate) -> Item {
    Item::Certificate(Box::new(certificate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DAY, cloud, key, now, sensor};

    fn kinds(content: &[u8], password: Option<&str>) -> (Form, String) {
        let (form, items) = read(content, password).unwrap();
        let letter = |item: &Item| match item {
            Item::Certificate(_) => 'c',
            Item::Request(_) => 'r',
            Item::RevocationList(_) => 'l',
            Item::Key(_) => 'k',
            Item::EncryptedKey => 'e',
        };
        (form, items.iter().map(letter).collect())
    }

    #[test]
    fn everything_is_recognised_in_every_form() {
        let identity = sensor();
        let request = SigningRequest::make(&key(), "sensor").unwrap();
        let list = cloud().revocation_list(&[], now(), now().plus(DAY)).unwrap();
        let sealed = key().to_encrypted_pem("pass-word").unwrap();
        let all = [identity.chain_to_pem(), request.clone(), list.clone(), key().to_pem().to_string(), sealed.to_string()].concat();
        assert_eq!(kinds(all.as_bytes(), None), (Form::Pem, "cccrlke".to_owned()));
        assert_eq!(kinds(all.as_bytes(), Some("pass-word")), (Form::Pem, "cccrlkk".to_owned()));
        for (text, letter) in [(identity.certificate().to_pem(), "c"), (request, "r"), (list, "l")] {
            let der = pem::parse(text).unwrap().into_contents();
            assert_eq!(kinds(&der, None), (Form::Der, letter.to_owned()));
        }
        let store = keystore::write_identity(&identity, "sensor", "pass-word").unwrap();
        assert_eq!(kinds(&store, Some("pass-word")), (Form::KeyStore, "kccc".to_owned()));
        assert!(matches!(read(&store, None), Err(ContentError::PasswordNeeded)));
    }

    #[test]
    fn what_is_nothing_is_told() {
        for content in ["", "nothing", "0 begins like DER", "-----BEGIN NOTES-----\nAAAA\n-----END NOTES-----\n"] {
            assert!(matches!(read(content.as_bytes(), None), Err(ContentError::Unknown)), "{content}");
        }
    }
}
