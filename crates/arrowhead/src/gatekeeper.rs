//! The Gatekeeper: which other clouds there are, by which relays they are reached, what they offer and what they are granted (reference section 7).

mod cloud;
mod discovery;
mod negotiation;
mod relay;
mod relay_choice;

pub use self::{
    cloud::{CloudPut, CloudView, RelayAssignment},
    discovery::{DiscoveryAnswer, DiscoveryResult, Question, asked_clouds, collect},
    negotiation::{Proposal, chosen_provider, through_tunnel},
    relay::RelayPut,
    relay_choice::{TunnelRelays, dialogue_relay, tunnel_relay},
};
