//! What two Bodkins' gateways seal in a tunnel: one secret for each session, which an RSA-sealed message carries ([`crate::RelayMessage::Tunnel`]), and from it a key for each
//! direction. A message has a number, which is its nonce, so that none is opened in another's place.
//!
//! ```text
//! number (8 bytes) | AES-256-GCM (frame) | tag (16 bytes)   as Base64, where relays carry texts
//! 0 | number (8 bytes) | AES-256-GCM (frame) | tag (16 bytes)   where the relay carries bytes: no text begins with a zero byte
//! ```
//!
//! The same number gives the same bytes in either form, so that a message that was not taken in one may be sent in the other.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf, rand,
};
use bodkin_arrowhead::dialogue::SessionId;
use zeroize::Zeroizing;

use crate::{base64, sealed::SEALED_BYTES_MAX};

/// Bytes of a session's secret.
const SECRET_BYTES: usize = 32;
/// Bytes of a message's number.
const NUMBER_BYTES: usize = 8;
/// In front of a message of bytes.
const BYTES_MARK: u8 = 0;
/// Version of what is said behind the secret.
const VERSION: u8 = 1;

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the consumer's gateway.
    ToProvider,
    /// From the provider's gateway.
    ToConsumer,
}

/// A session's secret: the consumer's gateway draws it.
pub struct TunnelSecret(Zeroizing<[u8; SECRET_BYTES]>);

impl TunnelSecret {
    /// One that nobody can guess.
    pub fn draw() -> Self {
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        rand::fill(&mut *secret).expect("the system gives random bytes");
        Self(secret)
    }

    /// What the provider's gateway is sent, in a message that is sealed for it: version, secret, and for how long it may be silent while there is a connection.
    pub fn opening(&self, silent_ms: u32) -> Vec<u8> {
        [&[VERSION], self.0.as_slice(), &silent_ms.to_be_bytes()].concat()
    }

    /// Reads what the consumer's gateway has sent, secret and milliseconds; `None`: it is none of this version.
    pub fn read(opening: &[u8]) -> Option<(Self, u32)> {
        let (version, rest) = opening.split_first()?;
        let (secret, silent_ms) = rest.split_first_chunk::<SECRET_BYTES>()?;
        let silent_ms = u32::from_be_bytes(silent_ms.try_into().ok()?);
        (*version == VERSION).then(|| (Self(Zeroizing::new(*secret)), silent_ms))
    }

    /// The key of one direction of a session.
    pub fn key(&self, session: &SessionId, direction: Direction) -> TunnelKey {
        let words: &[u8] = match direction {
            Direction::ToProvider => b"bodkin tunnel 1, to the provider, session ",
            Direction::ToConsumer => b"bodkin tunnel 1, to the consumer, session ",
        };
        let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(self.0.as_slice());
        let info = [words, session.as_str().as_bytes()];
        let key = derived.expand(&info, &AES_256_GCM).expect("a key is shorter than what HKDF gives");
        TunnelKey(LessSafeKey::new(UnboundKey::from(key)))
    }
}

/// The key of one direction. Whoever seals with it gives each message a number of its own.
#[derive(Debug)]
pub struct TunnelKey(LessSafeKey);

/// A message that is not taken: it is cut, too long, or not sealed with this key under its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not one that the other gateway has sealed in this session")]
pub struct TunnelFault;

impl TunnelKey {
    /// Seals the message of a number, which no other one has.
    pub fn seal(&self, number: u64, frame: &[u8]) -> String {
        let tag_bytes = self.0.algorithm().tag_len();
        let mut sealed = Vec::with_capacity(NUMBER_BYTES + frame.len() + tag_bytes);
        sealed.extend_from_slice(&number.to_be_bytes());
        sealed.extend_from_slice(frame);
        let (_, body) = sealed.split_at_mut(NUMBER_BYTES);
        let tag = self.0.seal_in_place_separate_tag(nonce(number), Aad::empty(), body).expect("a frame is short");
        sealed.extend_from_slice(tag.as_ref());
        base64::encode(&sealed)
    }

