//! PKCS#12 key stores and trust stores (RFC 7292): how Arrowhead's systems, Java and browsers keep certificates and keys.
//!
//! Read are the modern encryption (PBES2) and the legacy one of Arrowhead's own key stores (3DES, RC2-40, MAC by SHA-1); written is
//! the modern one. A key finds its certificate by the public key, whatever names and numbers the store has given them.

use p12_keystore::{
    EncryptionAlgorithm, KeyStore, KeyStoreEntry, MacAlgorithm, Pkcs12Archive, PrivateKeyChain, error::Error as LibraryError,
};
use x509_parser::asn1_rs::{Any, FromDer, Tag};
use zeroize::Zeroizing;

use crate::{
    certificate::{CERTIFICATES_MAX, Certificate, CertificateError},
    der::{SEQUENCE, tlv},
    identity::{Identity, IdentityError},
    key::{KeyError, PrivateKey},
};

/// Rounds of key derivation that we write, for content and MAC alike: some tens of milliseconds each.
const ITERATIONS: u32 = 100_000;
/// Shortest password that we write with: that of Java's keytool.
pub const PASSWORD_CHARACTERS_MIN: usize = 6;
/// The version of every PKCS#12 file.
const VERSION: &[u8] = &[3];
/// First bytes of BER that does not say its length: an indefinite sequence, then the version.
const INDEFINITE: &[u8] = &[0x30, 0x80, 0x02, 0x01, 0x03];

/// Why a key store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// It is something else.
    #[error("this is no PKCS#12 key store")]
    Foreign,
    /// Its encoding is BER without lengths.
    #[error("this key store is in BER without lengths, which is not read; openssl pkcs12 reads and rewrites it")]
    Indefinite,
    /// Bytes are missing or too many.
    #[error("this key store is damaged: it says that it has {said} bytes, and {found} are there")]
    Length {
        /// By its own header.
        said: usize,
        /// In fact.
        found: usize,
    },
    /// The password opens nothing.
    #[error("the password does not open the key store: it is another one, or the file is damaged where it is encrypted")]
    WrongPassword,
    /// The password opens it, but something was changed.
    #[error("this key store is damaged: {0}")]
    Damaged(String),
    /// It is encrypted or checked in a way that we do not read.
    #[error("this key store is protected in a way that is not read ({0}); PBES2, 3DES or RC2-40 with a MAC by SHA is expected")]
    Unsupported(String),
    /// It has none, or several.
    #[error("there are {0} private keys in this key store, where one is expected")]
    Keys(usize),
    /// There is no certificate for the key.
    #[error("no certificate in this key store belongs to its private key")]
    NoCertificate,
    /// It holds a key.
    #[error("there is a private key in it: this is a key store, not a trust store")]
    NotTrust,
    /// It is too short to be written with.
    #[error("the password has {0} characters; {PASSWORD_CHARACTERS_MIN} at least are expected, or Java's keytool does not take it")]
    ShortPassword(usize),
    /// Java cannot open a key store with it.
    #[error(
        "the password has a character that is not ASCII, and Java does not open such a key store; use letters, digits and signs of ASCII"
    )]
    ForeignPassword,
    /// A certificate in it is none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The key in it cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Key and certificate do not fit.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The library has refused to write.
    #[error("the key store could not be made: {0}")]
    NotMade(LibraryError),
}

/// Whether bytes are meant to be a key store, damaged or not.
pub fn is_key_store(bytes: &[u8]) -> bool {
    bytes.starts_with(INDEFINITE) || outline(bytes).is_some()
}

/// Everything in a key store, in its order.
#[derive(Debug)]
pub struct Contents {
    /// The private keys.
    pub keys: Vec<PrivateKey>,
    /// The certificates, of keys and of others.
    pub certificates: Vec<Certificate>,
}

/// Opens a key store.
pub fn read(der: &[u8], password: &str) -> Result<Contents, KeyStoreError> {
    let archive = open(der, password)?;
    if archive.certs.len() > CERTIFICATES_MAX {
        return Err(CertificateError::TooMany.into());
    }
    Ok(Contents {
        keys: archive.keys.iter().map(|bag| PrivateKey::from_pkcs8(bag.key.as_der())).collect::<Result<_, _>>()?,
        certificates: archive.certs.iter().map(|bag| Certificate::from_der(bag.cert.as_der())).collect::<Result<_, _>>()?,
    })
}

