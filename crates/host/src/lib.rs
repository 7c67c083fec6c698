//! The server: the only code that touches the operating system on its behalf.
//!
//! The **control plane** ([`control`], [`listener`]) runs on tokio and carries out every operation as a function of a
//! request. The **data plane** ([`shard`]) is a thread of its own that owns the Event Handler's port: publish and event
//! streams never leave it. Where a published event goes: `shard::request` -> `shard::publish` -> `arrowhead::publication` (may it?) ->
//! `broker::Shard::publish`, of a real-time topic `accept` (who hears it?) -> `frames` (its bytes) -> the subscribers' connections and `push`.

pub mod answer;
pub mod api;
pub mod async_channel;
pub mod attempts;
pub mod audit;
pub mod channel;
pub mod config;
mod connecting;
pub mod control;
pub mod dashboard;
pub mod destination;
mod disk;
pub mod dns_sd;
pub mod document;
pub mod fleet;
pub mod frames;
pub mod gate;
pub mod gatekeeper;
pub mod gateway;
pub mod graph;
pub mod handshakes;
pub mod host_name;
pub mod http;
pub mod inbox;
pub mod job;
pub mod limits;
pub mod listener;
pub mod listening;
pub mod live;
pub mod log_book;
pub mod malformed;
pub mod monitor;
pub mod nats;
pub mod node_events;
pub mod onboarding;
pub mod own_services;
pub mod pair;
pub mod peer_clock;
pub mod probe;
mod problem;
pub mod pulse;
pub mod push;
pub mod quality;
pub mod quotas;
pub mod realtime;
pub mod relay;
pub mod replay;
pub mod request;
pub mod resume_token;
pub mod route;
mod sealing;
pub mod security;
pub mod seldom;
pub mod server;
pub mod shard;
pub mod shared;
pub mod shares;
pub mod shelf;
pub mod stage;
pub mod stall;
pub mod stopping;
pub mod token;
pub mod topics;
pub mod trace;

pub use bodkin_arrowhead::dns_sd::Announced;
pub use bodkin_broker::DeliveryPolicy;
pub use bodkin_relay::{native::hub::HubLimits, stomp::Logins, tunnel::PortRange};
pub use bodkin_store::{audit::AuditLimits, event_log::EventLogLimits, shared::DatabasePlace};

pub use crate::{
    audit::AUDIT_LIMITS,
    config::{HostConfig, IpcAccess, IpcConfig, RelayConfig, ZmtpConfig},
    control::OrchestratorConfig,
    job::JobSchedule,
    limits::Limits,
    nats::{NatsPlace, NatsServer, NoNats},
    node_events::{NodeStream, NodeStreamLimits, NodeStreamTerms},
    pulse::Pulse,
    security::{KeyStores, SecurityConfig},
    server::{Port, Server, StartError},
    token::{IssuerError, TokenIssuer},
    topics::{DeclaredTopic, PublisherList, TopicError},
    trace::{Collector, TraceConfig},
};