    /// Seals the message of a number as bytes; `write` appends the frame, which has about so many bytes.
    pub fn seal_bytes(&self, number: u64, frame_bytes: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(1 + NUMBER_BYTES + frame_bytes + self.0.algorithm().tag_len());
        sealed.push(BYTES_MARK);
        sealed.extend_from_slice(&number.to_be_bytes());
        write(&mut sealed);
        let tag =
            self.0.seal_in_place_separate_tag(nonce(number), Aad::empty(), &mut sealed[1 + NUMBER_BYTES..]).expect("a frame is short");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// Opens a message of bytes in its place; gives its number, and where its frame begins, which goes to the message's end.
    pub fn open_bytes(&self, message: &mut Vec<u8>) -> Result<(u64, usize), TunnelFault> {
        if message.len() > SEALED_BYTES_MAX {
            return Err(TunnelFault);
        }
        let (mark, numbered) = message.split_first_mut().ok_or(TunnelFault)?;
        let (number, sealed) = numbered.split_first_chunk_mut::<NUMBER_BYTES>().ok_or(TunnelFault)?;
        if *mark != BYTES_MARK {
            return Err(TunnelFault);
        }
        let number = u64::from_be_bytes(*number);
        let frame_bytes = self.0.open_in_place(nonce(number), Aad::empty(), sealed).map_err(|_| TunnelFault)?.len();
        message.truncate(1 + NUMBER_BYTES + frame_bytes);
        Ok((number, 1 + NUMBER_BYTES))
    }

    /// Opens a message; gives its number too.
    pub fn open(&self, message: &str) -> Result<(u64, Vec<u8>), TunnelFault> {
        if message.len() > SEALED_BYTES_MAX {
            return Err(TunnelFault);
        }
        let mut bytes = base64::decode(message).ok_or(TunnelFault)?;
        let number = u64::from_be_bytes(*bytes.first_chunk().ok_or(TunnelFault)?);
        let opened = self.0.open_in_place(nonce(number), Aad::empty(), &mut bytes[NUMBER_BYTES..]).map_err(|_| TunnelFault)?;
        let length = opened.len();
        bytes.copy_within(NUMBER_BYTES..NUMBER_BYTES + length, 0);
        bytes.truncate(length);
        Ok((number, bytes))
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - NUMBER_BYTES..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by another program (`vectors/relay/README.md`).
    const VECTORS: &str = include_str!("../../../vectors/relay/tunnel.json");

    fn bytes_of(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u32> = hexadecimal.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
        digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
    }

    #[test]
    fn golden_messages_are_sealed_and_opened() {
        let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let opening = bytes_of(&text(&vectors["opening"]));
        let (secret, silent_ms) = TunnelSecret::read(&opening).unwrap();
        assert_eq!(
            (secret.0.as_slice(), u64::from(silent_ms)),
            (bytes_of(&text(&vectors["secret"])).as_slice(), vectors["silent_ms"].as_u64().unwrap())
        );
        assert_eq!(secret.opening(silent_ms), opening);
        let session = SessionId::parse(&text(&vectors["queue_id"])).unwrap();
        let messages = vectors["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 9);
        for told in messages {
            let direction = if told["to"] == "provider" { Direction::ToProvider } else { Direction::ToConsumer };
            let (key, number) = (secret.key(&session, direction), told["number"].as_u64().unwrap());
            let (frame, message) = (bytes_of(&text(&told["frame"])), text(&told["message"]));
            assert_eq!(key.seal(number, &frame), message, "{told}");
            let mut bytes = key.seal_bytes(number, frame.len(), |out| out.extend_from_slice(&frame));
            assert_eq!(bytes, [&[0], base64::decode(&message).unwrap().as_slice()].concat(), "the same as bytes: {told}");
            assert_eq!(key.open_bytes(&mut bytes).map(|(number, at)| (number, &bytes[at..])), Ok((number, frame.as_slice())), "{told}");
            assert_eq!(key.open(&message), Ok((number, frame)), "{told}");
        }
    }

    fn session(digit: &str) -> SessionId {
        SessionId::parse(&digit.repeat(48)).unwrap()
    }

    #[test]
    fn both_gateways_have_the_same_keys_and_each_direction_and_session_has_its_own() {
        let drawn = TunnelSecret::draw();
        let (read, silent_ms) = TunnelSecret::read(&drawn.opening(30_000)).unwrap();
        assert_eq!(silent_ms, 30_000);
        let keys = |secret: &TunnelSecret| {
            [("a", Direction::ToProvider), ("a", Direction::ToConsumer), ("b", Direction::ToProvider)]
                .map(|(id, way)| secret.key(&session(id), way))
        };
        for (sealing, sealer) in keys(&drawn).iter().enumerate() {
            let message = sealer.seal(7, b"heat");
            for (opening, opener) in keys(&read).iter().enumerate() {
                let expected = if sealing == opening { Ok((7, b"heat".to_vec())) } else { Err(TunnelFault) };
                assert_eq!(opener.open(&message), expected, "{sealing} {opening}");
            }
        }
        assert!(!keys(&drawn)[0].seal(7, b"heat").contains("heat"));
    }

    #[test]
    fn what_is_no_opening_is_refused() {
        let mut opening = TunnelSecret::draw().opening(30_000);
        assert!(TunnelSecret::read(&opening[1..]).is_none() && TunnelSecret::read(&[]).is_none());
        opening[0] = 2;
        assert!(TunnelSecret::read(&opening).is_none(), "another version");
    }

    proptest! {
        #[test]
        fn whatever_is_changed_of_a_message_it_is_not_opened(frame in proptest::collection::vec(any::<u8>(), 0..60), at in any::<usize>(), change in 1..=255_u8) {
            let key = TunnelSecret::draw().key(&session("a"), Direction::ToProvider);
            let message = key.seal(3, &frame);
            prop_assert_eq!(key.open(&message), Ok((3, frame)));
            let mut bytes = base64::decode(&message).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= change;
            prop_assert_eq!(key.open(&base64::encode(&bytes)), Err(TunnelFault));
            prop_assert_eq!(key.open(&base64::encode(&bytes[..at])), Err(TunnelFault));
        }

        #[test]
        fn whatever_is_changed_of_a_message_of_bytes_it_is_not_opened(frame in proptest::collection::vec(any::<u8>(), 0..60), at in any::<usize>(), change in 1..=255_u8) {
            let key = TunnelSecret::draw().key(&session("a"), Direction::ToProvider);
            let message = key.seal_bytes(3, frame.len(), |out| out.extend_from_slice(&frame));
            let opened = |mut message: Vec<u8>| key.open_bytes(&mut message).map(|(number, at)| (number, message.split_off(at)));
            prop_assert_eq!(opened(message.clone()), Ok((3, frame)));
            let at = at % message.len();
            prop_assert_eq!(opened(message[..at].to_vec()), Err(TunnelFault));
            let mut changed = message;
            changed[at] ^= change;
            prop_assert_eq!(opened(changed), Err(TunnelFault));
        }

        #[test]
        fn no_text_is_opened_that_was_not_sealed(text in ".{0,80}") {
            let key = TunnelSecret::draw().key(&session("a"), Direction::ToProvider);
            prop_assert_eq!(key.open(&text), Err(TunnelFault));
        }
    }
}
