//! The numbers of the relay inside this cloud.

use super::Number;
use crate::relay::server::RelayCounts;

/// What is there now.
pub(super) fn gauges(RelayCounts { hub, .. }: RelayCounts) -> [Number; 4] {
    [
        ("bodkin_relay_connections", "Connections to the relay.", hub.connections as u64),
        ("bodkin_relay_channels", "Channels of the relay's connections.", hub.channels as u64),
        ("bodkin_relay_destinations", "Topics and queues of the relay.", hub.destinations as u64),
        ("bodkin_relay_waiting_bytes", "Bytes in the relay that wait for a listener.", hub.waiting_bytes),
    ]
}

/// What has happened since the start.
pub(super) fn counters(RelayCounts { hub, refused }: RelayCounts) -> [Number; 10] {
    [
        ("bodkin_relay_messages_in_total", "Messages that the relay has taken.", hub.messages_in),
        ("bodkin_relay_bytes_in_total", "Their bytes.", hub.bytes_in),
        ("bodkin_relay_messages_out_total", "Messages that the relay has handed over, to each listener of a topic one.", hub.messages_out),
        ("bodkin_relay_bytes_out_total", "Their bytes.", hub.bytes_out),
        ("bodkin_relay_messages_lost_total", "Messages that a listener of a topic was too slow for.", hub.backlog_lost),
        ("bodkin_relay_messages_removed_total", "Messages that were in queues when these were removed.", hub.messages_removed),
        ("bodkin_relay_queues_expired_total", "Queues that were removed because nobody used them.", hub.queues_expired),
        ("bodkin_relay_full_total", "Connections, channels and messages that the relay had no room for.", hub.refused_full),
        ("bodkin_relay_ended_total", "Connections that the relay has ended because of what the client did.", hub.ended),
        ("bodkin_relay_refused_total", "Connections that were not let in.", refused),
    ]
}
