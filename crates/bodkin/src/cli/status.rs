//! `bodkin status`: a node at a glance, on one screen.

pub mod troubles;

use std::collections::BTreeMap;

use bodkin_client::{
    CallError,
    answer::{NodeOverview, NodeState, PlatformState},
};
use clap::Args;
use http::StatusCode;
use serde_json::json;

use self::troubles::{certificate, ending, notices, troubles};
use super::{details::Details, printer::Printer, registry::RegistryOptions};
use crate::{DONE, FAILED};

/// Options of `bodkin status`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Exit codes: 0 nothing is suspended or unprotected, 1 something is, or the node does not answer, 3 not for this caller."
)]
pub struct StatusOptions {
    #[command(flatten)]
    registry: RegistryOptions,
}

/// Prints it; gives the exit code.
pub async fn run(options: StatusOptions, printer: Printer) -> anyhow::Result<u8> {
    let monitor = options.registry.monitor()?;
    let overview = match monitor.overview().await {
        Err(CallError::Problem(problem)) if problem.status == StatusCode::SERVICE_UNAVAILABLE.as_u16() => {
            let (address, why) = (monitor.address(), problem.detail.unwrap_or(problem.title));
            let told = Details::default().with("node", format!("{address}, which answers and does not serve")).with("why", &why);
            printer.one(&json!({"node": address, "why": why}), &told)?;
            return Ok(FAILED);
        }
        overview => overview?,
    };
    let platform = monitor.platform().await?;
    // A node of an earlier release tells of none.
    let nodes = if overview.numbers.contains_key("bodkin_nodes") { monitor.nodes().await?.data } else { Vec::new() };
    let (troubles, notices) = (troubles(&overview, &platform), notices(&overview));
    printer.one(
        &json!({"node": monitor.address(), "overview": overview, "platform": platform, "nodes": nodes, "troubles": troubles, "notices": notices}),
        &notices
            .iter()
            .fold(details(&monitor.address(), &overview, &platform, &nodes, &troubles), |details, notice| details.with("notice", notice)),
    )?;
    Ok(if troubles.is_empty() { DONE } else { FAILED })
}

fn number(numbers: &BTreeMap<String, f64>, name: &str) -> f64 {
    numbers.get(name).copied().unwrap_or_default()
}

fn details(address: &str, overview: &NodeOverview, platform: &PlatformState, nodes: &[NodeState], troubles: &[String]) -> Details {
    let count = |name: &str| format!("{}", number(&overview.numbers, name));
    let of = |names: &[(&str, &str)]| names.iter().map(|(name, what)| format!("{} {what}", count(name))).collect::<Vec<_>>().join(", ");
    let mode = if overview.secure { "secure" } else { "insecure" };
    let details = Details::default()
        .with("node", format!("{address}, bodkin {}, {mode}, up for {}", overview.version, lasted(overview.uptime_s)))
        .with("cloud", cloud(overview))
        .with("pair", pair(&overview.numbers))
        .with("database", database(&overview.numbers));
    let details = nodes
        .iter()
        .fold(details, |details, node| details.with("node of it", told(node)))
        .with("deadlines", deadlines(platform))
        .with("threads", format!("{}: {}", platform.scheduling.policy, platform.scheduling.why))
        .with(
            "holds",
            of(&[
                ("bodkin_systems", "systems"),
                ("bodkin_services", "services"),
                ("bodkin_authorization_rules", "rules"),
                ("bodkin_event_subscriptions", "subscriptions"),
                ("bodkin_topics", "real-time topics"),
            ]),
        )
        .with(
            "events",
            of(&[
                ("bodkin_events_published_total", "published"),
                ("bodkin_events_delivered_total", "delivered"),
                ("bodkin_events_lost_total", "lost"),
                ("bodkin_dead_letters_total", "given up"),
                ("bodkin_events_waiting", "waiting"),
            ]),
        )
        .with(
            "real-time",
            of(&[
                ("bodkin_topic_dispatched_total", "dispatched"),
                ("bodkin_topic_late_total", "late"),
                ("bodkin_topic_shed_total", "shed"),
            ]),
        )
        .with(
            "replicas",
            of(&[("bodkin_replicas_sent_total", "sent"), ("bodkin_replicas_saved_total", "saved"), ("bodkin_replicas_late_total", "late")]),
        )
        .with(
            "kept",
            format!(
                "{}, {} of event log; {} on the disk",
                of(&[("bodkin_event_log_events", "events"), ("bodkin_audit_entries", "audit entries")]),
                bytes(number(&overview.numbers, "bodkin_event_log_bytes")),
                overview
                    .numbers
                    .get("bodkin_data_free_bytes")
                    .map_or("free room is not known".to_owned(), |free| format!("{} are free", bytes(*free)))
            ),
        )
        .with("memory", memory(number(&overview.numbers, "bodkin_resident_memory_bytes")))
        .with(
            "connections",
            of(&[
                ("bodkin_control_connections", "to core systems"),
                ("bodkin_event_connections", "for events"),
                ("bodkin_zmtp_connections", "over ZMTP"),
            ]),
        );
    let details = fleet(&overview.numbers).into_iter().fold(details, |details, fleet| details.with("fleet", fleet));
    match troubles {
        [] => details.with("trouble", "none"),
        troubles => troubles.iter().fold(details, |details, trouble| details.with("TROUBLE", trouble)),
    }
}

