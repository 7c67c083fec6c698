//! Private keys at rest: PKCS#8 `EncryptedPrivateKeyInfo` by PBES2 (RFC 8018): a key derived from a passphrase by PBKDF2, and
//! AES in CBC mode. We write HMAC-SHA-256 and AES-256; OpenSSL's choices are read as well.
//!
//! ```text
//! SEQUENCE { SEQUENCE { pbes2, SEQUENCE { SEQUENCE { pbkdf2, SEQUENCE { salt, iterations, [length], [prf] } },
//!                                         SEQUENCE { aes-cbc, iv } } },
//!            OCTET STRING }
//! ```

use std::num::NonZeroU32;

use aws_lc_rs::{
    cipher::{
        AES_128, AES_256, Algorithm as Cipher, DecryptionContext, PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
    },
    error::Unspecified,
    iv::FixedLength,
    pbkdf2, rand,
};
use x509_parser::asn1_rs::{Any, Error as DerError, FromDer, Oid, Tag};
use zeroize::Zeroizing;

use crate::{
    der::{INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, tlv},
    key::KeyError,
};

/// Rounds of PBKDF2 that we write: OWASP's figure for HMAC-SHA-256; some tenths of a second each time the key is opened.
const ITERATIONS: u32 = 600_000;
/// Most rounds that are read: some seconds.
const ITERATIONS_MAX: u32 = 10_000_000;
const SALT_BYTES: usize = 16;
const KEY_BYTES_MAX: usize = 32;

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
const HMAC_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x09];
const AES_256_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2a];

/// Object identifiers of the pseudo-random functions that are read; absent means the first.
const FUNCTIONS: [(&[u8], pbkdf2::Algorithm); 4] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x07], pbkdf2::PBKDF2_HMAC_SHA1),
    (HMAC_SHA256, pbkdf2::PBKDF2_HMAC_SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0a], pbkdf2::PBKDF2_HMAC_SHA384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0b], pbkdf2::PBKDF2_HMAC_SHA512),
];
/// Object identifiers of the ciphers that are read, and their keys' lengths in bytes.
const CIPHERS: [(&[u8], &Cipher, usize); 2] =
    [(&[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02], &AES_128, 16), (AES_256_CBC, &AES_256, KEY_BYTES_MAX)];

/// Encrypts a PKCS#8 key.
pub fn encrypt(pkcs8: &[u8], passphrase: &str) -> Result<Vec<u8>, KeyError> {
    let not_made = |_: Unspecified| KeyError::NotMade("the cryptographic library does not encrypt".to_owned());
    let mut salt = [0; SALT_BYTES];
    rand::fill(&mut salt).map_err(not_made)?;
    let key = derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, passphrase, KEY_BYTES_MAX);
    let mut bytes = pkcs8.to_vec();
    let cipher = UnboundCipherKey::new(&AES_256, &key).and_then(PaddedBlockEncryptingKey::cbc_pkcs7).map_err(not_made)?;
    let context = cipher.encrypt(&mut bytes).map_err(not_made)?;
    let iv: &[u8] = (&context).try_into().map_err(not_made)?;

    let function = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[HMAC_SHA256]), &tlv(NULL, &[])]);
    // Its first byte is below 0x80, or it would be a negative number.
    let iterations = tlv(INTEGER, &[&ITERATIONS.to_be_bytes()[1..]]);
    let derivation = tlv(SEQUENCE, &[&tlv(OCTET_STRING, &[&salt]), &iterations, &function]);
    let derivation = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[PBKDF2]), &derivation]);
    let encryption = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[AES_256_CBC]), &tlv(OCTET_STRING, &[iv])]);
    let parameters = tlv(SEQUENCE, &[&derivation, &encryption]);
    let algorithm = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[PBES2]), &parameters]);
    Ok(tlv(SEQUENCE, &[&algorithm, &tlv(OCTET_STRING, &[&bytes])]))
}

/// Decrypts to a PKCS#8 key, or to nonsense if the passphrase is another one.
pub fn decrypt(der: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let sealed = Sealed::read(der)?;
    let key = derive(sealed.function, sealed.iterations, sealed.salt, passphrase, sealed.key_bytes);
    let mut bytes = Zeroizing::new(sealed.bytes.to_vec());
    let iv = FixedLength::try_from(sealed.iv).map_err(|_| damaged(DerError::InvalidLength))?;
    let opened = UnboundCipherKey::new(sealed.cipher, &key)
        .and_then(PaddedBlockDecryptingKey::cbc_pkcs7)
        .and_then(|cipher| cipher.decrypt(&mut bytes, DecryptionContext::Iv128(iv)).map(|opened| opened.len()));
    bytes.truncate(opened.map_err(|_| KeyError::WrongPassphrase)?);
    Ok(bytes)
}

