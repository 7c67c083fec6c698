//! The numbers of the relay inside this cloud.

use std::{collections::BTreeMap, sync::Arc};

use bodkin_relay::native::hub::Limit;

use super::{Monitor, Number, label, push};
use crate::relay::server::RelayCounts;

/// What is there now.
pub(super) fn gauges(RelayCounts { hub, .. }: RelayCounts) -> [Number; 7] {
    [
        ("bodkin_relay_connections", "Connections to the relay.", hub.connections as u64),
        ("bodkin_relay_clients", "Clients of the relay, by the keys of their certificates.", hub.clients as u64),
        (
            "bodkin_relay_clients_at_limit",
            "Clients of the relay to which a limit has refused something in the last minute.",
            hub.clients_at_limit as u64,
        ),
        (
            "bodkin_relay_clients_suspended",
            "Clients of the relay that receive no credit at some destinations, because too many bytes are pending.",
            hub.clients_suspended as u64,
        ),
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

/// Appends what each limit has refused to each client of the relay. Clients beyond the first 64 have an empty name together.
fn push_refusals(text: &mut String, refusals: Vec<(Arc<str>, Limit, u64)>) {
    const NAME: &str = "bodkin_relay_client_rejected_total";
    push(text, format_args!("# HELP {NAME} Requests of the relay's clients that a limit has refused.\n# TYPE {NAME} counter\n"));
    let none = Limit::ALL.map(|limit| ((Arc::from(""), limit), 0));
    let mut counts: BTreeMap<(Arc<str>, Limit), u64> = none.into();
    counts.extend(refusals.into_iter().map(|(client, limit, count)| ((client, limit), count)));
    for ((client, limit), count) in counts {
        push(text, format_args!("{NAME}{{client=\"{}\",limit=\"{}\"}} {count}\n", label(&client), limit.name()));
    }
}

impl Monitor {
    pub(super) fn push_relay_refusals(&self, text: &mut String) {
        self.relay.iter().for_each(|relay| push_refusals(text, relay.refusals()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_by_client_and_limit() {
        let mut text = String::new();
        push_refusals(&mut text, vec![(Arc::from("gatekeeper.two#0a"), Limit::ClientConnections, 3)]);
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(series.len(), 1 + Limit::ALL.len(), "{text}");
        assert!(series.contains(&"bodkin_relay_client_rejected_total{client=\"gatekeeper.two#0a\",limit=\"client_connections_max\"} 3"));
        assert!(series.contains(&"bodkin_relay_client_rejected_total{client=\"\",limit=\"bytes_max\"} 0"));
    }
}
