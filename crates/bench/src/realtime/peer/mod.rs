//! What other brokers are spoken to in, as far as the same workload needs it.

mod mqtt;
mod nats;
mod server;

pub use mqtt::Mqtt;
pub use nats::Nats;
pub use server::{PeerServer, find, nats_program};
