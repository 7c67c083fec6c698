//! What is not as it should be at a node: whatever an alert of `docs/monitoring/alerts.yml` can say of now, the screen says too.

use std::{collections::BTreeMap, time::Duration};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_client::answer::{AwaitedSubscriber, NodeOverview, PlatformState, RejectedPublisher, SlotHolder};

use super::{bytes, lasted, number};

/// Room on the disk below which the database may soon not be written; as in the alert BodkinDiskFull.
pub const FREE_BYTES_MIN: u64 = 64 << 20;
/// By how much the clocks of nodes that share a database may differ from its clock; as in the alert BodkinClockDiffers.
const CLOCK_DIFFERENCE_MAX_S: f64 = 1.0;
/// Round trip from which on a node's link to the shared database is slow; as in the alert BodkinDatabaseSlow.
const ROUND_TRIP_MAX_S: f64 = 0.1;
/// For how long what goes between nodes beside the snapshot may not get through; as in the alerts BodkinCertificatesHeldUp and BodkinAuditNotCopied.
const EXCHANGE_AGE_MAX_S: f64 = 10.0;
/// Age of the oldest event that waits for the fleet's stream from which on it is a trouble; as in the alert BodkinFleetBehind.
const FLEET_LAG_MAX_S: f64 = 300.0;
/// Before its end a certificate is to be looked at: it was due for renewal long ago; as in the alert BodkinCertificateEnds.
const CERTIFICATE_REMAINING_MIN: Duration = Duration::from_secs(14 * 86_400);