/// The cloud's name and, in secure mode, until when its core systems are believed.
fn cloud(overview: &NodeOverview) -> String {
    let certificate = certificate(overview).map(|remaining| format!("; the first of its certificates {}", ending(remaining)));
    format!("{}{}", overview.cloud, certificate.unwrap_or_default())
}

fn pair(numbers: &BTreeMap<String, f64>) -> String {
    let Some(epoch) = numbers.get("bodkin_pair_epoch") else { return "none: a cloud by itself".to_owned() };
    let backup = if number(numbers, "bodkin_pair_protected") > 0.0 { "the Backup is in sync" } else { "WITHOUT a Backup" };
    let witness = match numbers.get("bodkin_pair_witness_connected") {
        None => "no witness",
        Some(0.0) => "the witness is NOT reached",
        Some(_) => "the witness is reached",
    };
    format!("leads in epoch {epoch}, {backup}, {witness}")
}

/// What is forwarded; of a node that forwards nothing, nothing.
fn fleet(numbers: &BTreeMap<String, f64>) -> Option<String> {
    let connected = numbers.get("bodkin_fleet_connected")?;
    let is = if *connected > 0.0 { "the stream takes events" } else { "the stream is NOT reached" };
    let [stored, waiting, lost] =
        ["stored_total", "waiting_events", "lost_total"].map(|name| number(numbers, &format!("bodkin_fleet_{name}")));
    Some(format!("{is}: {stored} stored, {waiting} waiting, {lost} lost"))
}

fn database(numbers: &BTreeMap<String, f64>) -> String {
    let Some(commit) = numbers.get("bodkin_database_commit") else { return "its own, in the data directory".to_owned() };
    let keeper = if number(numbers, "bodkin_database_keeper") > 0.0 { ", this node does what is to be done once" } else { "" };
    format!("shared, shown up to commit {commit}{keeper}")
}

/// One of the nodes that share a database.
fn told(node: &NodeState) -> String {
    let NodeState { node: name, host, monitor_port, state, release, commit, seen_at, clock_ahead_ms, .. } = node;
    let marks = [(node.is_this, ", this one"), (node.keeper, ", does what is to be done once")];
    let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    let state = if state == "serves" { state.clone() } else { format!("{} since {seen_at}", state.to_uppercase()) };
    let clock = if *clock_ahead_ms == 0 { String::new() } else { format!(", clock {clock_ahead_ms:+} ms") };
    format!("{name}, {host}:{monitor_port}, {state}, bodkin {release}, commit {commit}{clock}{marks}")
}