/// Opens a key store of one key, and puts the key's chain in order.
pub fn read_identity(der: &[u8], password: &str) -> Result<Identity, KeyStoreError> {
    let Contents { keys, certificates } = read(der, password)?;
    let [key] = <[PrivateKey; 1]>::try_from(keys).map_err(|keys| KeyStoreError::Keys(keys.len()))?;
    let info = key.public_key_info();
    let own = certificates.iter().find(|certificate| certificate.public_key_info() == info).ok_or(KeyStoreError::NoCertificate)?;
    Ok(Identity::new(chain(own.clone(), &certificates), key)?)
}

/// Opens a trust store: certificates without a key.
pub fn read_anchors(der: &[u8], password: &str) -> Result<Vec<Certificate>, KeyStoreError> {
    let contents = read(der, password)?;
    match (contents.keys.is_empty(), contents.certificates.is_empty()) {
        (false, _) => Err(KeyStoreError::NotTrust),
        (true, true) => Err(CertificateError::Missing.into()),
        (true, false) => Ok(contents.certificates),
    }
}

/// Whether a password is long enough to write with.
pub fn check_password(password: &str) -> Result<(), KeyStoreError> {
    match password.chars().count() {
        characters @ ..PASSWORD_CHARACTERS_MIN => Err(KeyStoreError::ShortPassword(characters)),
        _ if !password.is_ascii() => Err(KeyStoreError::ForeignPassword),
        _ => Ok(()),
    }
}

/// A key store of one key with its chain, under the alias by which its system is called.
pub fn write_identity(identity: &Identity, alias: &str, password: &str) -> Result<Zeroizing<Vec<u8>>, KeyStoreError> {
    let key = p12_keystore::PrivateKey::from_der(identity.key().pkcs8()).map_err(KeyStoreError::NotMade)?;
    let chain = identity.chain().iter().map(bag).collect::<Result<Vec<_>, _>>()?;
    let fingerprint = identity.certificate().fingerprint();
    let entry = KeyStoreEntry::PrivateKeyChain(PrivateKeyChain::new(fingerprint.0.as_slice(), key, chain));
    write([(alias.to_owned(), entry)], password).map(Zeroizing::new)
}

/// A trust store; each certificate's alias is its common name.
pub fn write_anchors(anchors: &[Certificate], password: &str) -> Result<Vec<u8>, KeyStoreError> {
    let entries = anchors.iter().map(|anchor| Ok((anchor.told_name().to_owned(), KeyStoreEntry::Certificate(bag(anchor)?))));
    write(entries.collect::<Result<Vec<_>, KeyStoreError>>()?, password)
}

fn write(entries: impl IntoIterator<Item = (String, KeyStoreEntry)>, password: &str) -> Result<Vec<u8>, KeyStoreError> {
    check_password(password)?;
    let mut store = KeyStore::new();
    for (alias, entry) in entries {
        store.add_entry(&alias, entry);
    }
    let writer = store.writer(password).encryption_algorithm(EncryptionAlgorithm::PbeWithHmacSha256AndAes256);
    let writer = writer.encryption_iterations(ITERATIONS).mac_algorithm(MacAlgorithm::HmacSha256).mac_iterations(ITERATIONS);
    writer.write().map_err(KeyStoreError::NotMade)
}

fn bag(certificate: &Certificate) -> Result<p12_keystore::Certificate, KeyStoreError> {
    p12_keystore::Certificate::from_der(certificate.der()).map_err(KeyStoreError::NotMade)
}

/// The certificate, its issuer, and so on as far as there are any.
fn chain(own: Certificate, others: &[Certificate]) -> Vec<Certificate> {
    let mut chain = vec![own];
    loop {
        let last = chain.last().expect("the own certificate is there");
        let candidates = others.iter().filter(|other| last.issuer_encoded() == other.subject_encoded() && !chain.contains(other));
        // Two authorities of one name, after its key was changed: that which has signed. The name alone does for signatures that we cannot verify.
        match candidates.max_by_key(|candidate| last.is_issued_by(candidate)) {
            Some(issuer) if !last.is_self_issued() => chain.push(issuer.clone()),
            _ => return chain,
        }
    }
}

