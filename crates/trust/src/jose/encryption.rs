//! Compact JWE with `RSA-OAEP-256` (RFC 7518, 4.3) and `A256CBC-HS512` (RFC 7518, 5.2).

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    cipher::{AES_256, AES_CBC_IV_LEN, DecryptionContext, PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey},
    constant_time, hmac,
    iv::FixedLength,
    rand,
    rsa::OAEP_SHA256_MGF1SHA256,
};
use zeroize::Zeroizing;

use super::{OpeningKey, Refused, SealingKey, UnusableKey, header::Header};
use crate::base64;

const HEADER: &str = r#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT"}"#;
const KEY_ALGORITHM: &str = "RSA-OAEP-256";
const CONTENT_ALGORITHM: &str = "A256CBC-HS512";
const CONTENT_TYPE: &str = "JWT";

/// Bytes of the MAC's key and of the cipher's, which make up the content key in this order.
const HALF_KEY_BYTES: usize = 32;
/// Bytes of the MAC that are sent: the first half.
const TAG_BYTES: usize = 32;

type Secret = Zeroizing<[u8; 2 * HALF_KEY_BYTES]>;

/// A content key, as it is wrapped for one recipient. A sender may seal several texts with it: each has an initialization vector of its own.
pub struct ContentKey {
    secret: Secret,
    /// As it stands in the text.
    wrapped: String,
}

impl ContentKey {
    /// Draws one for a recipient.
    pub fn draw(recipient: &SealingKey) -> Result<Self, UnusableKey> {
        let secret = random_secret();
        let mut wrapped = vec![0; recipient.key.ciphertext_size()];
        let wrapped = recipient.key.encrypt(&OAEP_SHA256_MGF1SHA256, &*secret, &mut wrapped, None).map_err(|_| UnusableKey)?;
        Ok(Self { secret, wrapped: base64::encode_url_safe(wrapped) })
    }

    /// The one that was wrapped; a random one if none can be unwrapped, so that this is found out by the tag and not before.
    fn unwrap(wrapped: &str, recipient: &OpeningKey) -> Result<Self, Refused> {
        let encrypted = base64::decode_url_safe(wrapped).ok_or(Refused)?;
        if encrypted.len() != recipient.0.key_size_bytes() {
            return Err(Refused);
        }
        let mut secret = random_secret();
        let mut unwrapped = Zeroizing::new(vec![0; recipient.0.min_output_size()]);
        if let Ok(unwrapped) = recipient.0.decrypt(&OAEP_SHA256_MGF1SHA256, &encrypted, &mut unwrapped, None)
            && unwrapped.len() == secret.len()
        {
            secret.copy_from_slice(unwrapped);
        }
        Ok(Self { secret, wrapped: wrapped.to_owned() })
    }

    /// What it is known by to whoever has opened a text with it.
    pub fn wrapped(&self) -> &str {
        &self.wrapped
    }

    /// For the MAC, and for the cipher.
    fn halves(&self) -> (&[u8], &[u8]) {
        self.secret.split_at(HALF_KEY_BYTES)
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKey")
    }
}

/// Seals: `header.key.iv.ciphertext.tag`. Nobody but the recipient's key can read it; anybody can have made it.
pub fn seal(content: &[u8], recipient: &SealingKey) -> Result<String, UnusableKey> {
    Ok(seal_by(content, &ContentKey::draw(recipient)?))
}

/// The same with a content key that was drawn for the recipient.
pub fn seal_by(content: &[u8], key: &ContentKey) -> String {
    seal_under(HEADER, content, key)
}

/// Seals under any header.
pub(super) fn seal_under(header: &str, content: &[u8], key: &ContentKey) -> String {
    let (mac_key, cipher_key) = key.halves();
    let (ciphertext, iv) = encrypt(content, cipher_key);
    let header = base64::encode_url_safe(header.as_bytes());
    let tag = tag(mac_key, &header, &iv, &ciphertext);
    let [iv, ciphertext, tag] = [&iv[..], &ciphertext, &tag].map(base64::encode_url_safe);
    [header.as_str(), &key.wrapped, &iv, &ciphertext, &tag].join(".")
}

/// Gives the content of a text that was sealed for `recipient`.
pub fn open(text: &str, recipient: &OpeningKey) -> Result<Zeroizing<Vec<u8>>, Refused> {
    open_by(text, recipient, |_| None).map(|(content, _)| content)
}

/// The same; asks for a content key by what it is known by before it is unwrapped, and gives the one that the text was opened with.
pub fn open_by(
    text: &str,
    recipient: &OpeningKey,
    known: impl FnOnce(&str) -> Option<Arc<ContentKey>>,
) -> Result<(Zeroizing<Vec<u8>>, Arc<ContentKey>), Refused> {
    let parts: Vec<&str> = text.splitn(6, '.').collect();
    let [header, wrapped, iv, ciphertext, tag_shown] = parts[..] else { return Err(Refused) };
    let algorithms = Header::read(header)?;
    let is_ours = algorithms.alg == KEY_ALGORITHM
        && algorithms.enc.as_deref() == Some(CONTENT_ALGORITHM)
        && algorithms.cty.as_deref() == Some(CONTENT_TYPE);
    if !is_ours {
        return Err(Refused);
    }
    let bytes = |part: &str| base64::decode_url_safe(part).ok_or(Refused);
    let (ciphertext, tag_shown) = (bytes(ciphertext)?, bytes(tag_shown)?);
    let iv: [u8; AES_CBC_IV_LEN] = bytes(iv)?.try_into().map_err(|_| Refused)?;
    let key = known(wrapped).map_or_else(|| ContentKey::unwrap(wrapped, recipient).map(Arc::new), Ok)?;
    let (mac_key, cipher_key) = key.halves();
    constant_time::verify_slices_are_equal(&tag(mac_key, header, &iv, &ciphertext), &tag_shown).map_err(|_| Refused)?;
    let content = decrypt(ciphertext, cipher_key, iv).ok_or(Refused)?;
    Ok((content, key))
}