/// What is not as it should be just now, most urgent first, each with what to do.
pub fn troubles(overview: &NodeOverview, platform: &PlatformState) -> Vec<String> {
    let numbers = &overview.numbers;
    let is = |name| number(numbers, name) > 0.0;
    let is_down = |name: &str| numbers.get(name) == Some(&0.0) && !is_connecting(overview, name);
    let is_away = numbers.get("bodkin_database_connected") == Some(&0.0);
    let leads_alone = is("bodkin_pair_leads") && !is("bodkin_pair_protected");
    let pair = if overview.pair_troubles.is_empty() { pair_numbers(numbers) } else { overview.pair_troubles.clone() };
    let told = [
        (is("bodkin_database_suspended") && !is_away)
            .then(|| "the database takes no change, and each is answered 503: make room on its disk, or look at the log for what the database says".to_owned()),
        is_away.then(|| {
            "the shared database is not reached: changes are refused, and what was last read is served; look whether PostgreSQL runs, and is reached from here".to_owned()
        }),
        is("bodkin_nodes_silent").then(|| {
            format!("nodes of this cloud that are silent: {}; look which (above), whether they run and reach the database", number(numbers, "bodkin_nodes_silent"))
        }),
        is_down("bodkin_node_events_connected").then(|| {
            "NATS is not reached, or its stream takes or gives nothing: live subscribers at other nodes do not hear what is published here, and those here not what is published there; look whether it runs, and is reached from here (GET /api/v1/nodes/events, bodkin doctor)".to_owned()
                + &reason(overview, "bodkin_node_events_connected")
        }),
        (number(numbers, "bodkin_database_clock_difference_seconds") > CLOCK_DIFFERENCE_MAX_S).then(|| {
            let difference = number(numbers, "bodkin_database_clock_difference_seconds");
            format!("this node's clock differs from the shared database's by {difference:.1} s, and what ends at some time ends there at another: have both machines keep time (NTP)")
        }),
        (number(numbers, "bodkin_database_round_trip_seconds") > ROUND_TRIP_MAX_S && !is_away).then(|| {
            let ms = number(numbers, "bodkin_database_round_trip_seconds") * 1000.0;
            format!("this node's link to the shared database is slow: a message and its answer take {ms:.0} ms, and each change at this node takes several of them; look at the network between them")
        }),
        held_up(numbers, "bodkin_certificate_exchange_age_seconds").map(|age| {
            format!("certificates have not gone from node to node for {age}: what is revoked at one counts on at others; the log says why, and bodkin doctor looks at the database")
        }),
        held_up(numbers, "bodkin_audit_copy_age_seconds").map(|age| {
            format!("the other nodes have not seen for {age} what this one's audit log says (its own files have it); the log says why, and bodkin doctor looks at the database")
        }),
        is("bodkin_audit_suspended").then(|| "the audit log cannot be written, and changes are refused: make room on its disk".to_owned()),
        is("bodkin_event_log_suspended").then(|| "the event log keeps nothing: make room on its disk".to_owned()),
        is("bodkin_event_log_lost_total").then(|| {
            let lost = number(numbers, "bodkin_event_log_lost_total");
            format!("the event log has lost {lost} events since the start: its files were removed, or lost in a power failure; the log names them, and subscribers that replay are told")
        }),
        disk_full(numbers),
        is_down("bodkin_fleet_connected").then(|| {
            let waiting = number(numbers, "bodkin_fleet_waiting_events");
            format!("events do not reach the fleet's stream, and {waiting} wait in the event log: GET /api/v1/fleet says why, and bodkin doctor looks")
                + &reason(overview, "bodkin_fleet_connected")
        }),
        fleet_behind(numbers),
        is_down("bodkin_from_fleet_connected").then(|| {
            "events of the fleet do not come here, and wait in its stream: GET /api/v1/fleet says why, and bodkin doctor looks".to_owned()
                + &reason(overview, "bodkin_from_fleet_connected")
        }),
        leads_alone.then(|| "the Backup is out, and nothing is protected: start it, or look why it cannot follow".to_owned()),
        is("bodkin_pair_unreached").then(|| unreached(numbers)),
        (numbers.get("bodkin_gateway_ports_free") == Some(&0.0)).then(|| {
            let held = number(numbers, "bodkin_gateway_ports_held_by_one");
            format!("no port is free for tunnels, and consumers of other clouds' services are answered 504; one consumer holds {held} ports: bodkin cloud sessions lists the holders")
        }),
        is("bodkin_graphs_suspended").then(|| {
            let count = number(numbers, "bodkin_graphs_suspended");
            format!("graphs that stand still because an operator has failed: {count}; bodkin graph list says which and why, deploy it anew once that is mended")
        }),
        is("bodkin_graph_links_down").then(|| {
            let count = number(numbers, "bodkin_graph_links_down");
            format!("links of graphs to other edges that are not heard: {count}, and results of their inputs are late; bodkin graph list says which, GET /api/v1/graphs why")
        }),
        certificate(overview).filter(|remaining| *remaining < CERTIFICATE_REMAINING_MIN).map(|remaining| {
            format!("the certificate of a core system {}, and was not renewed: look at the log, and at bodkin doctor", ending(remaining))
        }),
        is("bodkin_topics_waiting").then(|| waiting(overview)),
        no_slot(overview),
        is("bodkin_guarantee_suspended").then(|| format!("deadlines are not guaranteed: {}", suspended_by(platform))),
        is("bodkin_quotas_exceeded").then(|| {
            let count = number(numbers, "bodkin_quotas_exceeded");
            format!("quotas of clients that rejected something in the last minute: {count}; the log names the client, GET /metrics names the quota (bodkin_quota_rejected_total)")
        }),
        is("bodkin_relay_clients_at_limit").then(|| {
            let count = number(numbers, "bodkin_relay_clients_at_limit");
            format!("clients of this cloud's relay to which a limit has refused something in the last minute: {count}; the log names client and limit, GET /metrics counts them (bodkin_relay_client_rejected_total)")
        }),
        is("bodkin_backup_far").then(|| "replicas take longer to the Backup than bounds on losses were admitted with: look at the wire between the nodes".to_owned()),
    ];
    let fleet = if overview.fleet_troubles.is_empty() { fleet_numbers(numbers) } else { overview.fleet_troubles.clone() };
    pair.into_iter().chain(fleet).chain(told.into_iter().flatten()).collect()
}

/// Returns the reason of the last failure of a connection to NATS servers, to follow a trouble; empty if the node reports none.
fn reason(overview: &NodeOverview, metric: &str) -> String {
    overview.disconnected.get(metric).map_or(String::new(), |reason| format!("; reason: {reason}"))
}

/// Returns true if the connection of a metric is being made for the first time: its 0 is no trouble yet.
pub fn is_connecting(overview: &NodeOverview, metric: &str) -> bool {
    overview.connecting.iter().any(|connecting| connecting == metric)
}

