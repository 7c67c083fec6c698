//! What either end is set to, shared by all its connections.

use std::sync::Arc;

use crate::curve::{KeyPair, PublicKey};
use crate::limits::Limits;
use crate::metadata::Metadata;
use crate::plain::PlainCredentials;
use crate::socket_type::SocketType;

pub(crate) const NULL: &str = "NULL";
pub(crate) const PLAIN: &str = "PLAIN";
pub(crate) const CURVE: &str = "CURVE";

/// A server: who binds. It learns the peer's socket type first, and answers with the counterpart.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Bounds on what a peer sends.
    pub limits: Limits,
    /// Socket types of peers that are taken; the others are told which are.
    pub takes: Vec<SocketType>,
    /// How a peer proves who it is.
    pub security: ServerSecurity,
}

/// A server's mechanism.
#[derive(Clone, Debug)]
pub enum ServerSecurity {
    /// Anybody may come.
    Null,
    /// A name and a password; the host is asked about each.
    Plain,
    /// A key, and boxes around all that is sent; the host is asked about each key. Clients know the public key of this pair.
    Curve(Arc<KeyPair>),
}

/// A client: who connects.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Bounds on what a peer sends.
    pub limits: Limits,
    /// What the server is told: our socket type and what else it should know.
    pub metadata: Metadata,
    /// How we prove who we are.
    pub security: ClientSecurity,
}

/// A client's mechanism.
#[derive(Clone, Debug)]
pub enum ClientSecurity {
    /// Not at all.
    Null,
    /// By a name and a password.
    Plain(PlainCredentials),
    /// By a key, to a server of whom we know the key.
    Curve {
        /// Ours.
        own: Arc<KeyPair>,
        /// The server's.
        server: PublicKey,
    },
}

impl ServerSecurity {
    /// The mechanism's name.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Null => NULL,
            Self::Plain => PLAIN,
            Self::Curve(_) => CURVE,
        }
    }
}

impl ClientSecurity {
    /// The mechanism's name.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Null => NULL,
            Self::Plain(_) => PLAIN,
            Self::Curve { .. } => CURVE,
        }
    }
}
