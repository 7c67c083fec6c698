//! What both ends say of themselves at the begin of a connection.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    base64::encode_url,
    words::{read_words, words},
};

/// What a server says of itself; members that nothing here needs are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Info {
    /// Its name, or its identity where it has none.
    #[serde(default, rename = "server_name", deserialize_with = "read_words")]
    pub server: String,
    /// Its version.
    #[serde(default, deserialize_with = "read_words")]
    pub version: String,
    /// Does it know headers?
    #[serde(default)]
    pub headers: bool,
    /// Does it want to know who we are?
    #[serde(default)]
    pub auth_required: bool,
    /// Does everything behind this have to be TLS?
    #[serde(default)]
    pub tls_required: bool,
    /// Bytes of headers and payload that a message may have.
    pub max_payload: usize,
    /// Is JetStream there?
    #[serde(default)]
    pub jetstream: bool,
    /// Is it about to go? Connections are to go elsewhere.
    #[serde(default, rename = "ldm")]
    pub lame_duck: bool,
    /// What a client that is known by a key signs.
    #[serde(default)]
    pub nonce: Option<String>,
}

/// What is no INFO.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's INFO is not understood: {0}")]
pub struct InfoError(String);

impl Info {
    /// Reads what is behind the word INFO.
    ///
    /// # Errors
    /// It is no JSON object with `max_payload`.
    pub fn read(json: &[u8]) -> Result<Self, InfoError> {
        serde_json::from_slice(json).map_err(|error| InfoError(words(&error.to_string())))
    }
}

/// Who we are.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nobody in particular.
    None,
    /// A user and a password.
    User {
        /// Its name.
        user: String,
        /// Its password.
        password: String,
    },
    /// A word that the server knows.
    Token(String),
    /// A key (an nkey): the server knows the public one, and asks for a signature of what it has drawn.
    Key {
        /// The public key in text, `U...`.
        public_key: String,
        /// Signs with the other one.
        signer: Signer,
    },
}

/// Signs what a server has drawn: 64 bytes of Ed25519. Keys are not of this crate.
#[derive(Clone)]
pub struct Signer(Arc<Sign>);

type Sign = dyn Fn(&[u8]) -> Vec<u8> + Send + Sync;

impl Signer {
    /// What signs.
    pub fn new(sign: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self(Arc::new(sign))
    }
}

/// The same key, not an equal one: nobody can tell.
impl PartialEq for Signer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Signer {}

/// Without secrets: this is what gets into logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => to.write_str("None"),
            Self::User { user, .. } => write!(to, "User {{ user: {user:?} }}"),
            Self::Token(_) => to.write_str("Token"),
            Self::Key { public_key, .. } => write!(to, "Key {{ public_key: {public_key:?} }}"),
        }
    }
}

/// What a client says of itself.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Connect<'a> {
    verbose: bool,
    pedantic: bool,
    tls_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nkey: Option<&'a str>,
    /// Of the server's nonce, in Base64 for URLs without padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    sig: Option<String>,
    name: &'a str,
    lang: &'static str,
    version: &'static str,
    protocol: u8,
    echo: bool,
    headers: bool,
    no_responders: bool,
}

/// Without secrets.
impl fmt::Debug for Connect<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Connect {{ name: {:?}, user: {:?}, nkey: {:?} }}", self.name, self.user, self.nkey)
    }
}

impl<'a> Connect<'a> {
    /// A client of this name, which signs the server's nonce if it is known by a key.
    pub fn new(name: &'a str, credentials: &'a Credentials, nonce: Option<&str>, tls_required: bool) -> Self {
        let nobody = Self {
            verbose: false,
            pedantic: false,
            tls_required,
            user: None,
            pass: None,
            auth_token: None,
            nkey: None,
            sig: None,
            name,
            lang: "bodkin",
            version: env!("CARGO_PKG_VERSION"),
            // INFO may come again: so a server tells that it is about to go.
            protocol: 1,
            echo: false,
            headers: true,
            // Where nobody listens a request is answered at once, not by its time's end.
            no_responders: true,
        };
        match credentials {
            Credentials::None => nobody,
            Credentials::User { user, password } => Self { user: Some(user), pass: Some(password), ..nobody },
            Credentials::Token(token) => Self { auth_token: Some(token), ..nobody },
            Credentials::Key { public_key, signer } => {
                let sig = nonce.map(|nonce| encode_url(&(signer.0)(nonce.as_bytes())));
                Self { nkey: Some(public_key), sig, ..nobody }
            }
        }
    }
}