/// What an encrypted key says of itself.
struct Sealed<'a> {
    function: pbkdf2::Algorithm,
    iterations: u32,
    salt: &'a [u8],
    cipher: &'static Cipher,
    key_bytes: usize,
    iv: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Sealed<'a> {
    fn read(der: &'a [u8]) -> Result<Self, KeyError> {
        let (rest, whole) = any(der)?;
        if !rest.is_empty() {
            return Err(damaged(DerError::InvalidLength));
        }
        let (rest, algorithm) = any(whole.data)?;
        let (_, bytes) = octets(rest)?;
        let (scheme, parameters) = algorithm_of(algorithm.data)?;
        if scheme.as_bytes() != PBES2 {
            return Err(KeyError::Encryption(scheme.to_id_string()));
        }
        let (rest, derivation) = any(any(parameters)?.1.data)?;
        let (_, encryption) = any(rest)?;
        let (derivation, parameters) = algorithm_of(derivation.data)?;
        if derivation.as_bytes() != PBKDF2 {
            return Err(KeyError::Encryption(derivation.to_id_string()));
        }
        let (salt, iterations, function) = derivation_of(any(parameters)?.1.data)?;
        let (cipher, parameters) = algorithm_of(encryption.data)?;
        let known = CIPHERS.into_iter().find(|(known, ..)| *known == cipher.as_bytes());
        let (_, cipher, key_bytes) = known.ok_or_else(|| KeyError::Encryption(cipher.to_id_string()))?;
        Ok(Self { function, iterations, salt, cipher, key_bytes, iv: octets(parameters)?.1, bytes })
    }
}

/// Salt, rounds and function; the key's length, where it is said, is that of the cipher.
fn derivation_of(parameters: &[u8]) -> Result<(&[u8], u32, pbkdf2::Algorithm), KeyError> {
    let (rest, salt) = octets(parameters)?;
    let (mut rest, iterations) = u32::from_der(rest).map_err(nom_damaged)?;
    if !(1..=ITERATIONS_MAX).contains(&iterations) {
        return Err(KeyError::Encryption(format!("{iterations} rounds")));
    }
    if let Ok((after, _)) = u32::from_der(rest) {
        rest = after;
    }
    if rest.is_empty() {
        return Ok((salt, iterations, FUNCTIONS[0].1));
    }
    let (function, _) = algorithm_of(any(rest)?.1.data)?;
    let known = FUNCTIONS.into_iter().find(|(known, _)| *known == function.as_bytes());
    Ok((salt, iterations, known.ok_or_else(|| KeyError::Encryption(function.to_id_string()))?.1))
}

fn derive(function: pbkdf2::Algorithm, iterations: u32, salt: &[u8], passphrase: &str, bytes: usize) -> Zeroizing<Vec<u8>> {
    let mut key = Zeroizing::new(vec![0; bytes]);
    let iterations = NonZeroU32::new(iterations).expect("there is a round at least");
    pbkdf2::derive(function, iterations, salt, passphrase.as_bytes(), &mut key);
    key
}

fn any(der: &[u8]) -> Result<(&[u8], Any<'_>), KeyError> {
    Any::from_der(der).map_err(nom_damaged)
}

fn octets(der: &[u8]) -> Result<(&[u8], &[u8]), KeyError> {
    let (rest, value) = any(der)?;
    if value.tag() == Tag::OctetString { Ok((rest, value.data)) } else { Err(damaged(DerError::InvalidTag)) }
}

/// The object identifier of an algorithm, and its parameters in DER.
fn algorithm_of(content: &[u8]) -> Result<(Oid<'_>, &[u8]), KeyError> {
    let (parameters, identifier) = Oid::from_der(content).map_err(nom_damaged)?;
    Ok((identifier, parameters))
}

fn nom_damaged(error: x509_parser::nom::Err<DerError>) -> KeyError {
    KeyError::Damaged(error.to_string())
}

fn damaged(error: DerError) -> KeyError {
    KeyError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With few rounds, so that a test may open it often.
    fn sealed(scheme: &[u8], rounds: u8, function: Option<&[u8]>, cipher: &[u8]) -> Vec<u8> {
        let function = function.map(|function| tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[function]), &tlv(NULL, &[])])).unwrap_or_default();
        let derivation = tlv(SEQUENCE, &[&tlv(OCTET_STRING, &[&[1; 8]]), &tlv(INTEGER, &[&[rounds]]), &function]);
        let derivation = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[PBKDF2]), &derivation]);
        let encryption = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[cipher]), &tlv(OCTET_STRING, &[&[2; 16]])]);
        let algorithm = tlv(SEQUENCE, &[&tlv(OBJECT_IDENTIFIER, &[scheme]), &tlv(SEQUENCE, &[&derivation, &encryption])]);
        tlv(SEQUENCE, &[&algorithm, &tlv(OCTET_STRING, &[&[3; 32]])])
    }

    #[test]
    fn what_is_read_is_what_it_says() {
        let read = |der: &[u8]| Sealed::read(der).map(|sealed| (sealed.iterations, sealed.key_bytes, sealed.bytes.len()));
        assert_eq!(read(&sealed(PBES2, 7, Some(HMAC_SHA256), AES_256_CBC)).unwrap(), (7, 32, 32));
        assert_eq!(read(&sealed(PBES2, 7, None, CIPHERS[0].0)).unwrap(), (7, 16, 32));
        for unread in [
            sealed(PBKDF2, 7, Some(HMAC_SHA256), AES_256_CBC),
            sealed(PBES2, 0, Some(HMAC_SHA256), AES_256_CBC),
            sealed(PBES2, 7, Some(PBES2), AES_256_CBC),
            sealed(PBES2, 7, Some(HMAC_SHA256), PBES2),
        ] {
            assert!(matches!(read(&unread), Err(KeyError::Encryption(_))), "{unread:02x?}");
        }
    }

    #[test]
    fn no_cut_and_no_changed_byte_stops_the_process() {
        let whole = sealed(PBES2, 7, Some(HMAC_SHA256), AES_256_CBC);
        for end in 0..whole.len() {
            assert!(Sealed::read(&whole[..end]).is_err(), "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            if Sealed::read(&changed).is_ok_and(|sealed| sealed.iterations < 1000) {
                let _ = decrypt(&changed, "x");
            }
        }
    }
}
