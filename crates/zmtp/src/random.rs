//! What a connection needs of chance.

use std::fmt::{self, Debug, Formatter};

use zeroize::{Zeroize, Zeroizing};

use crate::curve::SecretKey;

/// Octets that nobody can guess and that were never used: drawn by the host for this connection alone. CURVE makes its short-term key and its
/// nonces of them, NULL and PLAIN leave them.
pub struct Random {
    octets: Zeroizing<[u8; Self::OCTETS]>,
    used: usize,
}

impl Random {
    /// A server's: its short-term key, the cookie's key and nonce, and the nonce of WELCOME.
    pub const OCTETS: usize = 32 + 32 + 16 + 16;

    /// Takes the octets and overwrites them where they were.
    pub fn new(octets: &mut [u8; Self::OCTETS]) -> Self {
        let random = Self { octets: Zeroizing::new(*octets), used: 0 };
        octets.zeroize();
        random
    }

    pub(crate) fn key(&mut self) -> SecretKey {
        SecretKey::from_bytes(&mut self.take())
    }

    pub(crate) fn secret(&mut self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.take())
    }

    pub(crate) fn nonce(&mut self) -> [u8; 16] {
        self.take()
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let octets = self.octets[self.used..][..N].try_into().expect("as many as were asked for");
        self.used += N;
        octets
    }
}

impl Debug for Random {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Random(..)")
    }
}
