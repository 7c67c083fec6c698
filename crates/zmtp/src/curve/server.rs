//! The server's side of the handshake.
//!
//! Between WELCOME and INITIATE the server keeps neither C' nor its own short-term key s': both are in the cookie, which the client brings
//! back. It keeps the key of that cookie alone, which is this connection's own. So an INITIATE that somebody recorded opens nothing
//! on another connection, and nobody who learns a key later can open a cookie that was recorded.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::boxes::{self, TAG_BYTES};
use super::channel::{Channel, End};
use super::keys::{KeyPair, PublicKey, SecretKey};
use super::{HELLO, INITIATE, READY, WELCOME};
use crate::command;
use crate::error::ConnectionError;
use crate::random::Random;

const READY_NUMBER: u64 = 1;
const KEY_BYTES: usize = 32;
const COOKIE_BYTES: usize = 16 + TAG_BYTES + 2 * KEY_BYTES;
const VOUCH_BYTES: usize = TAG_BYTES + 2 * KEY_BYTES;

/// Waits for HELLO.
pub(crate) struct CurveServer {
    own: Arc<KeyPair>,
    random: Random,
}

impl CurveServer {
    pub fn new(own: Arc<KeyPair>, random: Random) -> Self {
        Self { own, random }
    }

    /// Takes HELLO's body, and appends WELCOME.
    pub fn hello(mut self, body: &mut [u8], out: &mut Vec<u8>) -> Result<ExpectInitiate, ConnectionError> {
        let malformed = |expected| ConnectionError::Malformed { command: HELLO, expected };
        let data = command::expect(HELLO, body)?;
        let data: &mut [u8; 194] = data.try_into().map_err(|_| malformed("200 octets"))?;
        let (clear, sealed) = data.split_at_mut(2 + 72 + KEY_BYTES + 8);
        let (version, rest) = clear.split_first_chunk::<2>().expect("a version's length");
        let (padding, rest) = rest.split_first_chunk::<72>().expect("a padding's length");
        let (client_short, number) = rest.split_first_chunk::<KEY_BYTES>().expect("a key's length");
        if *version != [1, 0] || padding.iter().any(|&octet| octet != 0) {
            return Err(malformed("version 1.0 and zeros behind it"));
        }
        let client_short = PublicKey::from_bytes(*client_short);
        if client_short.is_weak() {
            return Err(ConnectionError::WeakKey { command: HELLO });
        }
        let number = u64::from_be_bytes(number.try_into().expect("a number's length"));
        let key = boxes::shared(&client_short, &self.own.secret);
        let signature = boxes::open(&key, &boxes::counted(b"CurveZMQHELLO---", number), sealed);
        if signature.is_none_or(|zeros| zeros.iter().any(|&octet| octet != 0)) {
            return Err(ConnectionError::Forged { command: HELLO });
        }
        let short = self.random.key();
        let cookie_key = self.random.secret();
        let cookie = seal_cookie(&client_short, &short, &cookie_key, self.random.nonce());
        let nonce = self.random.nonce();
        let mut sealed = [0; TAG_BYTES + KEY_BYTES + COOKIE_BYTES];
        sealed[TAG_BYTES..][..KEY_BYTES].copy_from_slice(short.public_key().as_bytes());
        sealed[TAG_BYTES + KEY_BYTES..].copy_from_slice(&cookie);
        boxes::seal(&key, &boxes::drawn(b"WELCOME-", &nonce), &mut sealed);
        command::push(WELCOME, &[&nonce, &sealed], out);
        Ok(ExpectInitiate { own: self.own, cookie_key, hello_number: number })
    }
}

/// WELCOME is sent, INITIATE is to come.
pub(crate) struct ExpectInitiate {
    own: Arc<KeyPair>,
    cookie_key: Zeroizing<[u8; KEY_BYTES]>,
    hello_number: u64,
}