/// Connections that are being made for the first time.
fn connecting(overview: &NodeOverview) -> impl Iterator<Item = String> {
    let known = [
        ("bodkin_node_events_connected", "connecting to NATS, by which events go from node to node"),
        ("bodkin_fleet_connected", "connecting to the fleet's stream"),
        ("bodkin_from_fleet_connected", "connecting to the stream that events of the fleet come by"),
    ];
    known.into_iter().filter(|(metric, _)| is_connecting(overview, metric)).map(|(_, text)| text.to_owned())
}

/// Troubles of a pair, from the metrics of a node that does not report them in words.
fn pair_numbers(numbers: &BTreeMap<String, f64>) -> Vec<String> {
    let told = [
        (
            "bodkin_pair_duplicates",
            "a second process claims to be a node of the pair, and is refused: the log says which, and where it is; stop it",
        ),
        ("bodkin_pair_rejected", "another process is this node of the pair, and this one neither leads nor votes: stop one of the two"),
        (
            "bodkin_pair_settings_differ",
            "the nodes of the pair run with other times or topics: the log has both values; give all nodes the same --config",
        ),
        (
            "bodkin_pair_lease_refused",
            "a node of the pair refuses this node's lease: nobody takes over when the leader fails; give all nodes the same [platform]",
        ),
        (
            "bodkin_pair_record_failed",
            "a node of the pair cannot write its record of votes, and votes for no node: the log says which; make room on its disk",
        ),
        (
            "bodkin_pair_disks_full",
            "the disk of a node of the pair takes no new data: it cannot keep changes and events; make room on its disk",
        ),
        (
            "bodkin_pair_follow_failed",
            "this standby cannot keep what the leader sends, and does not take over: its log says why; make room if its disk is full",
        ),
        (
            "bodkin_pair_certificate_revoked",
            "this node's own certificate is revoked, and it takes no part in the pair: bodkin cert issue makes another one, if the node is to return",
        ),
        (
            "bodkin_pair_certificates_unshared",
            "certificates that were issued or revoked at this standby are not known at the leader: start the leader, or bring it to this release",
        ),
    ];
    told.into_iter().filter(|(name, _)| number(numbers, name) > 0.0).map(|(_, text)| text.to_owned()).collect()
}

/// Troubles of the lanes to the fleet's stream, from the metrics of a node that does not report them in words.
fn fleet_numbers(numbers: &BTreeMap<String, f64>) -> Vec<String> {
    let told = [
        (
            "bodkin_fleet_stopped_lanes",
            "a lane to the fleet's stream is stopped: another process published in it, or this edge was restored from a backup; GET /api/v1/fleet says which, bodkin fleet adopt has it continue",
        ),
        (
            "bodkin_fleet_refused_lanes",
            "the fleet's stream does not accept events, which wait in the event log: GET /api/v1/fleet has the server's words",
        ),
    ];
    told.into_iter().filter(|(name, _)| number(numbers, name) > 0.0).map(|(_, text)| text.to_owned()).collect()
}

/// Events that have waited for the fleet's stream for too long.
fn fleet_behind(numbers: &BTreeMap<String, f64>) -> Option<String> {
    let lag_s = number(numbers, "bodkin_fleet_lag_seconds");
    (lag_s > FLEET_LAG_MAX_S).then(|| {
        let waiting = number(numbers, "bodkin_fleet_waiting_events");
        format!(
            "{waiting} events wait for the fleet's stream, the oldest for {}: look at the link and the servers before the event log is full and events are lost",
            lasted(lag_s as u64)
        )
    })
}

/// For how long something does not get through to the other nodes, though the database is reached: that it is not is a trouble of its own.
fn held_up(numbers: &BTreeMap<String, f64>, name: &str) -> Option<String> {
    let age_s = number(numbers, name);
    let is_reached = numbers.get("bodkin_database_connected") != Some(&0.0);
    (is_reached && age_s > EXCHANGE_AGE_MAX_S).then(|| lasted(age_s as u64))
}

