//! What both ends say of themselves at the begin of a connection.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a server says of itself; members that nothing here needs are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Info {
    /// Its name, or its identity where it has none.
    #[serde(default, rename = "server_name")]
    pub server: String,
    /// Its version.
    #[serde(default)]
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
        serde_json::from_slice(json).map_err(|error| InfoError(error.to_string()))
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
}

/// Without secrets: this is what gets into logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => to.write_str("None"),
            Self::User { user, .. } => write!(to, "User {{ user: {user:?} }}"),
            Self::Token(_) => to.write_str("Token"),
        }
    }
}

/// What a client says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    name: &'a str,
    lang: &'static str,
    version: &'static str,
    protocol: u8,
    echo: bool,
    headers: bool,
    no_responders: bool,
}

impl<'a> Connect<'a> {
    /// A client of this name.
    pub fn new(name: &'a str, credentials: &'a Credentials, tls_required: bool) -> Self {
        let (user, pass, auth_token) = match credentials {
            Credentials::None => (None, None, None),
            Credentials::User { user, password } => (Some(user.as_str()), Some(password.as_str()), None),
            Credentials::Token(token) => (None, None, Some(token.as_str())),
        };
        Self {
            verbose: false,
            pedantic: false,
            tls_required,
            user,
            pass,
            auth_token,
            name,
            lang: "bodkin",
            version: env!("CARGO_PKG_VERSION"),
            // INFO may come again: so a server tells that it is about to go.
            protocol: 1,
            echo: false,
            headers: true,
            // Where nobody listens a request is answered at once, not by its time's end.
            no_responders: true,
        }
    }
}
