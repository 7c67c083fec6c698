//! The Gatekeeper: which other clouds there are, by which relays they are reached, what they offer and what they are granted (reference section 7).

mod asking;
mod cloud;
mod discovery;
mod kept;
mod measurement;
mod negotiation;
mod relay;
mod relay_choice;
mod relay_test;
mod several;
mod tunnel;
mod tunnel_way;

pub use self::{
    asking::{DiscoveryRequest, Negotiated, NegotiationRequest, SeveralRequest, asking_cloud, relay_request, target_cloud},
    cloud::{CloudPut, CloudView, PublicCloudView, RelayAssignment},
    discovery::{DiscoveryAnswer, DiscoveryResult, Question, asked_clouds, collect},
    measurement::{CloudAccess, QualityMeasurement, check_questioner, system_addresses},
    negotiation::{Proposal, chosen_provider, through_tunnel},
    relay::RelayPut,
    relay_choice::{TunnelRelays, dialogue_relay, tunnel_relay},
    relay_test::{ECHO_MAX, RelayTestReport, RoundTrips, TEST_MESSAGE_BYTES, TEST_MESSAGES, TURN_MAX, tested_relay},
    several::{SeveralAnswer, SeveralQuestion, SeveralResult, collect_several},
    tunnel::{GrantedTunnel, cloud_request},
    tunnel_way::TunnelWay,
};
pub(crate) use self::{
    discovery::check_asker,
    kept::untold,
    negotiation::{FROM_OTHER_CLOUD, VIA_GATEWAY},
};
