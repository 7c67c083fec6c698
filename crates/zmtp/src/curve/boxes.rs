//! NaCl's boxes, in place: a tag of 16 octets, then the text.
//!
//! A box is a secret box (XSalsa20, Poly1305) whose key two parties share: the point that either finds by its own secret key and the other's
//! public key (X25519), made even by HSalsa20.

use crypto_secretbox::aead::generic_array::GenericArray;
use crypto_secretbox::{AeadInPlace, Kdf, KeyInit, XSalsa20Poly1305};
use curve25519_dalek::MontgomeryPoint;
use zeroize::Zeroize;

use super::keys::{PublicKey, SecretKey};

pub const TAG_BYTES: usize = 16;
pub const NONCE_BYTES: usize = 24;

pub type Nonce = [u8; NONCE_BYTES];

/// A key that seals and opens; overwritten when it is dropped.
pub type BoxKey = XSalsa20Poly1305;

/// The key that the owner of `secret` shares with that of `public`.
pub fn shared(public: &PublicKey, secret: &SecretKey) -> BoxKey {
    let mut point = MontgomeryPoint(*public.as_bytes()).mul_clamped(*secret.as_bytes());
    let mut key = BoxKey::kdf(&point.0.into(), &GenericArray::default());
    let shared = BoxKey::new(&key);
    point.0.zeroize();
    key.as_mut_slice().zeroize();
    shared
}

/// A key that is nobody else's.
pub fn own(key: &[u8; 32]) -> BoxKey {
    BoxKey::new(key.into())
}

/// Seals the text behind the first 16 octets, which become its tag.
pub fn seal(key: &BoxKey, nonce: &Nonce, sealed: &mut [u8]) {
    let (place, text) = sealed.split_at_mut(TAG_BYTES);
    let tag = key.encrypt_in_place_detached(nonce.into(), &[], text).expect("a text that fits in memory");
    place.copy_from_slice(&tag);
}

/// Opens a sealed text, where it stands: the text is behind the tag then. Nothing, if it was sealed with another key, or changed.
pub fn open<'b>(key: &BoxKey, nonce: &Nonce, sealed: &'b mut [u8]) -> Option<&'b mut [u8]> {
    let (tag, text) = sealed.split_at_mut_checked(TAG_BYTES)?;
    let tag: &[u8; TAG_BYTES] = (&*tag).try_into().expect("a tag's length");
    key.decrypt_in_place_detached(nonce.into(), &[], text, tag.into()).ok()?;
    Some(text)
}

/// A nonce that counts: 16 octets that say what for, and a number, big endian.
pub fn counted(prefix: &[u8; 16], number: u64) -> Nonce {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..16].copy_from_slice(prefix);
    nonce[16..].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// A nonce that was drawn: 8 octets that say what for, and 16 that nobody had before.
pub fn drawn(prefix: &[u8; 8], octets: &[u8; 16]) -> Nonce {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(prefix);
    nonce[8..].copy_from_slice(octets);
    nonce
}