fn random_secret() -> Secret {
    let mut secret = Secret::new([0; 2 * HALF_KEY_BYTES]);
    rand::fill(&mut *secret).expect("the system gives random bytes");
    secret
}

/// AES-256-CBC with PKCS #7 padding; gives the ciphertext and its random initialization vector.
fn encrypt(content: &[u8], key: &[u8]) -> (Vec<u8>, [u8; AES_CBC_IV_LEN]) {
    let key = UnboundCipherKey::new(&AES_256, key).and_then(PaddedBlockEncryptingKey::cbc_pkcs7).expect("AES-256 takes 32 bytes");
    let mut content = content.to_vec();
    let context = key.encrypt(&mut content).expect("memory can be encrypted");
    let DecryptionContext::Iv128(iv) = context else { unreachable!("CBC has an initialization vector of a block") };
    (content, *iv.as_ref())
}

/// Of what the tag was right for.
fn decrypt(ciphertext: Vec<u8>, key: &[u8], iv: [u8; AES_CBC_IV_LEN]) -> Option<Zeroizing<Vec<u8>>> {
    let key = UnboundCipherKey::new(&AES_256, key).and_then(PaddedBlockDecryptingKey::cbc_pkcs7).expect("AES-256 takes 32 bytes");
    let mut content = Zeroizing::new(ciphertext);
    let length = key.decrypt(&mut content, DecryptionContext::Iv128(FixedLength::from(iv))).ok()?.len();
    content.truncate(length);
    Some(content)
}

/// HMAC-SHA-512 of header, initialization vector, ciphertext and the header's length in bits, cut in half.
fn tag(key: &[u8], header: &str, iv: &[u8], ciphertext: &[u8]) -> [u8; TAG_BYTES] {
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA512, key));
    mac.update(header.as_bytes());
    mac.update(iv);
    mac.update(ciphertext);
    mac.update(&(header.len() as u64 * 8).to_be_bytes());
    mac.sign().as_ref()[..TAG_BYTES].try_into().expect("SHA-512 has more bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeySize, PrivateKey};

    /// Whoever knows the key that stands in for one that cannot be unwrapped could seal for everybody.
    #[test]
    fn a_content_key_that_cannot_be_unwrapped_is_none_that_can_be_guessed() {
        let recipient = PrivateKey::generate(KeySize::Bits2048).unwrap();
        let recipient = OpeningKey::new(&recipient).unwrap();
        let header = base64::encode_url_safe(HEADER.as_bytes());
        for guessed in [[0; 2 * HALF_KEY_BYTES], [u8::MAX; 2 * HALF_KEY_BYTES]] {
            let (mac_key, cipher_key) = guessed.split_at(HALF_KEY_BYTES);
            let (ciphertext, iv) = encrypt(b"content", cipher_key);
            let tag = tag(mac_key, &header, &iv, &ciphertext);
            for wrapped in [[0; 256], [1; 256], [u8::MAX; 256]] {
                let [wrapped, iv, ciphertext, tag] = [&wrapped[..], &iv, &ciphertext, &tag].map(base64::encode_url_safe);
                assert_eq!(open(&format!("{header}.{wrapped}.{iv}.{ciphertext}.{tag}"), &recipient), Err(Refused));
            }
        }
    }

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u32> = hexadecimal.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
    }

    /// RFC 7518, appendix B.3.
    #[test]
    fn the_vector_of_the_standard_is_tagged_and_decrypted() {
        let key: Vec<u8> = (0..64).collect();
        let iv = bytes("1af38c2dc2b96ffdd86694092341bc04");
        let ciphertext = bytes(
            "4affaaadb78c31c5da4b1b590d10ffbd3dd8d5d302423526912da037ecbcc7bd822c301dd67c373bccb584ad3e9279c2e6d12a1374b77f077553df829410446b\
             36ebd97066296ae6427ea75c2e0846a11a09ccf5370dc80bfecbad28c73f09b3a3b75e662a2594410ae496b2e2e6609e31e6e02cc837f053d21f37ff4f51950b\
             be2638d09dd7a4930930806d0703b1f6",
        );
        let shown = tag(&key[..32], "The second principle of Auguste Kerckhoffs", &iv, &ciphertext);
        assert_eq!(shown.to_vec(), bytes("4dd3b4c088a7f45c216839645b2012bf2e6269a8c56a816dbc1b267761955bc5"));
        let content = decrypt(ciphertext, &key[32..], iv.try_into().unwrap()).unwrap();
        let expected = "A cipher system must not be required to be secret, and it must be able to fall into the hands of the enemy \
                        without inconvenience";
        assert_eq!(std::str::from_utf8(&content), Ok(expected));
    }
}
