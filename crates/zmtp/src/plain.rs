//! The mechanism PLAIN (RFC 24): a name and a password, in clear.
//!
//! ```text
//! client                               server
//!   HELLO     name, password      ->
//!                                 <-   WELCOME
//!   INITIATE  properties          ->
//!                                 <-   READY     properties
//! ```

use std::fmt::{self, Debug, Formatter};

use zeroize::{Zeroize, Zeroizing};

use crate::command;
use crate::error::ConnectionError;

pub(crate) const HELLO: &str = "HELLO";
pub(crate) const WELCOME: &str = "WELCOME";
pub(crate) const INITIATE: &str = "INITIATE";

/// Longest name and longest password.
const CREDENTIAL_BYTES_MAX: usize = 255;

/// A name or a password beyond its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PLAIN takes a name and a password of at most 255 octets each")]
pub struct CredentialsError;

/// A name and a password, of at most 255 octets each.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainCredentials {
    username: Vec<u8>,
    password: Zeroizing<Vec<u8>>,
}

impl PlainCredentials {
    /// These two.
    ///
    /// # Errors
    /// One of them is too long.
    pub fn new(username: &[u8], password: &[u8]) -> Result<Self, CredentialsError> {
        let fits = username.len().max(password.len()) <= CREDENTIAL_BYTES_MAX;
        fits.then(|| Self { username: username.to_vec(), password: Zeroizing::new(password.to_vec()) }).ok_or(CredentialsError)
    }

    /// The name.
    pub fn username(&self) -> &[u8] {
        &self.username
    }

    /// The password. To be compared in a time that does not depend on how much of it is right.
    pub fn password(&self) -> &[u8] {
        &self.password
    }

    /// Appends HELLO.
    pub(crate) fn push_hello(&self, out: &mut Vec<u8>) {
        let length = |text: &[u8]| [u8::try_from(text.len()).expect("at most 255 octets")];
        command::push(HELLO, &[&length(&self.username), &self.username, &length(&self.password), &self.password], out);
    }

    /// Reads HELLO's body, and overwrites it.
    pub(crate) fn from_hello(body: &mut [u8]) -> Result<Self, ConnectionError> {
        let data = command::expect(HELLO, body)?;
        let credentials =
            Self::parse(data).ok_or(ConnectionError::Malformed { command: HELLO, expected: "a name and a password, each with its length" });
        data.zeroize();
        credentials
    }

    fn parse(data: &[u8]) -> Option<Self> {
        let (&length, rest) = data.split_first()?;
        let (username, rest) = rest.split_at_checked(usize::from(length))?;
        let (&length, password) = rest.split_first()?;
        if password.len() != usize::from(length) {
            return None;
        }
        Self::new(username, password).ok()
    }
}

impl Debug for PlainCredentials {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PlainCredentials {{ username: {:?}, .. }}", String::from_utf8_lossy(&self.username))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_is_read_and_overwritten() {
        let mut body = b"\x05HELLO\x05admin\x06secret".to_vec();
        let credentials = PlainCredentials::from_hello(&mut body).expect("a good HELLO");
        assert_eq!((credentials.username(), credentials.password()), (&b"admin"[..], &b"secret"[..]));
        assert!(body[6..].iter().all(|&octet| octet == 0));
        assert!(!format!("{credentials:?}").contains("secret"));
        let mut out = Vec::new();
        credentials.push_hello(&mut out);
        assert_eq!(out, b"\x04\x13\x05HELLO\x05admin\x06secret");
    }

    #[test]
    fn a_hello_without_its_form_is_refused() {
        for data in [&b""[..], b"\0", b"\x01", b"\x01a", b"\x01a\x01", b"\x01a\x01bc", b"\x02a\0"] {
            let mut body = [b"\x05HELLO", data].concat();
            assert!(PlainCredentials::from_hello(&mut body).is_err(), "{data:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_no_credential() {
        assert!(PlainCredentials::new(&[1; 255], &[2; 255]).is_ok());
        assert_eq!(PlainCredentials::new(&[1; 256], b""), Err(CredentialsError));
        assert_eq!(PlainCredentials::new(b"", &[1; 256]), Err(CredentialsError));
    }
}
