//! The system as which both sides call.

use anyhow::Context;

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::request::{self, Identified};

/// Its name.
pub const SYSTEM: &str = "bodkin-bench";
/// Its port, where nothing listens.
const PORT: u16 = 8998;
const ADDRESS: &str = "127.0.0.1";

/// Registers it.
///
/// # Errors
/// The Service Registry refuses it.
pub fn register(registry: &Endpoint) -> anyhow::Result<()> {
    let call = request::post(registry, "/serviceregistry/mgmt/systems", &request::system(SYSTEM, ADDRESS, PORT));
    let _: Identified = Client::connect(registry)?.ask(&call, 201).context("the bench's system is not registered")?;
    Ok(())
}