/// Why deadlines are not guaranteed, as the node itself says: the figures alone do not tell which of them is too large. Overview and platform are asked one after the other, so that it may be over.
fn suspended_by(platform: &PlatformState) -> &str {
    platform.why.as_deref().unwrap_or("the node no longer says why; ask again")
}

/// The topics that reject events because a required subscriber has not acknowledged earlier ones.
fn waiting(overview: &NodeOverview) -> String {
    let count = number(&overview.numbers, "bodkin_topics_waiting");
    let named = overview.waiting_topics.iter().map(|AwaitedSubscriber { event_type, subscriber, since, rejected, required_for_s }| {
        format!("{event_type} for {subscriber} since {since} ({rejected} events rejected, required for {required_for_s} s)")
    });
    format!(
        "topics that reject events until a required subscriber has acknowledged earlier ones: {count}; {}; look whether it runs, or bound the wait (required_for_max_s in the topic's declaration)",
        named.collect::<Vec<_>>().join(", ")
    )
}

/// The first topic that rejects a publisher because others hold its slots.
fn no_slot(overview: &NodeOverview) -> Option<String> {
    let mut full = overview.rejected_publishers.iter().filter(|rejected| rejected.key == "publishers");
    let RejectedPublisher { event_type, system, at, holders, .. } = full.next()?;
    let held: Vec<String> = holders.iter().map(|SlotHolder { system, since }| format!("{system} since {since}")).collect();
    let more = full.count();
    let others = if more > 0 { format!(" ({more} more topics reject publishers)") } else { String::new() };
    Some(format!(
        "topic {event_type} has no free publisher slot, and rejected {system} at {at}; slots are held by {}: state its publishers in the declaration (publisher = NAME){others}",
        held.join(", ")
    ))
}

/// Publishers that a topic's declaration does not name.
fn not_listed(overview: &NodeOverview) -> impl Iterator<Item = String> {
    let rejected = overview.rejected_publishers.iter().filter(|rejected| rejected.key == "publisher");
    rejected.map(|RejectedPublisher { event_type, system, at, .. }| {
        format!(
            "topic {event_type} rejected {system} at {at}: the system is not in the declaration's list of publishers (publisher = NAME)"
        )
    })
}

/// How long the first certificate of a core system still counts; none in insecure mode.
pub fn certificate(overview: &NodeOverview) -> Option<Duration> {
    let end_s = overview.numbers.get("bodkin_certificates_end_timestamp_seconds")?;
    // By the node's clock, which is the one that refuses it.
    let now = UtcTime::parse(&overview.at).ok()?;
    // Instants are positive, and exact in f64 for millions of years.
    let end_s = *end_s as u64;
    Some(Duration::from_secs(end_s.saturating_sub(now.unix_seconds())))
}

/// When a certificate ends that counts for so long.
pub fn ending(remaining: Duration) -> String {
    if remaining.is_zero() { "has ended".to_owned() } else { format!("ends in {}", lasted(remaining.as_secs())) }
}

/// What is as it should be, and will not stay so: no trouble yet, and no reason for an exit code.
pub fn notices(overview: &NodeOverview) -> Vec<String> {
    let numbers = &overview.numbers;
    let growth = (number(numbers, "bodkin_event_log_max_bytes") - number(numbers, "bodkin_event_log_bytes")).max(0.0);
    let fills = free_bytes(numbers).filter(|free| (FREE_BYTES_MIN as f64..FREE_BYTES_MIN as f64 + growth).contains(free));
    let told = fills.map(|free| {
        let (free, growth) = (bytes(free), bytes(growth));
        format!("{free} are free on the disk of the data directory, and the event log may take {growth} more: make room, or give a smaller --event-log-bytes-max")
    });
    let other = number(numbers, "bodkin_nodes_other_release");
    let other =
        (other > 0.0).then(|| format!("nodes of this cloud that run another release than this one: {other}; bring them to the same one"));
    let suspended = number(numbers, "bodkin_relay_clients_suspended");
    let suspended = (suspended > 0.0).then(|| {
        format!("clients of this cloud's relay that wait at some destinations until what they have sent is read: {suspended}; each has a quota of pending bytes")
    });
    told.into_iter().chain(other).chain(suspended).chain(connecting(overview)).chain(not_listed(overview)).collect()
}

