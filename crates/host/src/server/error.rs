//! Why a local cloud does not start.

use std::{io, net::SocketAddr, path::PathBuf};

use bodkin_store::{OpenError, StoreError, identity::IdentityError};

use super::{bind, ipc::IpcError};
use crate::{
    audit::AuditError,
    gatekeeper::GatekeeperError,
    graph::DeployError,
    security::SecurityError,
    shared::account::{AccountError, OtherAuthority},
    token::IssuerError,
    topics::TopicError,
};

/// Why the local cloud did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The parts of the data directory do not belong together.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A port cannot be listened on.
    #[error("cannot listen on {address} for {name}: {error}. {}", bind::way_to_listen(error))]
    Listen {
        /// Where.
        address: SocketAddr,
        /// For whom.
        name: &'static str,
        /// The system's words.
        error: io::Error,
    },
    /// A path of this machine cannot be listened on.
    #[error("cannot listen on ipc://{}: {error}", path.display())]
    Ipc {
        /// Where.
        path: PathBuf,
        /// Why.
        error: IpcError,
    },
    /// The core systems could not be registered.
    #[error("cannot register the core systems' services: {0}")]
    Register(#[from] StoreError),
    /// The event log cannot be used.
    #[error("cannot use the event log {directory}: {error}. Repair it, move it away, or switch it off with --event-log false.")]
    EventLog {
        /// Its directory.
        directory: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// Certificates and keys cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// Tokens cannot be signed.
    #[error(transparent)]
    Tokens(#[from] IssuerError),
    /// No other cloud can be spoken with.
    #[error(transparent)]
    Gatekeeper(#[from] GatekeeperError),
    /// The data was written in the other mode.
    #[error(
        "{directory} was used in {} mode. {} Start with another --data, or take what is there over as it is with --adopt-data.",
        if *.was_secure { "secure" } else { "insecure" },
        if *.was_secure { "Without certificates everybody who reaches the ports could read and change it." }
        else { "Everybody who reached the ports could write systems and rules there, under any name." }
    )]
    OtherMode {
        /// Where it is.
        directory: PathBuf,
        /// In which mode.
        was_secure: bool,
    },
    /// The other nodes of the cloud have another authority.
    #[error(transparent)]
    Authority(#[from] OtherAuthority),
    /// What they have revoked is not known.
    #[error("the account of certificates that the nodes share: {0}")]
    Account(#[from] AccountError),
    /// The audit log cannot be used.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A real-time topic does not fit, or what they all count on.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// Events cannot be forwarded.
    #[error("cannot forward events to the fleet: {0}")]
    Fleet(io::Error),
    /// A graph cannot run.
    #[error("a graph cannot run: {0}")]
    Graph(DeployError),
    /// A thread or poll could not be made.
    #[error("the system refuses what the data plane needs: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// Whether the same may work later: the database takes no change now, as while its disk is full.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Register(StoreError::Unavailable(_)))
    }
}
