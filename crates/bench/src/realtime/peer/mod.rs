//! What other brokers are spoken to in, as far as the same workload needs it.

mod mqtt;
mod nats;

pub use mqtt::Mqtt;
pub use nats::Nats;