fn open(der: &[u8], password: &str) -> Result<Pkcs12Archive, KeyStoreError> {
    if der.starts_with(INDEFINITE) {
        return Err(KeyStoreError::Indefinite);
    }
    let outline = outline(der).ok_or(KeyStoreError::Foreign)?;
    if outline.said != der.len() {
        return Err(KeyStoreError::Length { said: outline.said, found: der.len() });
    }
    let error = match Pkcs12Archive::from_pkcs12(der, password) {
        Ok(archive) => return Ok(archive),
        Err(error) => error,
    };
    match error {
        // The same content without its MAC: what the password opens was encrypted with it.
        LibraryError::MacError(_) => match without_mac(outline.content).map(|bare| Pkcs12Archive::from_pkcs12(&bare, password)) {
            Some(Ok(_)) => Err(KeyStoreError::Damaged("what is in it is not what its MAC was made of".to_owned())),
            _ => Err(KeyStoreError::WrongPassword),
        },
        LibraryError::UnpadError | LibraryError::Pkcs5Error(_) => Err(KeyStoreError::WrongPassword),
        LibraryError::UnsupportedEncryptionScheme
        | LibraryError::UnsupportedMacAlgorithm
        | LibraryError::UnsupportedContentType
        | LibraryError::UnsupportedCertificateType
        | LibraryError::InvalidParameters => Err(KeyStoreError::Unsupported(error.to_string())),
        other => Err(KeyStoreError::Damaged(other.to_string())),
    }
}

/// What the first bytes of a key store say.
struct Outline<'a> {
    /// How many bytes it has.
    said: usize,
    /// What follows its header; cut short if bytes are missing.
    content: &'a [u8],
}

fn outline(bytes: &[u8]) -> Option<Outline<'_>> {
    let (header_bytes, content_bytes) = match bytes {
        [0x30, length @ 0..=0x7f, ..] => (2, usize::from(*length)),
        [0x30, count @ 0x81..=0x84, rest @ ..] => {
            let digits = rest.get(..usize::from(count & 0x7f))?;
            (2 + digits.len(), digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))
        }
        _ => return None,
    };
    let content = bytes.get(header_bytes..)?;
    let (_, version) = Any::from_der(content).ok()?;
    let is_version = version.tag() == Tag::Integer && version.data == VERSION;
    is_version.then_some(Outline { said: header_bytes + content_bytes, content })
}