impl ExpectInitiate {
    /// Takes INITIATE's body. Returns the client's properties and what is left to decide.
    pub fn initiate(self, body: &mut [u8]) -> Result<(&[u8], Initiated), ConnectionError> {
        let forged = ConnectionError::Forged { command: INITIATE };
        let data = command::expect(INITIATE, body)?;
        let whole = data.split_at_mut_checked(COOKIE_BYTES + 8);
        let (clear, sealed) = whole
            .filter(|(_, sealed)| sealed.len() >= TAG_BYTES + KEY_BYTES + 16 + VOUCH_BYTES)
            .ok_or(ConnectionError::Malformed { command: INITIATE, expected: "a cookie, a number and a box, 257 octets or more in all" })?;
        let (cookie, number) = clear.split_at_mut(COOKIE_BYTES);
        let number = u64::from_be_bytes((&*number).try_into().expect("a number's length"));
        if number <= self.hello_number {
            return Err(ConnectionError::Nonce { last: self.hello_number, came: number });
        }
        let (client_short, short) = open_cookie(cookie, &self.cookie_key).ok_or(forged.clone())?;
        let key = boxes::shared(&client_short, &short);
        let text = boxes::open(&key, &boxes::counted(b"CurveZMQINITIATE", number), sealed).ok_or(forged.clone())?;
        let (client, rest) = text.split_first_chunk_mut::<KEY_BYTES>().expect("was measured");
        let client = PublicKey::from_bytes(*client);
        if client.is_weak() {
            return Err(ConnectionError::WeakKey { command: INITIATE });
        }
        let (vouch_nonce, rest) = rest.split_first_chunk_mut::<16>().expect("was measured");
        let (vouch, metadata) = rest.split_at_mut(VOUCH_BYTES);
        // Only who has the client's secret key can have sealed this, and only for this connection and this server.
        let vouched = boxes::open(&boxes::shared(&client, &short), &boxes::drawn(b"VOUCH---", vouch_nonce), vouch);
        if vouched
            .is_none_or(|keys| keys[..KEY_BYTES] != client_short.as_bytes()[..] || keys[KEY_BYTES..] != self.own.public.as_bytes()[..])
        {
            return Err(forged);
        }
        Ok((metadata, Initiated { client, channel: Channel::new(key, End::Server, READY_NUMBER, number) }))
    }
}

/// The client is who it says; whether it may come in is the host's to say.
pub(crate) struct Initiated {
    /// Whose key it is.
    pub client: PublicKey,
    channel: Channel,
}

impl Initiated {
    /// Appends READY with our properties.
    pub fn ready(self, metadata: &[u8], out: &mut Vec<u8>) -> Channel {
        let mut sealed = [&[0; TAG_BYTES][..], metadata].concat();
        boxes::seal(self.channel.key(), &boxes::counted(b"CurveZMQREADY---", READY_NUMBER), &mut sealed);
        command::push(READY, &[&READY_NUMBER.to_be_bytes(), &sealed], out);
        self.channel
    }
}

fn seal_cookie(client_short: &PublicKey, short: &SecretKey, cookie_key: &[u8; KEY_BYTES], nonce: [u8; 16]) -> [u8; COOKIE_BYTES] {
    let mut cookie = [0; COOKIE_BYTES];
    let (place, sealed) = cookie.split_at_mut(nonce.len());
    place.copy_from_slice(&nonce);
    sealed[TAG_BYTES..][..KEY_BYTES].copy_from_slice(client_short.as_bytes());
    sealed[TAG_BYTES + KEY_BYTES..].copy_from_slice(short.as_bytes());
    boxes::seal(&boxes::own(cookie_key), &boxes::drawn(b"COOKIE--", &nonce), sealed);
    cookie
}