fn deadlines(platform: &PlatformState) -> String {
    let PlatformState { guarantee, causes, worst_us, blocking_us, .. } = platform;
    let guarantee = if causes.is_empty() { guarantee.clone() } else { format!("{guarantee} by {}", causes.join(", ")) };
    match (worst_us, blocking_us) {
        (0, 0) => format!("{guarantee}: no longest stall is stated, and none was measured yet"),
        (0, _) => format!("{guarantee}: {blocking_us} us are stated as the longest stall, and none was measured yet"),
        (_, 0) => format!("{guarantee}: no longest stall is stated; the longest of the last minute was {worst_us} us"),
        _ => format!("{guarantee}: the longest stall of the last minute was {worst_us} us of {blocking_us} us stated"),
    }
}

/// What the process has, which `/proc` tells: none has nothing.
fn memory(resident_bytes: f64) -> String {
    if resident_bytes > 0.0 { bytes(resident_bytes) } else { "not known: /proc is not mounted there".to_owned() }
}

/// A time in the two units that matter.
fn lasted(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn bytes(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} GB", value / 1e9),
        value if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        value if value >= 1e3 => format!("{:.1} kB", value / 1e3),
        value => format!("{value} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(told: &[(&str, f64)]) -> BTreeMap<String, f64> {
        told.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_screen_holds_it() {
        let overview = NodeOverview {
            uptime_s: 3_725,
            numbers: numbers(&[("bodkin_resident_memory_bytes", 12_345_678.0), ("bodkin_data_free_bytes", 3e9)]),
            ..NodeOverview::default()
        };
        let printed =
            details("127.0.0.1:8440", &overview, &PlatformState::default(), &[], &["one".to_owned(), "two".to_owned()]).to_string();
        assert!(printed.lines().count() <= 24, "{printed}");
        let bare = details("127.0.0.1:8440", &NodeOverview::default(), &PlatformState::default(), &[], &[]).to_string();
        assert!(bare.contains("none was measured yet") && bare.contains("memory       not known"), "{bare}");
        for part in ["up for 1 h 2 min", "12.3 MB", "3.00 GB are free", "TROUBLE      one", "a cloud by itself"] {
            assert!(printed.contains(part), "{part} is not in\n{printed}");
        }
    }

    #[test]
    fn deadlines_are_suspended_by_what_the_node_says_and_not_by_a_stall() {
        let platform = PlatformState {
            guarantee: "suspended".into(),
            causes: vec!["publishers".into()],
            worst_us: 70_000,
            ..PlatformState::default()
        };
        assert!(deadlines(&platform).starts_with("suspended by publishers: no longest stall is stated"), "{}", deadlines(&platform));
    }

    #[test]
    fn a_silent_node_is_told_with_when_it_was_heard() {
        let node = NodeState {
            node: "0f".into(),
            host: "10.0.0.7".into(),
            monitor_port: 8440,
            state: "silent".into(),
            release: "0.1.0".into(),
            seen_at: "2031-01-01T00:00:00Z".into(),
            commit: 7,
            clock_ahead_ms: -1_500,
            ..NodeState::default()
        };
        assert_eq!(told(&node), "0f, 10.0.0.7:8440, SILENT since 2031-01-01T00:00:00Z, bodkin 0.1.0, commit 7, clock -1500 ms");
        let serves = NodeState { state: "serves".into(), is_this: true, keeper: true, clock_ahead_ms: 0, ..node };
        assert!(told(&serves).ends_with("serves, bodkin 0.1.0, commit 7, this one, does what is to be done once"), "{}", told(&serves));
    }

    #[test]
    fn a_pair_is_told_with_its_witness() {
        let led = [("bodkin_pair_epoch", 3.0), ("bodkin_pair_leads", 1.0), ("bodkin_pair_protected", 1.0)];
        let with = |witness: &[(&str, f64)]| pair(&numbers(&[&led[..], witness].concat()));
        assert_eq!(with(&[]), "leads in epoch 3, the Backup is in sync, no witness");
        assert_eq!(with(&[("bodkin_pair_witness_connected", 1.0)]), "leads in epoch 3, the Backup is in sync, the witness is reached");
        assert!(with(&[("bodkin_pair_witness_connected", 0.0)]).ends_with("NOT reached"));
    }
}
