//! The client's side of the handshake.

use std::sync::Arc;

use super::boxes::{self, BoxKey, TAG_BYTES};
use super::channel::{Channel, End};
use super::keys::{KeyPair, PublicKey, SecretKey};
use super::{HELLO, INITIATE, READY, WELCOME};
use crate::command;
use crate::error::ConnectionError;
use crate::random::Random;

const HELLO_NUMBER: u64 = 1;
const INITIATE_NUMBER: u64 = 2;
const COOKIE_BYTES: usize = 96;
const KEY_BYTES: usize = 32;

/// HELLO is sent, WELCOME is to come.
pub(crate) struct CurveClient {
    own: Arc<KeyPair>,
    server: PublicKey,
    short: SecretKey,
    vouch_nonce: [u8; 16],
}

impl CurveClient {
    /// Draws the connection's own key, and appends HELLO.
    pub fn hello(own: Arc<KeyPair>, server: PublicKey, mut random: Random, out: &mut Vec<u8>) -> Self {
        let short = random.key();
        let mut signature = [0; TAG_BYTES + 64];
        boxes::seal(&boxes::shared(&server, &short), &boxes::counted(b"CurveZMQHELLO---", HELLO_NUMBER), &mut signature);
        let client_short = short.public_key();
        command::push(HELLO, &[&[1, 0], &[0; 72], client_short.as_bytes(), &HELLO_NUMBER.to_be_bytes(), &signature], out);
        Self { own, server, short, vouch_nonce: random.nonce() }
    }

    /// Takes WELCOME's body, and appends INITIATE with our properties.
    pub fn welcome(self, body: &mut [u8], metadata: &[u8], out: &mut Vec<u8>) -> Result<ExpectReady, ConnectionError> {
        let data: &mut [u8; 16 + TAG_BYTES + KEY_BYTES + COOKIE_BYTES] = command::expect(WELCOME, body)?
            .try_into()
            .map_err(|_| ConnectionError::Malformed { command: WELCOME, expected: "a nonce and a box, 168 octets in all" })?;
        let (nonce, sealed) = data.split_first_chunk_mut().expect("a nonce's length");
        let text = boxes::open(&boxes::shared(&self.server, &self.short), &boxes::drawn(b"WELCOME-", nonce), sealed)
            .ok_or(ConnectionError::Forged { command: WELCOME })?;
        let (server_short, cookie) = text.split_first_chunk().expect("a key's length");
        let server_short = PublicKey::from_bytes(*server_short);
        if server_short.is_weak() {
            return Err(ConnectionError::WeakKey { command: WELCOME });
        }
        let key = boxes::shared(&server_short, &self.short);
        let mut vouch = [0; TAG_BYTES + 2 * KEY_BYTES];
        vouch[TAG_BYTES..][..KEY_BYTES].copy_from_slice(self.short.public_key().as_bytes());
        vouch[TAG_BYTES + KEY_BYTES..].copy_from_slice(self.server.as_bytes());
        boxes::seal(&boxes::shared(&server_short, &self.own.secret), &boxes::drawn(b"VOUCH---", &self.vouch_nonce), &mut vouch);
        let mut sealed = [&[0; TAG_BYTES][..], self.own.public.as_bytes(), &self.vouch_nonce, &vouch, metadata].concat();
        boxes::seal(&key, &boxes::counted(b"CurveZMQINITIATE", INITIATE_NUMBER), &mut sealed);
        command::push(INITIATE, &[cookie, &INITIATE_NUMBER.to_be_bytes(), &sealed], out);
        Ok(ExpectReady { key })
    }
}

/// INITIATE is sent, READY is to come.
pub(crate) struct ExpectReady {
    key: BoxKey,
}

impl ExpectReady {
    /// Takes READY's body. Returns the server's properties and the boxes for what follows.
    pub fn ready(self, body: &mut [u8]) -> Result<(&[u8], Channel), ConnectionError> {
        let data = command::expect(READY, body)?;
        let malformed = ConnectionError::Malformed { command: READY, expected: "a number and a box" };
        let (number, sealed) = data.split_first_chunk_mut().ok_or(malformed)?;
        let number = u64::from_be_bytes(*number);
        let text = boxes::open(&self.key, &boxes::counted(b"CurveZMQREADY---", number), sealed);
        let metadata = text.ok_or(ConnectionError::Forged { command: READY })?;
        Ok((metadata, Channel::new(self.key, End::Client, INITIATE_NUMBER, number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(octet: u8) -> SecretKey {
        SecretKey::from_bytes(&mut [octet; KEY_BYTES])
    }

    /// What a client makes of a WELCOME with this short-term key of the server, sealed by this long-term one.
    fn welcome(server_short: &PublicKey, sealed_by: u8) -> Result<(), ConnectionError> {
        let (own, server) = (Arc::new(KeyPair::new(secret(1))), secret(2).public_key());
        let client = CurveClient::hello(own, server, Random::new(&mut [3; Random::OCTETS]), &mut Vec::new());
        let mut sealed = [&[0; TAG_BYTES][..], server_short.as_bytes(), &[9; COOKIE_BYTES]].concat();
        boxes::seal(&boxes::shared(&client.short.public_key(), &secret(sealed_by)), &boxes::drawn(b"WELCOME-", &[5; 16]), &mut sealed);
        let mut body = Vec::new();
        command::push_body(WELCOME, &[&[5; 16], &sealed], &mut body);
        client.welcome(&mut body, b"", &mut Vec::new()).map(|_| ())
    }

    #[test]
    fn only_the_server_that_is_meant_welcomes() {
        assert_eq!(welcome(&secret(4).public_key(), 2), Ok(()));
        assert_eq!(welcome(&secret(4).public_key(), 66), Err(ConnectionError::Forged { command: WELCOME }));
        let weak = PublicKey::from_bytes([0; KEY_BYTES]);
        assert_eq!(welcome(&weak, 2), Err(ConnectionError::WeakKey { command: WELCOME }));
    }
}
