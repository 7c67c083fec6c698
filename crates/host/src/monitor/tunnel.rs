//! The Gateway's numbers.

use std::sync::atomic::Ordering::Relaxed;

use super::Number;
use crate::gateway::Gateway;

/// As they are.
pub fn gauges(gateway: &Gateway) -> Vec<Number> {
    let sessions = ("bodkin_gateway_sessions", "Sessions of the Gateway, of both sides.", gateway.count() as u64);
    let free = gateway.free_ports().map(|free| ("bodkin_gateway_ports_free", "Ports that are free for tunnels.", free as u64));
    let held_by_one =
        ("bodkin_gateway_ports_held_by_one", "Ports that the consumer with the most tunnels holds.", gateway.ports_held_by_one() as u64);
    [sessions, held_by_one].into_iter().chain(free).collect()
}

/// As they were counted since the start.
pub fn counters(gateway: &Gateway) -> Vec<Number> {
    let counts = &gateway.counts;
    [
        ("bodkin_gateway_opened_total", "Sessions of the Gateway that were begun.", &counts.opened),
        ("bodkin_gateway_closed_total", "Sessions that are over.", &counts.closed),
        ("bodkin_gateway_refused_total", "Tunnels that were asked for and could not be begun.", &counts.refused),
        (
            "bodkin_gateway_shared_total",
            "Tunnels that were asked for, and led to a session in use of the same consumer, provider, and service.",
            &counts.shared,
        ),
        ("bodkin_gateway_connections_total", "Connections of consumers, and to providers, in tunnels.", &counts.connections),
        ("bodkin_gateway_broken_total", "Of these, those that broke, or could not be made.", &counts.broken),
        (
            "bodkin_gateway_handshakes_failed_total",
            "TLS handshakes at ports of tunnels that failed: no certificate of the consumer, or too slow.",
            &counts.handshakes_failed,
        ),
        (
            "bodkin_gateway_handshakes_evicted_total",
            "TLS handshakes at ports of tunnels that newer handshakes replaced, because all slots were taken.",
            &counts.handshakes_evicted,
        ),
        ("bodkin_gateway_sent_bytes_total", "Bytes of connections that were sent to gateways of other clouds.", &counts.bytes_to_peers),
        ("bodkin_gateway_received_bytes_total", "Bytes of connections that came from gateways of other clouds.", &counts.bytes_from_peers),
        ("bodkin_gateway_strays_total", "Messages of tunnels that were passed over: forged, repeated, of another session.", &counts.strays),
    ]
    .map(|(name, help, value)| (name, help, value.load(Relaxed)))
    .into()
}
