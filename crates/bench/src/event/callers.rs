//! As whom a side of `event` calls: a process of its own reads the certificates where the bench keeps them.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::certificates::Certificates;
use crate::client::ANSWER_WAIT_MAX;
use crate::wire::{Caller, Wire};

/// Whose certificates a side calls with; by default nobody's, without TLS.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Callers {
    directory: Option<PathBuf>,
    systems: Vec<String>,
}

impl Callers {
    /// These systems, whose certificates are made here; over plain HTTP where there are no certificates.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn new(certificates: Option<&Certificates>, systems: Vec<String>) -> anyhow::Result<Self> {
        if let Some(certificates) = certificates {
            certificates.issue(systems.iter().map(String::as_str))?;
        }
        Ok(Self { directory: certificates.map(|certificates| certificates.directory().to_owned()), systems })
    }

    /// One for each of `count` connections, the systems in turn.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn read(&self, count: usize) -> anyhow::Result<Vec<Caller>> {
        match &self.directory {
            None => Ok(vec![Caller::Nobody; count]),
            Some(directory) => {
                let systems = self.systems.iter().cycle().take(count).map(String::as_str);
                Certificates::open(directory, false)?.callers(systems)
            }
        }
    }
}

/// A blocking connection that stands, over TLS with its handshake done.
///
/// # Errors
/// There is none within [`ANSWER_WAIT_MAX`].
pub fn connect(address: SocketAddr, caller: &Caller) -> anyhow::Result<Wire<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, ANSWER_WAIT_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    let mut wire = Wire::new(stream, caller, address.ip());
    wire.handshake().context("no TLS")?;
    Ok(wire)
}