/// C' and s' from a cookie that this connection sealed.
fn open_cookie(cookie: &mut [u8], cookie_key: &[u8; KEY_BYTES]) -> Option<(PublicKey, SecretKey)> {
    let (nonce, sealed) = cookie.split_first_chunk_mut()?;
    let keys = boxes::open(&boxes::own(cookie_key), &boxes::drawn(b"COOKIE--", nonce), sealed)?;
    let (client_short, short) = keys.split_first_chunk_mut()?;
    Some((PublicKey::from_bytes(*client_short), SecretKey::from_bytes(short.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: u8 = 1;
    const SERVER: u8 = 2;
    const CLIENT_SHORT: u8 = 3;
    const HELLO_NUMBER: u64 = 5;

    fn secret(octet: u8) -> SecretKey {
        SecretKey::from_bytes(&mut [octet; KEY_BYTES])
    }

    fn public(octet: u8) -> PublicKey {
        secret(octet).public_key()
    }

    /// What a client says in INITIATE.
    struct Claim {
        number: u64,
        /// Whose key it shows.
        client: PublicKey,
        /// Which secret key seals the vouch, for which short-term key and which server.
        vouched_by: u8,
        vouched: PublicKey,
        vouched_server: PublicKey,
        /// Which key seals the cookie.
        cookie_key: u8,
        metadata: &'static [u8],
    }

    fn honest() -> Claim {
        Claim {
            number: HELLO_NUMBER + 1,
            client: public(CLIENT),
            vouched_by: CLIENT,
            vouched: public(CLIENT_SHORT),
            vouched_server: public(SERVER),
            cookie_key: 7,
            metadata: b"properties",
        }
    }

    /// What the server makes of it: whose key, and the properties.
    fn initiate(claim: &Claim) -> Result<(PublicKey, Vec<u8>), ConnectionError> {
        let short = secret(4);
        let awaiting =
            ExpectInitiate { own: Arc::new(KeyPair::new(secret(SERVER))), cookie_key: Zeroizing::new([7; 32]), hello_number: HELLO_NUMBER };
        let cookie = seal_cookie(&public(CLIENT_SHORT), &short, &[claim.cookie_key; 32], [9; 16]);
        let mut vouch = [&[0; TAG_BYTES][..], claim.vouched.as_bytes(), claim.vouched_server.as_bytes()].concat();
        boxes::seal(&boxes::shared(&short.public_key(), &secret(claim.vouched_by)), &boxes::drawn(b"VOUCH---", &[6; 16]), &mut vouch);
        let mut sealed = [&[0; TAG_BYTES][..], claim.client.as_bytes(), &[6; 16], &vouch, claim.metadata].concat();
        let key = boxes::shared(&short.public_key(), &secret(CLIENT_SHORT));
        boxes::seal(&key, &boxes::counted(b"CurveZMQINITIATE", claim.number), &mut sealed);
        let mut body = Vec::new();
        command::push_body(INITIATE, &[&cookie, &claim.number.to_be_bytes(), &sealed], &mut body);
        awaiting.initiate(&mut body).map(|(metadata, initiated)| (initiated.client, metadata.to_vec()))
    }

    #[test]
    fn a_client_is_who_it_says() {
        assert_eq!(initiate(&honest()), Ok((public(CLIENT), b"properties".to_vec())));
        assert_eq!(initiate(&Claim { metadata: b"", ..honest() }), Ok((public(CLIENT), Vec::new())));
    }

    #[test]
    fn a_client_is_nobody_else() {
        let forged = Err(ConnectionError::Forged { command: INITIATE });
        assert_eq!(initiate(&Claim { vouched_by: 66, ..honest() }), forged, "sealed without the secret key that it shows");
        assert_eq!(initiate(&Claim { client: public(66), ..honest() }), forged, "another's key");
        assert_eq!(initiate(&Claim { vouched: public(66), ..honest() }), forged, "a vouch for another connection");
        assert_eq!(initiate(&Claim { vouched_server: public(66), ..honest() }), forged, "a vouch for another server");
        assert_eq!(initiate(&Claim { cookie_key: 8, ..honest() }), forged, "another connection's cookie");
        let weak = PublicKey::from_bytes([0; KEY_BYTES]);
        assert_eq!(initiate(&Claim { client: weak, ..honest() }), Err(ConnectionError::WeakKey { command: INITIATE }));
        for number in [0, HELLO_NUMBER - 1, HELLO_NUMBER] {
            let expected = Err(ConnectionError::Nonce { last: HELLO_NUMBER, came: number });
            assert_eq!(initiate(&Claim { number, ..honest() }), expected);
        }
    }

    #[test]
    fn hello_proves_by_zeros_in_a_box() {
        let hello = |text: u8| {
            let mut sealed = [&[0; TAG_BYTES][..], &[0; 63], &[text]].concat();
            boxes::seal(&boxes::shared(&public(SERVER), &secret(CLIENT_SHORT)), &boxes::counted(b"CurveZMQHELLO---", 1), &mut sealed);
            let mut body = Vec::new();
            let short = public(CLIENT_SHORT);
            command::push_body(HELLO, &[&[1, 0], &[0; 72], short.as_bytes(), &1_u64.to_be_bytes(), &sealed], &mut body);
            let server = CurveServer::new(Arc::new(KeyPair::new(secret(SERVER))), Random::new(&mut [1; Random::OCTETS]));
            server.hello(&mut body, &mut Vec::new()).map(|_| ())
        };
        assert_eq!(hello(0), Ok(()));
        assert_eq!(hello(1), Err(ConnectionError::Forged { command: HELLO }));
    }

    #[test]
    fn a_short_command_is_refused() {
        let mut body = Vec::new();
        command::push_body(INITIATE, &[&[0; 256 - 9]], &mut body);
        let awaiting = ExpectInitiate { own: Arc::new(KeyPair::new(secret(SERVER))), cookie_key: Zeroizing::new([7; 32]), hello_number: 1 };
        let refused = awaiting.initiate(&mut body).map(|_| ());
        assert!(matches!(refused, Err(ConnectionError::Malformed { command: INITIATE, .. })), "{refused:?}");
        for hello_bytes in [193, 195] {
            let random = Random::new(&mut [1; Random::OCTETS]);
            let mut body = Vec::new();
            command::push_body(HELLO, &[&[0; 195][..hello_bytes]], &mut body);
            let refused = CurveServer::new(Arc::new(KeyPair::new(secret(SERVER))), random).hello(&mut body, &mut Vec::new()).map(|_| ());
            assert_eq!(refused, Err(ConnectionError::Malformed { command: HELLO, expected: "200 octets" }));
        }
    }
}
