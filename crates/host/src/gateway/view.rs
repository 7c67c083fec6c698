//! How it is with a session, for whoever watches.

use bodkin_arrowhead::utc::UtcTime;
use serde::Serialize;

/// A row of `GET /api/v1/gateway-sessions`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// The first letters of the id that its queues are known by; who knows all of them can listen.
    pub queue_id: String,
    /// `consumer` or `provider`: which end of the tunnel is here.
    pub side: String,
    /// `opening`, `open`, `half closed`, `closing` or `closed`.
    pub state: String,
    /// Why it is over.
    pub reason: Option<String>,
    /// What went wrong with a connection last.
    pub trouble: Option<String>,
    /// How often the connection to the relay was made again while it lasted.
    pub interruptions: u64,
    /// The other gateway.
    pub peer: String,
    /// Who consumes.
    pub consumer: String,
    /// Its cloud, `name.operator`.
    pub consumer_cloud: String,
    /// Who is reached.
    pub provider: String,
    /// Its cloud, `name.operator`.
    pub provider_cloud: String,
    /// What is consumed.
    pub service: String,
    /// Where the gateways meet.
    pub relay: String,
    /// The consumer's port.
    pub port: Option<u16>,
    /// Connections that there are.
    pub connections: usize,
    /// Bytes of connections that were sent to the other gateway.
    pub bytes_to_peer: u64,
    /// Bytes of connections that came from it.
    pub bytes_from_peer: u64,
    /// Whether its messages are numbered, so that a lost one is found out; `None`: the other gateway has not been heard.
    pub numbered: Option<bool>,
    /// When it was begun.
    pub started_at: UtcTime,
}
