//! Keys of NATS (nkeys): Ed25519 keys in Base32, by which a server knows a user without having anything secret of it.

use aws_lc_rs::{
    encoding::{AsBigEndian, Curve25519SeedBin},
    signature::{Ed25519KeyPair, KeyPair},
};
use zeroize::Zeroizing;

/// In front of a seed: five bits that say so.
const SEED: u8 = 18 << 3;
/// In front of a user's public key.
const USER: u8 = 20 << 3;
/// Bytes of a key.
const KEY_BYTES: usize = 32;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Why a text is no seed of a user's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NkeyError {
    /// Not Base32, or not as long as a seed.
    #[error("it is no seed: 58 letters and digits that begin with SU are expected, as `nk -gen user` makes them")]
    Form,
    /// It is another kind of key.
    #[error("it is no user's seed, which begins with SU")]
    Kind,
    /// Its check sum is another one.
    #[error("its check sum is wrong: a letter was changed")]
    Sum,
    /// The library does not take it.
    #[error("it is no Ed25519 key")]
    Key,
}

/// A user's key. Shown without the secret.
pub struct Nkey {
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for Nkey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nkey({})", self.public_key())
    }
}

impl Nkey {
    /// Of a seed in text, `SU...`.
    ///
    /// # Errors
    /// It is none.
    pub fn of_seed(text: &str) -> Result<Self, NkeyError> {
        let bytes = Zeroizing::new(decode(text.trim()).ok_or(NkeyError::Form)?);
        let (body, sum) = bytes.split_last_chunk::<2>().ok_or(NkeyError::Form)?;
        let [first, second, seed @ ..] = body else { return Err(NkeyError::Form) };
        if seed.len() != KEY_BYTES {
            return Err(NkeyError::Form);
        }
        if u16::from_le_bytes(*sum) != check_sum(body) {
            return Err(NkeyError::Sum);
        }
        // The kind of key is across both bytes.
        let kind = (first & 0b111) << 5 | (second & 0b1111_1000) >> 3;
        if first & 0b1111_1000 != SEED || kind != USER {
            return Err(NkeyError::Kind);
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| NkeyError::Key)?;
        Ok(Self { pair })
    }

    /// A key that nobody has.
    pub fn draw() -> Self {
        Self { pair: Ed25519KeyPair::generate().expect("the system gives random bytes") }
    }

    /// Its seed in text, `SU...`: the secret.
    pub fn seed(&self) -> Zeroizing<String> {
        let seed = self.pair.seed().expect("it was made here, or of a seed");
        let bytes: Curve25519SeedBin<'_> = seed.as_be_bytes().expect("a seed is bytes");
        Zeroizing::new(text_of_seed(USER, bytes.as_ref()))
    }

    /// The public key in text, `U...`: what the server has to know.
    pub fn public_key(&self) -> String {
        let mut bytes = vec![USER];
        bytes.extend_from_slice(self.pair.public_key().as_ref());
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        encode(&bytes)
    }

    /// The signature of what a server has drawn: 64 bytes.
    pub fn sign(&self, nonce: &[u8]) -> Vec<u8> {
        self.pair.sign(nonce).as_ref().to_vec()
    }
}

/// A seed in text, of a key of this kind.
fn text_of_seed(kind: u8, key: &[u8]) -> String {
    let mut bytes = vec![SEED | kind >> 5, (kind & 31) << 3];
    bytes.extend_from_slice(key);
    let sum = check_sum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    encode(&bytes)
}

/// CRC-16 with the polynomial 0x1021, from 0 (XMODEM).
fn check_sum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        let mixed = sum ^ u16::from(*byte) << 8;
        (0..8).fold(mixed, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 })
    })
}

/// Base32 without padding (RFC 4648, section 6).
fn encode(bytes: &[u8]) -> String {
    let digits = (bytes.len() * 8).div_ceil(5);
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let digit = |at: usize| (0..5).fold(0, |digit, place| digit << 1 | usize::from(bit(at * 5 + place)));
    (0..digits).map(|at| char::from(ALPHABET[digit(at)])).collect()
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() * 5 / 8), 0_u32, 0);
    for letter in text.bytes() {
        let digit = ALPHABET.iter().position(|digit| *digit == letter)?;
        bits = bits << 5 | u32::try_from(digit).ok()?;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // What is left over is padding, and nothing.
    (held < 5 && bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_seed_signs_for_the_public_key_that_the_server_knows() {
        let text = text_of_seed(USER, &[7; 32]);
        assert!(text.starts_with("SU") && text.len() == 58, "{text}");
        let key = Nkey::of_seed(&format!("{text}\n")).expect("a seed");
        let public_key = key.public_key();
        assert!(public_key.starts_with('U') && public_key.len() == 56, "{public_key}");
        let bytes = decode(&public_key).expect("Base32");
        UnparsedPublicKey::new(&ED25519, &bytes[1..33]).verify(b"drawn", &key.sign(b"drawn")).expect("it is its signature");
        assert!(!format!("{key:?}").contains(&text), "no secret is shown");
        assert_eq!(*key.seed(), text);
        let drawn = Nkey::draw();
        assert_eq!(Nkey::of_seed(&drawn.seed()).expect("a seed").public_key(), drawn.public_key());
    }

    #[test]
    fn the_check_sum_and_the_digits_are_those_of_the_standards() {
        assert_eq!(check_sum(b"123456789"), 0x31c3);
        assert_eq!((encode(b"foobar").as_str(), decode("MZXW6YTBOI")), ("MZXW6YTBOI", Some(b"foobar".to_vec())));
        assert_eq!((encode(b"f").as_str(), decode("MZ"), decode("M1")), ("MY", None, None));
    }

    #[test]
    fn what_is_no_users_seed_is_told_by_its_fault() {
        let text = text_of_seed(USER, &[7; 32]);
        let changed = text.replacen(&text[20..21], if &text[20..21] == "A" { "B" } else { "A" }, 1);
        let account = text_of_seed(0, &[7; 32]);
        for (text, fault) in [
            ("", NkeyError::Form),
            ("SUAB", NkeyError::Form),
            ("su", NkeyError::Form),
            (&changed, NkeyError::Sum),
            (&account, NkeyError::Kind),
        ] {
            assert_eq!(Nkey::of_seed(text).map(drop), Err(fault), "{text}");
        }
    }
}