/// The key store without its third part.
fn without_mac(content: &[u8]) -> Option<Vec<u8>> {
    let (rest, _) = Any::from_der(content).ok()?;
    let (mac, _) = Any::from_der(rest).ok()?;
    let kept = &content[..content.len() - mac.len()];
    Some(tlv(SEQUENCE, &[kept]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{cloud, key, root, sensor};

    const PASSWORD: &str = "pass-word 6";

    fn written() -> Vec<u8> {
        write_identity(&sensor(), "sensor", PASSWORD).unwrap().to_vec()
    }

    /// A key store of the same content in another protection, its certificates in another order.
    fn protected_by(encryption: EncryptionAlgorithm, mac: MacAlgorithm) -> Vec<u8> {
        let identity = sensor();
        let key = p12_keystore::PrivateKey::from_der(identity.key().pkcs8()).unwrap();
        let chain = [2, 0, 1].map(|place| bag(&identity.chain()[place]).unwrap());
        let mut store = KeyStore::new();
        store.add_entry("sensor", KeyStoreEntry::PrivateKeyChain(PrivateKeyChain::new("id", key, chain)));
        store
            .writer(PASSWORD)
            .encryption_algorithm(encryption)
            .encryption_iterations(100)
            .mac_algorithm(mac)
            .mac_iterations(100)
            .write()
            .unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_whole() {
        let identity = sensor();
        let read = read_identity(&write_identity(&identity, "sensor", PASSWORD).unwrap(), PASSWORD).unwrap();
        assert_eq!((read.chain(), read.key().pkcs8()), (identity.chain(), identity.key().pkcs8()));
    }

    /// The chain whose first certificate is that of `identity`: each call of [`sensor`] issues another one.
    fn sensor_like(identity: &Identity) -> Vec<Certificate> {
        cloud().chain_of(identity.certificate().clone())
    }

    #[test]
    fn legacy_key_stores_are_read_and_their_chains_put_in_order() {
        for encryption in [EncryptionAlgorithm::PbeWithShaAnd3KeyTripleDesCbc, EncryptionAlgorithm::PbeWithShaAnd40BitRc4Cbc] {
            for mac in [MacAlgorithm::HmacSha1, MacAlgorithm::HmacSha256] {
                let read = read_identity(&protected_by(encryption, mac), PASSWORD).unwrap();
                assert_eq!(read.chain(), sensor_like(&read), "{encryption:?} {mac:?}");
            }
        }
    }

    #[test]
    fn of_two_authorities_of_one_name_the_issuer_is_in_the_chain() {
        let namesake = root().issue_cloud(&crate::example::cloud_name(), crate::example::now(), crate::example::DAY).unwrap();
        let (own, issuer, root) = (sensor().certificate().clone(), cloud().certificate(), root().certificate());
        for others in [[namesake.certificate(), issuer], [issuer, namesake.certificate()]] {
            let pool: Vec<_> = [root].into_iter().chain(others).cloned().collect();
            assert_eq!(chain(own.clone(), &pool), [own.clone(), issuer.clone(), root.clone()]);
        }
    }

    #[test]
    fn a_trust_store_is_no_key_store_and_the_other_way_round() {
        let anchors = [cloud().certificate().clone(), root().certificate().clone()];
        let written_anchors = write_anchors(&anchors, PASSWORD).unwrap();
        let mut read = read_anchors(&written_anchors, PASSWORD).unwrap();
        read.sort_by_key(|anchor| anchor.fingerprint() != anchors[0].fingerprint());
        assert_eq!(read, anchors);
        assert!(matches!(read_identity(&written_anchors, PASSWORD), Err(KeyStoreError::Keys(0))));
        assert!(matches!(read_anchors(&written(), PASSWORD), Err(KeyStoreError::NotTrust)));
    }

    #[test]
    fn each_mistake_has_its_own_words() {
        let whole = written();
        assert!(matches!(read_identity(&whole, "pass-word 7"), Err(KeyStoreError::WrongPassword)));
        let cut = &whole[..whole.len() - 100];
        let error = read_identity(cut, PASSWORD).unwrap_err();
        assert!(matches!(error, KeyStoreError::Length { said, found } if said == whole.len() && found == cut.len()), "{error}");
        let longer = [whole.as_slice(), b"\n"].concat();
        assert!(matches!(read_identity(&longer, PASSWORD), Err(KeyStoreError::Length { .. })));
        for foreign in [b"".as_slice(), b"-----BEGIN CERTIFICATE-----", sensor().certificate().der().as_ref(), key().pkcs8()] {
            assert!(!is_key_store(foreign));
            assert!(matches!(read_identity(foreign, PASSWORD), Err(KeyStoreError::Foreign)));
        }
        let indefinite = [INDEFINITE, &[0; 20]].concat();
        assert!(is_key_store(&indefinite) && matches!(read_identity(&indefinite, PASSWORD), Err(KeyStoreError::Indefinite)));
        assert!(matches!(write_identity(&sensor(), "sensor", "12345"), Err(KeyStoreError::ShortPassword(5))));
        assert!(matches!(write_identity(&sensor(), "sensor", "p\u{e4}ssw\u{f6}rt"), Err(KeyStoreError::ForeignPassword)));
    }

    #[test]
    fn a_changed_mac_is_damage_and_not_a_wrong_password() {
        let mut changed = written();
        // The MAC stands at the end: its digest, an 8-byte salt in an octet string, and the rounds.
        let rounds = changed.windows(5).rposition(|bytes| bytes == [0x02, 0x03, 0x01, 0x86, 0xa0]).unwrap();
        changed[rounds - 12] ^= 1;
        let error = read_identity(&changed, PASSWORD).unwrap_err();
        assert!(matches!(error, KeyStoreError::Damaged(_)), "{error}");
        assert!(matches!(read_identity(&changed, "pass-word 7"), Err(KeyStoreError::WrongPassword)));
    }

    #[test]
    fn no_cut_and_no_changed_byte_stops_the_process() {
        let whole = protected_by(EncryptionAlgorithm::PbeWithShaAnd40BitRc4Cbc, MacAlgorithm::HmacSha1);
        for end in (0..whole.len()).step_by(7) {
            assert!(read(&whole[..end], PASSWORD).is_err(), "cut at {end}");
        }
        for at in (0..whole.len()).step_by(5) {
            let mut changed = whole.clone();
            changed[at] ^= 0x41;
            assert!(read(&changed, PASSWORD).is_err(), "changed at {at}");
        }
    }
}