/// A node that does not know says nothing.
fn free_bytes(numbers: &BTreeMap<String, f64>) -> Option<f64> {
    numbers.get("bodkin_data_free_bytes").copied()
}

fn disk_full(numbers: &BTreeMap<String, f64>) -> Option<String> {
    let free = bytes(free_bytes(numbers).filter(|free| *free < FREE_BYTES_MIN as f64)?);
    Some(format!("{free} are free on the disk of the data directory: make room, for a full disk refuses every change and keeps no events"))
}

fn unreached(numbers: &BTreeMap<String, f64>) -> String {
    let witness = if numbers.get("bodkin_pair_witness_connected") == Some(&0.0) { ", the witness among them" } else { "" };
    let count = number(numbers, "bodkin_pair_unreached");
    format!(
        "nodes of the pair that are not reached: {count}{witness}; if the leader fails now, nobody may have the votes to take over: look at the wire between the nodes, and whether they run"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALERTS: &str = include_str!("../../../../../docs/monitoring/alerts.yml");
    /// What counts since the start is shown on the screen, and is no trouble of now.
    const COUNTED: [&str; 8] = [
        "BodkinDatabaseSetBack",
        "BodkinDeadlinesMissed",
        "BodkinEventsLost",
        "BodkinDeadLetters",
        "BodkinFleetLost",
        "BodkinFleetEmptied",
        "BodkinFromFleetLost",
        "BodkinGraphLinkLosses",
    ];
    /// What a node that does not lead or answer is told by itself.
    const TOLD_BEFORE: [&str; 2] = ["BodkinDown", "BodkinNobodyLeads"];
    /// An alert, numbers of which it speaks, and a word of what the screen says.
    type Firing = (&'static str, &'static [(&'static str, f64)], &'static str);
    const FIRING: [Firing; 38] = [
        ("BodkinTopicWaits", &[("bodkin_topics_waiting", 2.0)], "has acknowledged earlier ones: 2;"),
        ("BodkinPairDuplicate", &[("bodkin_pair_duplicates", 1.0)], "a second process claims"),
        ("BodkinPairRejected", &[("bodkin_pair_rejected", 2.0)], "another process is this node"),
        ("BodkinPairSettingsDiffer", &[("bodkin_pair_settings_differ", 1.0)], "other times or topics"),
        ("BodkinPairLeaseRefused", &[("bodkin_pair_lease_refused", 1.0)], "nobody takes over"),
        ("BodkinPairRecordFailed", &[("bodkin_pair_record_failed", 1.0)], "votes for no node"),
        ("BodkinPairDiskFull", &[("bodkin_pair_disks_full", 1.0)], "takes no new data"),
        ("BodkinPairFollowFailed", &[("bodkin_pair_follow_failed", 1.0)], "does not take over"),
        ("BodkinPairCertificateRevoked", &[("bodkin_pair_certificate_revoked", 1.0)], "takes no part in the pair"),
        ("BodkinPairCertificatesUnshared", &[("bodkin_pair_certificates_unshared", 1.0)], "not known at the leader"),
        ("BodkinNodeEventsAway", &[("bodkin_node_events_connected", 0.0)], "NATS is not reached"),
        ("BodkinNodeSilent", &[("bodkin_nodes_silent", 1.0)], "that are silent: 1"),
        (
            "BodkinCertificatesHeldUp",
            &[("bodkin_database_connected", 1.0), ("bodkin_certificate_exchange_age_seconds", 75.0)],
            "node to node for 1 min 15 s",
        ),
        ("BodkinAuditNotCopied", &[("bodkin_database_connected", 1.0), ("bodkin_audit_copy_age_seconds", 11.0)], "have not seen for 11 s"),
        ("BodkinClockDiffers", &[("bodkin_database_clock_difference_seconds", 1.5)], "by 1.5 s"),
        ("BodkinReleasesDiffer", &[("bodkin_nodes_other_release", 2.0)], "another release than this one: 2"),
        ("BodkinFleetAway", &[("bodkin_fleet_connected", 0.0), ("bodkin_fleet_waiting_events", 7.0)], "and 7 wait"),
        ("BodkinFleetStopped", &[("bodkin_fleet_connected", 1.0), ("bodkin_fleet_stopped_lanes", 1.0)], "is stopped"),
        ("BodkinFleetRefused", &[("bodkin_fleet_connected", 1.0), ("bodkin_fleet_refused_lanes", 1.0)], "does not accept events"),
        (
            "BodkinFleetBehind",
            &[("bodkin_fleet_lag_seconds", 400.0), ("bodkin_fleet_waiting_events", 7.0)],
            "7 events wait for the fleet's stream, the oldest for 6 min 40 s",
        ),
        ("BodkinFromFleetAway", &[("bodkin_from_fleet_connected", 0.0)], "wait in its stream"),
        ("BodkinDatabaseSuspended", &[("bodkin_database_suspended", 1.0)], "takes no change"),
        ("BodkinDatabaseSlow", &[("bodkin_database_connected", 1.0), ("bodkin_database_round_trip_seconds", 0.6)], "take 600 ms"),
        ("BodkinDatabaseAway", &[("bodkin_database_connected", 0.0)], "is not reached"),
        ("BodkinDiskFull", &[("bodkin_data_free_bytes", 5e6)], "5.0 MB are free"),
        (
            "BodkinDiskFills",
            &[("bodkin_data_free_bytes", 5e8), ("bodkin_event_log_max_bytes", 1e9), ("bodkin_event_log_bytes", 1e8)],
            "may take 900.0 MB more",
        ),
        ("BodkinNotProtected", &[("bodkin_pair_leads", 1.0), ("bodkin_pair_protected", 0.0)], "the Backup is out"),
        (
            "BodkinPairNotWhole",
            &[("bodkin_pair_unreached", 1.0), ("bodkin_pair_witness_connected", 0.0)],
            "not reached: 1, the witness among them",
        ),
        ("BodkinCertificateEnds", &[("bodkin_certificates_end_timestamp_seconds", 1_000_000.0)], "ends in 3 d 13 h, and was not renewed"),
        ("BodkinGuaranteeSuspended", &[("bodkin_guarantee_suspended", 1.0)], "not guaranteed: events come late"),
        ("BodkinEventLogSuspended", &[("bodkin_event_log_suspended", 1.0)], "keeps nothing"),
        ("BodkinEventLogLost", &[("bodkin_event_log_lost_total", 7.0)], "has lost 7 events"),
        ("BodkinAuditSuspended", &[("bodkin_audit_suspended", 1.0)], "changes are refused"),
        ("BodkinGraphStandsStill", &[("bodkin_graphs_suspended", 2.0)], "an operator has failed: 2"),
        ("BodkinGraphLinkDown", &[("bodkin_graph_links_down", 3.0)], "not heard: 3"),
        ("BodkinQuotaExceeded", &[("bodkin_quotas_exceeded", 1.0)], "in the last minute: 1"),
        ("BodkinRelayClientAtLimit", &[("bodkin_relay_clients_at_limit", 2.0)], "in the last minute: 2"),
        ("BodkinBackupFar", &[("bodkin_backup_far", 1.0)], "take longer to the Backup"),
    ];

    fn told(numbers: &[(&str, f64)]) -> Vec<String> {
        let why = Some("events come late".to_owned());
        let platform = PlatformState { worst_us: 70, why, ..PlatformState::default() };
        let numbers = numbers.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let overview = NodeOverview { at: UtcTime::from_unix_seconds(694_000).to_string(), numbers, ..NodeOverview::default() };
        [troubles(&overview, &platform), notices(&overview)].concat()
    }

    #[test]
    fn empty_pool_of_tunnel_ports_is_a_trouble() {
        let ports = |free| told(&[("bodkin_gateway_ports_free", free), ("bodkin_gateway_ports_held_by_one", 50.0)]);
        assert!(ports(0.0)[0].contains("one consumer holds 50 ports"), "{:?}", ports(0.0));
        assert_eq!(ports(1.0), Vec::<String>::new());
    }

    #[test]
    fn first_connection_is_notice_until_it_fails() {
        for metric in ["bodkin_node_events_connected", "bodkin_fleet_connected", "bodkin_from_fleet_connected"] {
            let numbers = BTreeMap::from([(metric.to_owned(), 0.0)]);
            let of = |connecting: &[&str]| {
                let connecting = connecting.iter().map(|metric| (*metric).to_owned()).collect();
                NodeOverview { numbers: numbers.clone(), connecting, ..NodeOverview::default() }
            };
            let platform = PlatformState::default();
            assert_eq!(troubles(&of(&[metric]), &platform), Vec::<String>::new(), "{metric}");
            assert!(notices(&of(&[metric]))[0].starts_with("connecting to "), "{metric}");
            assert!(troubles(&of(&[]), &platform).len() == 1 && notices(&of(&[])).is_empty(), "{metric}");
        }
    }

    #[test]
    fn unreached_nats_is_reported_with_its_reason() {
        for metric in ["bodkin_node_events_connected", "bodkin_fleet_connected", "bodkin_from_fleet_connected"] {
            let overview = NodeOverview {
                numbers: BTreeMap::from([(metric.to_owned(), 0.0)]),
                disconnected: BTreeMap::from([(metric.to_owned(), "tls://hub: refused".to_owned())]),
                ..NodeOverview::default()
            };
            let told = troubles(&overview, &PlatformState::default());
            assert!(told.len() == 1 && told[0].ends_with("; reason: tls://hub: refused"), "{told:?}");
        }
    }

    #[test]
    fn whatever_an_alert_says_the_screen_says() {
        for alert in ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
            if COUNTED.contains(&alert) || TOLD_BEFORE.contains(&alert) {
                continue;
            }
            let (_, numbers, words) =
                FIRING.iter().find(|(name, ..)| *name == alert).unwrap_or_else(|| panic!("bodkin status cannot say {alert}"));
            let told = told(numbers);
            assert!(told.len() == 1 && told[0].contains(words), "{alert}: {told:?}");
        }
    }

    #[test]
    fn full_slots_are_a_trouble_and_strangers_a_notice() {
        let rejected = |key: &str| RejectedPublisher {
            event_type: "HOT".into(),
            system: "sensor".into(),
            at: "2026-01-01T00:00:09Z".into(),
            key: key.into(),
            holders: vec![SlotHolder { system: "alice".into(), since: "2026-01-01T00:00:01Z".into() }],
            ..RejectedPublisher::default()
        };
        let of = |key| NodeOverview { rejected_publishers: vec![rejected(key), rejected(key)], ..NodeOverview::default() };
        let told = troubles(&of("publishers"), &PlatformState::default());
        let expected = "topic HOT has no free publisher slot, and rejected sensor at 2026-01-01T00:00:09Z; slots are held by alice since 2026-01-01T00:00:01Z";
        assert!(told.len() == 1 && told[0].starts_with(expected) && told[0].ends_with("(1 more topics reject publishers)"), "{told:?}");
        assert!(notices(&of("publishers")).is_empty() && troubles(&of("publisher"), &PlatformState::default()).is_empty());
        assert!(notices(&of("publisher"))[0].starts_with("topic HOT rejected sensor at "), "{:?}", notices(&of("publisher")));
    }

    #[test]
    fn what_has_been_and_what_fits_is_no_trouble() {
        let counted = [("bodkin_events_lost_total", 5.0), ("bodkin_topic_late_total", 1.0)];
        let pair = [("bodkin_pair_leads", 1.0), ("bodkin_pair_protected", 1.0), ("bodkin_pair_unreached", 0.0)];
        let disk =
            [("bodkin_data_free_bytes", 2e9), ("bodkin_event_log_max_bytes", 1e9), ("bodkin_certificates_end_timestamp_seconds", 1e7)];
        for numbers in [&counted[..], &pair, &disk, &[]] {
            assert_eq!(told(numbers), Vec::<String>::new(), "{numbers:?}");
        }
        let both = told(&[("bodkin_guarantee_suspended", 1.0), ("bodkin_audit_suspended", 1.0)]);
        assert!(both.len() == 2 && both[0].contains("changes are refused"), "the most urgent first: {both:?}");
        assert!(told(&[("bodkin_certificates_end_timestamp_seconds", 5.0)])[0].contains("has ended"));
        assert!(told(&[("bodkin_relay_clients_suspended", 3.0)])[0].contains("is read: 3"));
    }
}
