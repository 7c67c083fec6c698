//! Curve25519 keys, and how people write them.

use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use curve25519_dalek::MontgomeryPoint;
use zeroize::{Zeroize, Zeroizing};

use super::z85;

/// Length of a key.
const KEY_BYTES: usize = 32;

/// The points of small order on Curve25519 and its twist: u-coordinates, little endian, also those not reduced. All secret keys share the
/// same, known key with them, so that a box proves nothing.
const WEAK_KEYS: [[u8; KEY_BYTES]; 7] = [
    [0; KEY_BYTES],
    little_endian(1, 0, 0),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
        0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c,
        0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
    ],
    little_endian(0xec, 0xff, 0x7f),
    little_endian(0xed, 0xff, 0x7f),
    little_endian(0xee, 0xff, 0x7f),
];

/// First octet, those between, last octet.
const fn little_endian(first: u8, between: u8, last: u8) -> [u8; KEY_BYTES] {
    let mut bytes = [between; KEY_BYTES];
    bytes[0] = first;
    bytes[KEY_BYTES - 1] = last;
    bytes
}

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a CURVE key of 40 characters of Z85, as `zmq_curve_keypair` makes them")]
pub struct KeyError;

/// A public key. It is written in Z85 (RFC 32), 40 characters, as libzmq writes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The key of these octets.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its octets.
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Whether anybody could open what is sealed for it. The highest bit of a key is not looked at (RFC 7748, section 5).
    pub(super) fn is_weak(&self) -> bool {
        let mut bytes = self.0;
        bytes[KEY_BYTES - 1] &= 0x7f;
        WEAK_KEYS.contains(&bytes)
    }
}

impl Debug for PublicKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl Display for PublicKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&z85::encode(self.as_bytes())).expect("Z85 is ASCII"))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        z85::decode(text.as_bytes()).map(Self::from_bytes).ok_or(KeyError)
    }
}

/// A secret key. It is overwritten when it is dropped, and never printed.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; KEY_BYTES]>);

impl SecretKey {
    /// The key of these octets, which the caller drew so that nobody can guess them; they are overwritten.
    pub fn from_bytes(bytes: &mut [u8; KEY_BYTES]) -> Self {
        let key = Self(Zeroizing::new(*bytes));
        bytes.zeroize();
        key
    }

    /// The key that others know.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(MontgomeryPoint::mul_base_clamped(*self.0).0)
    }

    pub(super) fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Its text, in Z85.
    pub fn to_z85(&self) -> Zeroizing<String> {
        let text = Zeroizing::new(z85::encode(&self.0));
        Zeroizing::new(std::str::from_utf8(&*text).expect("Z85 is ASCII").to_owned())
    }
}

impl Debug for SecretKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        z85::decode(text.as_bytes()).map(|mut bytes| Self::from_bytes(&mut bytes)).ok_or(KeyError)
    }
}

/// A secret key and its public key.
#[derive(Clone, Debug)]
pub struct KeyPair {
    pub(super) public: PublicKey,
    pub(super) secret: SecretKey,
}

impl KeyPair {
    /// The pair of this secret key.
    pub fn new(secret: SecretKey) -> Self {
        Self { public: secret.public_key(), secret }
    }

    /// The key that others know.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The key that nobody else knows.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::curve::boxes;

    #[test]
    fn a_key_is_written_and_read_in_z85() {
        // Keys of the manual page zmq_curve(7).
        let public = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
        let secret = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";
        let key: SecretKey = secret.parse().expect("a key");
        assert_eq!(key.public_key().to_string(), public);
        assert_eq!(key.to_z85().as_str(), secret);
        assert_eq!(public.parse().as_ref(), Ok(&key.public_key()));
        assert_eq!(format!("{key:?}"), "SecretKey(..)");
        let mut octets = [5; KEY_BYTES];
        SecretKey::from_bytes(&mut octets);
        assert_eq!(octets, [0; KEY_BYTES]);
        for wrong in ["", &public[1..], &format!("{public}0"), &public.replace('Y', "\""), &public.replace('Y', "é"), &"#".repeat(40)] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(KeyError), "{wrong}");
        }
    }

    /// Why they are refused: whoever has whatever secret key opens the box.
    #[test]
    fn with_a_weak_key_every_secret_key_opens_the_box() {
        let different_keys = |public: &PublicKey| {
            let sealed = |octet| {
                let mut sealed = [7; 40];
                let secret = SecretKey::from_bytes(&mut [octet; KEY_BYTES]);
                boxes::seal(&boxes::shared(public, &secret), &[0; 24], &mut sealed);
                sealed
            };
            (1..=64).map(sealed).collect::<BTreeSet<_>>().len()
        };
        for mut bytes in WEAK_KEYS {
            for high_bit in [0, 0x80] {
                bytes[KEY_BYTES - 1] |= high_bit;
                let weak = PublicKey::from_bytes(bytes);
                assert!(different_keys(&weak) == 1 && weak.is_weak(), "{bytes:02x?}");
            }
        }
        let strong = SecretKey::from_bytes(&mut [1; KEY_BYTES]).public_key();
        assert!(different_keys(&strong) == 64 && !strong.is_weak());
    }
}
